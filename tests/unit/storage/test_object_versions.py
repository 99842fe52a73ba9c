"""Bytes of two versions of an object are never taken for one."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from lazydelta import limits
from lazydelta.errors import StorageError
from lazydelta.settings import Settings
from lazydelta.storage import Deadline, ObjectReplacedError, RangedFile, open_storage
from lazydelta.storage.object_versions import ObjectVersions

BODY = bytes(range(256)) * 1000


def test_another_e_tag_than_at_first_is_an_error_that_names_the_object() -> None:
    versions = ObjectVersions()
    versions.check("x", "one", "s3://b/x")
    versions.check("x", "one", "s3://b/x")
    versions.check("y", "two", "s3://b/y")
    with pytest.raises(ObjectReplacedError, match="was replaced") as caught:
        versions.check("x", "two", "s3://b/x")
    assert caught.value.where == "s3://b/x"
    assert "read again" in caught.value.fix
    versions.check("x", "two", "s3://b/x")  # who reads anew reads the new one


def test_a_store_without_e_tags_is_believed() -> None:
    versions = ObjectVersions()
    for etag in ("one", None, "one", None):
        versions.check("x", etag, "s3://b/x")


def test_what_was_read_at_the_opening_holds_for_scans_and_one_scan_does_not_bind_another() -> None:
    opening = ObjectVersions()
    opening.check("footer", "one", "")
    scan, later = ObjectVersions(opening), ObjectVersions(opening)
    with pytest.raises(ObjectReplacedError):
        scan.check("footer", "two", "")
    scan.check("data", "one", "")
    later.check("data", "two", "")
    later.check("footer", "two", "")  # forgotten with the first error


def test_a_bounded_number_is_remembered_those_used_last() -> None:
    versions = ObjectVersions()
    for number in range(limits.OBJECT_VERSIONS_MAX + 10):
        versions.check(f"{number}", "one", "")
        versions.check("0", "one", "")
    assert len(versions._etags) == limits.OBJECT_VERSIONS_MAX
    versions.check("1", "two", "")
    with pytest.raises(ObjectReplacedError):
        versions.check("0", "two", "")


@pytest.mark.parametrize("way", ["in its place", "over it", "over it, same length"])
def test_a_local_file_that_is_replaced_between_two_ranges_is_noticed(tmp_path: Path, way: str) -> None:
    path = tmp_path / "f.parquet"
    path.write_bytes(BODY)
    storage = open_storage(str(tmp_path), Settings()).scoped(Deadline.after(0))
    file = RangedFile(storage, "f.parquet", len(BODY))
    assert file.read(10) == BODY[:10]
    time.sleep(0.02)  # the clock of a file system is coarse
    if way == "in its place":
        (tmp_path / "new").write_bytes(BODY)
        (tmp_path / "new").replace(path)
    else:
        path.write_bytes(bytes(len(BODY)) if way.endswith("same length") else BODY + b"more")
    file.seek(100)
    with pytest.raises(ObjectReplacedError) as caught:
        file.read(10)
    assert caught.value.where.endswith("/f.parquet")
    assert isinstance(caught.value, StorageError)


def test_a_local_file_that_changes_while_it_streams_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_bytes(BODY)
    storage = open_storage(str(tmp_path), Settings())
    stream = storage.get_stream("c.json", 1000)
    next(stream)
    time.sleep(0.02)
    path.write_bytes(BODY[::-1])
    with pytest.raises(ObjectReplacedError):
        list(stream)


def test_links_and_reads_are_no_changes_and_our_own_writes_are_none_either(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path), Settings())
    assert storage.put_if_absent("x", b"first")
    assert storage.get_range("x", 0, 2) == b"fi"
    (tmp_path / "y").hardlink_to(tmp_path / "x")
    assert storage.get_range("x", 2, 3) == b"rst"
    assert storage.delete("x")
    assert storage.put_if_absent("x", b"second")
    assert storage.get_range("x", 0, 6) == b"second"
