"""Storage options: obstore's names in any case, unknown ones refused, secrets never repeated."""

from __future__ import annotations

import traceback

import pytest

from lazydelta.errors import InvalidRequestError
from lazydelta.settings import Settings
from lazydelta.storage import open_storage

AZURE = "abfss://lake@acct/t"
S3 = "s3://bucket/t"


@pytest.mark.parametrize(
    ("url", "options"),
    [
        (AZURE, {"account_key": "aHVzaA=="}),
        (AZURE, {"AZURE_STORAGE_ACCOUNT_KEY": "aHVzaA==", "AZURE_STORAGE_ACCOUNT_NAME": "acct"}),
        (AZURE, {"Sas_Token": "sv=1&sig=x", "ALLOW_HTTP": "true", "timeout": "3s"}),
        (AZURE, {"azure_allow_http": "true", "skip_signature": "true", "container_name": "lake"}),
        ("az://lake/t", {"use_emulator": "true"}),
        (
            S3,
            {
                "AWS_ACCESS_KEY_ID": "a",
                "AWS_SECRET_ACCESS_KEY": "b",
                "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
            },
        ),
        (S3, {"access_key_id": "a", "secret_access_key": "b", "AWS_ALLOW_HTTP": "true", "region": "x"}),
    ],
)
def test_names_are_accepted_as_users_write_them(url: str, options: dict[str, str]) -> None:
    storage = open_storage(url, Settings(storage_options=options))
    assert storage.counters.snapshot().requests == 0
    assert "RemoteStorage" in repr(storage)


@pytest.mark.parametrize("url", [AZURE, S3])
def test_an_unknown_option_is_named(url: str) -> None:
    with pytest.raises(InvalidRequestError, match="'acount_key' is not known") as caught:
        open_storage(url, Settings(storage_options={"Acount_Key": "HUSHHUSH", "skip_signature": "true"}))
    assert "HUSH" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "options"),
    [
        (AZURE, {"account_key": "HUSH?HUSH"}),
        (AZURE, {"skip_signature": "HUSHHUSH"}),
        (S3, {"skip_signature": "HUSHHUSH"}),
        (S3, {"allow_http": "HUSHHUSH"}),
        (S3, {"timeout": "HUSHHUSH"}),
    ],
)
def test_a_value_that_does_not_fit_is_refused_and_not_repeated(url: str, options: dict[str, str]) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        open_storage(url, Settings(storage_options=options))
    assert "HUSH" not in "".join(traceback.format_exception(caught.value))


def test_an_azure_table_without_an_account_says_so() -> None:
    with pytest.raises(InvalidRequestError, match="Account must be specified") as caught:
        open_storage("az://lake/t", Settings(storage_options={"skip_signature": "true"}))
    assert "account_name" in caught.value.fix
