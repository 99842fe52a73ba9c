"""What is for one account is not sent to another, though a root there is allowed."""

from __future__ import annotations

import pytest

from lazydelta.errors import InvalidRequestError, UnsupportedTableError
from lazydelta.settings import LocationOptions, Settings
from lazydelta.storage import open_storage
from lazydelta.storage.elsewhere import storage_of

OTHER = "abfss://c@other.dfs.core.windows.net/data/f.parquet"
KEY = {"account_key": "SFVTSEhVU0g="}
SIGNATURE = "sv=2021-08-06&sp=rl&sig=HUSHHUSH"


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("abfss://c@acct/t", {"sas_token": SIGNATURE}),
        (f"https://acct.blob.core.windows.net/c/t?{SIGNATURE}", {}),
        ("abfss://c@acct/t", {"account_key": "SFVTSEhVU0g="}),
        ("abfss://c@acct/t", {"AZURE_STORAGE_ACCOUNT_KEY": "SFVTSEhVU0g="}),
    ],
)
def test_a_key_or_a_signature_of_one_account_is_not_used_for_another(
    url: str, options: dict[str, str]
) -> None:
    storage = open_storage(url, Settings(storage_options=options, allowed_roots="abfss://c@other/data"))
    with pytest.raises(UnsupportedTableError, match="another account") as told:
        storage_of(storage, OTHER)
    assert 'storage_options={"abfss://c@other.dfs.core.windows.net/data": {…}}' in told.value.fix
    assert "HUSH" not in str(told.value)


def test_a_token_may_be_for_several_accounts() -> None:
    settings = Settings(storage_options={"token": "t"}, allowed_roots="abfss://c@other/data")
    place, name = storage_of(open_storage("abfss://c@acct/t", settings), OTHER)
    assert (place.root, name) == ("abfss://c@other.dfs.core.windows.net/data", "f.parquet")


def test_a_signature_serves_the_other_containers_of_its_account() -> None:
    settings = Settings(storage_options={"sas_token": SIGNATURE}, allowed_roots="abfss://d@acct/data")
    place, _ = storage_of(open_storage("abfss://c@acct/t", settings), "abfss://d@acct/data/f.parquet")
    assert place.root == "abfss://d@acct.dfs.core.windows.net/data"


def test_options_of_a_location_count_though_its_root_is_allowed_besides() -> None:
    own = LocationOptions(options={"account_key": "b3RoZXI="})
    settings = Settings(
        storage_options=KEY,
        allowed_roots="abfss://c@other/data",
        locations={"abfss://c@other/data/": own},
    )
    place, _ = storage_of(open_storage("abfss://c@acct/t", settings), OTHER)
    assert place.root == "abfss://c@other.dfs.core.windows.net/data"


def test_one_location_in_two_spellings_must_have_one_set_of_options() -> None:
    one, other = LocationOptions(options={"token": "HUSH1"}), LocationOptions(options={"token": "HUSH2"})
    urls = ("abfss://c@other/data", "https://other.blob.core.windows.net/c/data/")
    with pytest.raises(InvalidRequestError, match="one location is given in two spellings") as told:
        open_storage("abfss://c@acct/t", Settings(locations=dict(zip(urls, (one, other), strict=True))))
    assert "HUSH" not in str(told.value)
    open_storage("abfss://c@acct/t", Settings(storage_options=KEY, locations=dict.fromkeys(urls, one)))
