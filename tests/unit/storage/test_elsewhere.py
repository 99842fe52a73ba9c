"""Files that a log names outside the table's root: read where it is allowed, refused everywhere else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lazydelta.errors import InvalidRequestError, StorageError, UnsupportedTableError
from lazydelta.protocol.paths import canonical_path
from lazydelta.settings import LocationOptions, Settings, build_settings
from lazydelta.storage import Storage, open_storage, storage_of

AZURE = {"account_key": "a2V5"}
S3 = {"access_key_id": "k", "secret_access_key": "s", "region": "eu-central-1"}


def opened(url: str, *, allowed: str = "", **more: Any) -> Storage:
    options = {"abfss": AZURE, "s3": S3}.get(url.partition(":")[0], {})
    return open_storage(url, Settings(storage_options=options, allowed_roots=allowed, **more))


def client_of(storage: Storage) -> Any:
    return storage._link.store  # type: ignore[attr-defined]


# --- on a disk ---------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["a b.parquet", "100%.parquet", "per%20cent.parquet", "#?&.parquet", "ü.parquet"]
)
def test_a_local_file_below_an_allowed_root_is_read_and_counted(tmp_path: Path, name: str) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "other%20place" / "deep").mkdir(parents=True)
    outside = tmp_path / "other%20place" / "deep" / name
    outside.write_bytes(b"body")
    storage = opened(str(tmp_path / "t"), allowed=str(tmp_path / "other%20place"))
    for spelled in (outside.as_uri(), outside.as_uri().replace("file:///", "file:/")):
        place, found = storage_of(storage.scoped(), canonical_path(spelled, storage.root))
        assert place.get(found) == b"body"
    assert storage.counters.snapshot().requests == 2


def test_a_file_below_the_root_stays_there(tmp_path: Path) -> None:
    storage = opened(str(tmp_path))
    assert storage_of(storage, "p=1/f.parquet") == (storage, "p=1/f.parquet")


def test_a_local_file_outside_is_refused_with_what_to_set(tmp_path: Path) -> None:
    source = tmp_path / "source table"
    source.mkdir()
    (source / "f.parquet").write_bytes(b"body")
    path = canonical_path((source / "f.parquet").as_uri(), opened(str(tmp_path / "t")).root)
    with pytest.raises(UnsupportedTableError, match="outside its root") as told:
        storage_of(opened(str(tmp_path / "t")), path)
    assert told.value.where == path
    assert f'delta.allowed_roots="{source}"' in told.value.fix
    named = told.value.fix.partition('delta.allowed_roots="')[2].partition('"')[0]
    place, name = storage_of(opened(str(tmp_path / "t"), allowed=named), path)
    assert place.get(name) == b"body"


@pytest.mark.parametrize("allowed", ["{0}/other", "file://{0}/other/", "{0}/x, {0}/other", "*", "{0}", "/"])
def test_every_spelling_of_an_allowed_root_is_understood(tmp_path: Path, allowed: str) -> None:
    storage = opened(str(tmp_path / "t"), allowed=allowed.format(tmp_path))
    assert storage_of(storage, f"file://{tmp_path}/other/f.parquet")[1] == "f.parquet"


@pytest.mark.parametrize("allowed", ["", "{0}/oth", "{0}/other/more", "{0}/t", "s3://other"])
def test_another_root_allows_nothing(tmp_path: Path, allowed: str) -> None:
    storage = opened(str(tmp_path / "t"), allowed=allowed.format(tmp_path))
    with pytest.raises(UnsupportedTableError):
        storage_of(storage, f"file://{tmp_path}/other/f.parquet")


@pytest.mark.parametrize("allowed", [False, True])
@pytest.mark.parametrize(
    "path",
    [
        "../secret",
        "a/../../secret",
        "%2e%2e/secret",
        "..%2Fsecret",
        "%2e%2e%2fsecret",
        "./../secret",
        "a//b",
        "file://{0}/t/../secret",
        "file://{0}/t/%2e%2e/secret",
        "file:{0}/t/./../secret",
        "{0}/t/../secret",
        "{0}/ok/../secret",
        "file://{0}/ok/%2e%2e/secret",
        "file://{0}//secret",
    ],
)
def test_dots_never_lead_out_of_a_root(tmp_path: Path, path: str, *, allowed: bool) -> None:
    (tmp_path / "t" / "a").mkdir(parents=True)
    (tmp_path / "ok").mkdir()
    (tmp_path / "secret").write_bytes(b"secret")
    storage = opened(str(tmp_path / "t"), allowed=str(tmp_path / "ok") if allowed else "")
    with pytest.raises((UnsupportedTableError, StorageError)):
        place, name = storage_of(storage, canonical_path(path.format(tmp_path), storage.root))
        place.get(name)


def test_a_name_that_is_encoded_twice_is_a_name(tmp_path: Path) -> None:
    (tmp_path / "t" / "%2e%2e").mkdir(parents=True)
    (tmp_path / "t" / "%2e%2e" / "f").write_bytes(b"inside")
    (tmp_path / "f").write_bytes(b"outside")
    storage = opened(str(tmp_path / "t"))
    place, name = storage_of(storage, canonical_path("%252e%252e/f", storage.root))
    assert place.get(name) == b"inside"


def test_an_allowed_root_with_dots_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match="leads elsewhere"):
        opened(str(tmp_path), allowed=f"{tmp_path}/../x")


# --- in a store --------------------------------------------------------------

SAME_STORE = [
    ("s3://bucket/t", "s3a://bucket/u%20v/f.parquet", "s3://bucket/u%20v"),
    (
        "abfss://c@acct/t",
        "abfss://c@acct.dfs.core.windows.net/u/f.parquet",
        "abfss://c@acct.dfs.core.windows.net/u",
    ),
    ("abfss://c@acct/t", "/u/f.parquet", "abfss://c@acct.dfs.core.windows.net/u"),
    ("abfss://c@acct/t", "az://c/u/f.parquet", "abfss://c@acct.dfs.core.windows.net/u"),
]


@pytest.mark.parametrize(("root", "path", "where"), SAME_STORE)
@pytest.mark.parametrize("wide", [False, True])
def test_another_place_in_the_same_store_is_asked_through_the_same_client(
    root: str, path: str, where: str, *, wide: bool
) -> None:
    storage = opened(root, allowed="*" if wide else where)
    place, name = storage_of(storage, canonical_path(path, storage.root))
    assert (place.root, name) == (where, "f.parquet")
    assert place.counters is storage.counters
    assert client_of(place) is client_of(storage)


@pytest.mark.parametrize(("root", "path", "where"), SAME_STORE)
def test_another_place_in_the_same_store_is_refused_with_what_to_set(
    root: str, path: str, where: str
) -> None:
    storage = opened(root)
    with pytest.raises(UnsupportedTableError, match="outside its root") as told:
        storage_of(storage, canonical_path(path, storage.root))
    assert f'delta.allowed_roots="{where}"' in told.value.fix


@pytest.mark.parametrize(
    "path",
    [
        "s3://other/f.parquet",
        "abfss://c@acct.dfs.core.windows.net/f.parquet",
        "file:///data/f.parquet",
        "hdfs://node/f.parquet",
        "https://example.com/f.parquet",
    ],
)
def test_another_store_is_refused_with_the_path(path: str) -> None:
    with pytest.raises(UnsupportedTableError) as told:
        storage_of(opened("s3://bucket/t", allowed="*"), path)
    assert told.value.where == path


def test_a_signature_in_a_path_of_the_log_is_not_repeated() -> None:
    path = "https://acct.blob.core.windows.net/c/f.parquet?sv=1&sig=HUSHHUSH"
    with pytest.raises(UnsupportedTableError) as told:
        storage_of(opened("s3://bucket/t"), path)
    assert "HUSH" not in str(told.value)
    assert told.value.where == "https://acct.blob.core.windows.net/c/f.parquet…"


def test_a_store_is_refused_by_a_local_table_and_read_where_it_has_options(tmp_path: Path) -> None:
    path = "s3://bucket/u/f.parquet"
    with pytest.raises(UnsupportedTableError, match="another store") as told:
        storage_of(opened(str(tmp_path)), path)
    assert 'storage_options={"s3://bucket/u": {…}}' in told.value.fix
    locations = {"s3://bucket": LocationOptions(options=S3)}
    storage = opened(str(tmp_path), locations=locations)
    place, name = storage_of(storage, path)
    assert (place.root, name) == ("s3://bucket/u", "f.parquet")
    assert place.counters is storage.counters


def test_a_file_of_this_machine_is_never_read_for_a_table_in_a_store() -> None:
    with pytest.raises(UnsupportedTableError, match="a file of this machine"):
        storage_of(opened("s3://bucket/t", allowed="/data"), "file:///data/f.parquet")


def test_another_bucket_that_is_allowed_is_read_with_the_same_options() -> None:
    storage = opened("s3://bucket/t", allowed="s3://other/data")
    place, _ = storage_of(storage, "s3://other/data/deep/f.parquet")
    assert place.root == "s3://other/data/deep"
    assert client_of(place) is not client_of(storage)
    again, _ = storage_of(storage, "s3://other/data/f.parquet")
    assert client_of(again) is client_of(place), "clients are shared"


def test_options_of_one_account_do_not_serve_another() -> None:
    options = {"account_key": "a2V5", "endpoint": "http://127.0.0.1:1/acct", "allow_http": "true"}
    settings = Settings(storage_options=options, allowed_roots="abfss://c@other/")
    storage = open_storage("abfss://c@acct/t", settings)
    with pytest.raises(UnsupportedTableError, match="another account") as told:
        storage_of(storage, "abfss://c@other.dfs.core.windows.net/f.parquet")
    assert 'storage_options={"abfss://c@other.dfs.core.windows.net": {…}}' in told.value.fix


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({"account_name": "acct"}, "abfss://c@other.dfs.core.windows.net/f.parquet"),
        ({"container_name": "c"}, "abfss://d@acct.dfs.core.windows.net/f.parquet"),
    ],
)
def test_options_that_name_the_tables_own_store_do_not_serve_another(
    options: dict[str, str], path: str
) -> None:
    settings = Settings(
        storage_options={"account_key": "a2V5", **options}, allowed_roots="abfss://c@other/,abfss://d@acct/"
    )
    with pytest.raises(UnsupportedTableError, match=r"the storage options are for the table's own"):
        storage_of(open_storage("abfss://c@acct/t", settings), path)


@pytest.mark.parametrize(
    "variables",
    [
        {"AZURE_STORAGE_ENDPOINT": "http://127.0.0.1:1/acct", "AZURE_STORAGE_KEY": "a2V5"},
        {
            "AZURE_STORAGE_CONNECTION_STRING": "AccountName=acct;AccountKey=a2V5;BlobEndpoint=http://127.0.0.1:1"
        },
    ],
)
def test_what_the_environment_has_for_the_tables_account_does_not_serve_another(
    variables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    storage = open_storage("abfss://c@acct/t", Settings(allowed_roots="abfss://c@other/"))
    with pytest.raises(InvalidRequestError, match="the environment"):
        storage_of(storage, "abfss://c@other.dfs.core.windows.net/f.parquet")


def test_the_longest_root_that_covers_a_file_counts() -> None:
    keys = {"access_key_id": "k", "secret_access_key": "s"}
    given = {"s3://b/a": {"region": "one", **keys}, "s3://b/a/b": {"region": "two", **keys}}
    settings = build_settings({**given, **S3, "delta.allowed_roots": "s3://b"}, environment={})
    storage = open_storage("s3://bucket/t", settings)
    urls = ("s3://b/x/f", "s3://b/ab/f", "s3://b/a/f", "s3://b/a/b/c/f")
    tables, below, one, two = (client_of(storage_of(storage, url)[0]) for url in urls)
    assert tables is below
    assert [client.config["region"] for client in (tables, one, two)] == [S3["region"], "one", "two"]
    with pytest.raises(UnsupportedTableError, match="another store"):
        storage_of(storage, "s3://c/x/f")


# --- what is for one account is not sent to another, though a root there is allowed ---

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
