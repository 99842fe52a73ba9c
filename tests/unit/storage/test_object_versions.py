"""Bytes of two versions of an object are never taken for one."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from lazydelta import limits
from lazydelta.errors import StorageError
from lazydelta.settings import Settings
from lazydelta.storage import Deadline, ObjectReplacedError, RangedFile, open_storage

BODY = bytes(range(256)) * 1000


def replace(path: Path, body: bytes = BODY[::-1]) -> None:
    """Another file in the place of this one, which the coarse clock of a file system may not tell apart."""
    (path.parent / "new").write_bytes(body)
    (path.parent / "new").replace(path)


def test_another_version_than_at_first_is_an_error_that_names_the_object(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(BODY)
    (tmp_path / "y").write_bytes(BODY)
    opened = open_storage(str(tmp_path), Settings())
    storage = opened.scoped(Deadline())
    assert storage.get_range("x", 0, 9) == storage.get_range("y", 0, 9) == BODY[:9]
    replace(tmp_path / "x")
    with pytest.raises(ObjectReplacedError, match="was replaced") as caught:
        storage.get_range("x", 0, 9)
    assert caught.value.where.endswith("/x")
    assert "read again" in caught.value.fix
    assert storage.get_range("y", 0, 9) == BODY[:9]
    assert opened.scoped(Deadline()).get_range("x", 0, 9) == BODY[::-1][:9]


@pytest.mark.parametrize("is_known_since_the_opening", [False, True])
def test_the_first_version_stays_the_one_until_the_object_is_read_again_on_purpose(
    tmp_path: Path, is_known_since_the_opening: bool
) -> None:
    """What reads side by side with the request that met the other version must not go on with it."""
    (tmp_path / "x").write_bytes(BODY)
    opening = open_storage(str(tmp_path), Settings())
    scan = opening.scoped(Deadline())
    (opening if is_known_since_the_opening else scan).get_range("x", 0, 9)
    replace(tmp_path / "x")
    for _ in range(3):
        with pytest.raises(ObjectReplacedError) as caught:
            scan.get_range("x", 9, 9)
    scan.forget_version(caught.value.where)
    assert scan.get_range("x", 0, 9) == BODY[::-1][:9]
    replace(tmp_path / "x", BODY)
    with pytest.raises(ObjectReplacedError):
        scan.get_range("x", 9, 9)


def test_what_was_read_at_the_opening_holds_for_scans_and_one_scan_does_not_bind_another(
    tmp_path: Path,
) -> None:
    for name in ("footer", "data"):
        (tmp_path / name).write_bytes(BODY)
    opening = open_storage(str(tmp_path), Settings())
    opening.get_range("footer", 0, 9)
    scan, later = opening.scoped(Deadline()), opening.scoped(Deadline())
    scan.get_range("data", 0, 9)
    replace(tmp_path / "footer")
    replace(tmp_path / "data")
    with pytest.raises(ObjectReplacedError):
        scan.get_range("footer", 0, 9)
    later.get_range("data", 0, 9)
    later.get_range("footer", 0, 9)  # forgotten with the first error


def test_a_bounded_number_is_remembered_those_used_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "OBJECT_VERSIONS_MAX", 4)
    storage = open_storage(str(tmp_path), Settings()).scoped(Deadline())
    for name in "abcdef":
        (tmp_path / name).write_bytes(BODY)
        storage.get_range(name, 0, 9)
        storage.get_range("a", 0, 9)
    replace(tmp_path / "b")
    replace(tmp_path / "a")
    assert storage.get_range("b", 0, 9) == BODY[::-1][:9]  # the first was forgotten
    with pytest.raises(ObjectReplacedError):
        storage.get_range("a", 0, 9)


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
