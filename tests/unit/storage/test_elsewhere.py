"""Files that a log names outside the table's root."""

from __future__ import annotations

from pathlib import Path

import pytest

from lazydelta.errors import UnsupportedTableError
from lazydelta.protocol.paths import canonical_path
from lazydelta.settings import Settings
from lazydelta.storage import Storage, open_storage
from lazydelta.storage.elsewhere import storage_of


def opened(url: str) -> Storage:
    azure = {"account_name": "acct", "account_key": "a2V5"}
    s3 = {"access_key_id": "k", "secret_access_key": "s", "region": "eu-central-1"}
    options = {"abfss": azure, "s3": s3}.get(url.partition(":")[0], {})
    return open_storage(url, Settings(storage_options=options))


@pytest.mark.parametrize(
    "name", ["a b.parquet", "100%.parquet", "per%20cent.parquet", "#?&.parquet", "ü.parquet"]
)
def test_a_local_file_outside_the_root_is_read_and_counted(tmp_path: Path, name: str) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "other%20place").mkdir()
    outside = tmp_path / "other%20place" / name
    outside.write_bytes(b"body")
    storage = opened(str(tmp_path / "t"))
    for spelled in (outside.as_uri(), outside.as_uri().replace("file:///", "file:/")):
        place, found = storage_of(storage, canonical_path(spelled, storage.root))
        assert place.get(found) == b"body"
    assert storage.counters.snapshot().requests == 2


def test_a_file_below_the_root_stays_there(tmp_path: Path) -> None:
    storage = opened(str(tmp_path))
    assert storage_of(storage, "p=1/f.parquet") == (storage, "p=1/f.parquet")


@pytest.mark.parametrize(
    ("root", "path", "where"),
    [
        ("s3://bucket/t", "s3a://bucket/u%20v/f.parquet", "s3://bucket/u%20v"),
        (
            "abfss://c@acct/t",
            "abfss://c@acct.dfs.core.windows.net/u/f.parquet",
            "abfss://c@acct.dfs.core.windows.net/u",
        ),
        ("abfss://c@acct/t", "/u/f.parquet", "abfss://c@acct.dfs.core.windows.net/u"),
    ],
)
def test_another_place_in_the_same_store_is_asked_through_the_same_client(
    root: str, path: str, where: str
) -> None:
    storage = opened(root)
    place, name = storage_of(storage, canonical_path(path, storage.root))
    assert (place.root, name) == (where, "f.parquet")
    assert place.counters is storage.counters


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
        storage_of(opened("s3://bucket/t"), path)
    assert told.value.where == path


def test_a_store_is_refused_by_a_local_table(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedTableError, match="another store"):
        storage_of(opened(str(tmp_path)), "s3://bucket/f.parquet")
