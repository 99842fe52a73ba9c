"""Small commits that are there come as one slice, which says the same as they do one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import lazydelta as ld
from lazydelta import limits
from lazydelta.log import CommitSlice, ReverseCommitReader, find_segment, newest_first
from lazydelta.settings import Settings
from lazydelta.storage import open_storage
from tests.support.actions import add
from tests.support.reading import live_keys
from tests.support.table_builder import TableBuilder

SMALL = 300 * limits.KIB  # three fit into a slice


def slices_of(folder: Path, *, joins: bool = True) -> Iterator[CommitSlice]:
    """The tail's slices, newest first, of commits whose bytes are all there."""
    storage = open_storage(str(folder), Settings())
    files = newest_first(find_segment(storage, None))
    bodies = {file.name: storage.get(file.name) for file in files}
    return ReverseCommitReader(storage, kept=bodies).slices(files, joins=joins)


def padded(table: TableBuilder, path: str) -> None:
    """A commit of one file and many bytes."""
    table.commit([path], extra_actions=[{"txn": {"appId": "x" * SMALL, "version": 1}}])


def test_small_commits_come_as_one_slice_newer_ones_first(tmp_path: Path) -> None:
    TableBuilder(tmp_path).commit(["a", "b"]).commit(["c"], ["a"]).commit(["a"], ["c"])
    (whole,) = slices_of(tmp_path)
    assert (whole.version, whole.oldest, whole.is_first, whole.is_last) == (2, 0, True, True)
    assert [one.path for one in whole.adds] == ["a", "c", "a", "b"]
    assert [one.path for one in whole.removes] == ["c", "a"]
    by_line = {
        **dict(zip(whole.add_lines, "acab", strict=True)),
        **dict(zip(whole.remove_lines, "CA", strict=True)),
    }
    # Of each commit the adds stand before the removes, whatever order the file has.
    assert "".join(by_line[line] for line in sorted(by_line)) == "aCcAab"
    assert whole.others == Counter(commitInfo=3, metaData=1, protocol=1)
    assert [one.version for one in whole.joined] == [2, 1, 0]


def test_a_commit_comes_by_itself_unless_asked_otherwise(tmp_path: Path) -> None:
    TableBuilder(tmp_path).commit(["a"]).commit(["b"])
    assert [(part.version, part.oldest, part.joined) for part in slices_of(tmp_path, joins=False)] == [
        (1, 1, ()),
        (0, 0, ()),
    ]


def test_what_is_joined_is_no_larger_than_a_slice(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path)
    for number in range(7):
        padded(table, str(number))
    assert [(part.version, part.oldest) for part in slices_of(tmp_path)] == [(6, 4), (3, 1), (0, 0)]


def test_a_commit_larger_than_a_slice_is_not_joined(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit(["a"]).commit(["b"])
    table.commit(["c"], extra_actions=[{"txn": {"appId": "x" * (4 * SMALL), "version": 1}}])
    table.commit(["d"]).commit(["e"])
    assert [(part.version, part.oldest) for part in slices_of(tmp_path)] == [
        (4, 3),
        (2, 2),
        (2, 2),  # it comes in two
        (1, 0),
    ]


def test_a_compacted_range_is_not_joined(tmp_path: Path) -> None:
    TableBuilder(tmp_path).commit(["a"]).commit(["b"]).compact(0, 1).commit(["c"]).commit(["d"])
    found = [(part.version, part.oldest, len(part.joined)) for part in slices_of(tmp_path)]
    assert found == [(3, 2, 2), (1, 0, 0)]


def test_files_that_look_alike_are_told_apart_in_one_slice(tmp_path: Path) -> None:
    # Of one hash: see tests/property/test_remove_set.py.
    names = [f"{'x' * 8}{number:06d}{'y' * 60}" for number in range(6)]
    vector = {"storageType": "i", "pathOrInlineDv": "0rr91", "sizeInBytes": 4}
    table = TableBuilder(tmp_path).commit(names[:2]).checkpoint()
    table.commit(names[2:4]).commit([add(names[3], deletion_vector=vector)], [names[3], names[0]])
    table.commit([names[4], names[4]], [names[2]]).commit([names[2]])
    for strategy in ("reverse", "forward"):
        assert live_keys(tmp_path, strategy=strategy) == table.live()


def test_a_limit_and_a_strict_scan_take_commits_one_by_one(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit(["a"])
    for name in "bcdef":
        table.commit([name])
    limited = ld.open(str(tmp_path)).scan(limit=1)
    assert [file.path for file in limited.files()] == ["f"]
    assert limited.explain().commits_read == 1
    strict = ld.open(str(tmp_path)).scan(strict=True, strategy="reverse")
    batches = [batch.column("path").to_pylist() for batch in strict.file_batches()]
    assert batches[:5] == [["f"], ["e"], ["d"], ["c"], ["b"]]


def test_every_commit_of_a_slice_counts(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit(["a"]).checkpoint()
    for name in "bcdef":
        table.commit([name])
    scan = ld.open(str(tmp_path)).scan(strategy="reverse")
    assert [file.path for file in scan.files()] == ["f", "e", "d", "c", "b", "a"]
    assert scan.explain().commits_read == 5
