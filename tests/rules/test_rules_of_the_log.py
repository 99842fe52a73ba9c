"""What a replay of the log must keep, however its commits are read: in slices, together, or one by one."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lazydelta as ld
from lazydelta.errors import LazyDeltaError
from tests.support.actions import add, inline_dv
from tests.support.reading import live_keys
from tests.support.table_builder import TableBuilder

MIB = 1 << 20
WAYS: list[dict[str, Any]] = [{"strategy": "reverse"}, {"strategy": "forward"}, {"order": "asc"}]


def padded(path: str, size: int, **more: Any) -> dict[str, Any]:
    """An add of so many bytes."""
    return add(path, tags={"padding": "x" * size}, **more)


# --- a commit that is read in slices -------------------------------------------


@pytest.fixture(scope="module")
def long_commit(tmp_path_factory: pytest.TempPathFactory) -> TableBuilder:
    """16 MiB that begin with removes, one of a key that is added at the end; another key is added twice."""
    table = TableBuilder(tmp_path_factory.mktemp("long")).commit(["below", "again"]).checkpoint()
    table.commit(["older"])
    adds = [padded(f"big-{number:03}", 128 * 1024) for number in range(128)]
    return table.commit([*adds, add("again"), adds[0]], ["again", "below", "older"]).crc()


@pytest.mark.parametrize("how", WAYS, ids=str)
def test_removes_of_a_long_commit_count_from_its_end_on(
    long_commit: TableBuilder, how: dict[str, Any]
) -> None:
    found = live_keys(long_commit.path, **how)  # none comes twice
    assert found == long_commit.live()
    paths = {path for path, _ in found}
    assert "again" in paths, "the remove stands slices above the add of the same commit, and does not hide it"
    assert not paths & {"below", "older"}, "older files are removed"


def test_a_long_commit_is_never_in_memory_as_a_whole(long_commit: TableBuilder) -> None:
    size = long_commit.log_file(f"{2:020}.json").stat().st_size
    tracemalloc.start()
    try:
        for _ in ld.open(long_commit.path).scan(strategy="reverse").files():
            pass
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < size / 2


# --- commits that are joined ---------------------------------------------------


def batches_of(table: TableBuilder, **how: Any) -> list[list[str]]:
    return [rows["path"].to_pylist() for rows in ld.open(table.path).scan(**how).file_batches(["path"])]


def test_small_commits_come_together_newest_first(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit(["a", "b"]).commit(["c"], ["a"]).commit(["a"], ["c"]).crc()
    assert batches_of(table, strategy="reverse") == [["a", "b"]]


@pytest.mark.parametrize("how", WAYS, ids=str)
def test_in_joined_commits_the_first_line_for_a_key_wins(tmp_path: Path, how: dict[str, Any]) -> None:
    """A remove hides older adds of what it is joined with, and none of its own commit or of a newer one."""
    table = TableBuilder(tmp_path).commit(["kept", "a", "b", "x"]).checkpoint()
    table.commit(["c", "d"], ["b"])
    table.commit([add("a", deletion_vector=inline_dv())], ["a", "c"])
    table.commit(["b", "twice"], ["d"]).commit(["c", "twice"]).commit(["x"], ["x"]).commit([], ["twice"])
    table.crc()
    assert live_keys(tmp_path, **how) == table.live()
    paths = {path for path, _ in table.live()}
    assert paths == {"kept", "a", "b", "c", "x"}


def test_of_an_add_in_several_joined_commits_the_newest_counts(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit([add("a", size=1)]).commit([add("a", size=2)])
    table.commit([add("a", size=3)]).commit([add("b", size=4)]).crc()
    found = [(file.path, file.size) for file in ld.open(tmp_path).scan(strategy="reverse").files()]
    assert found == [("b", 4), ("a", 3)]


DAMAGES = {
    "no JSON": "{not json",
    "a number too large": json.dumps({"add": {**add("z"), "size": 2**70}}),
    "a path that is no text": json.dumps({"add": {**add("z"), "path": "%ff"}}),
    "an unknown deletion vector": json.dumps(
        {"add": {**add("z"), "deletionVector": {"storageType": "q", "pathOrInlineDv": "?", "sizeInBytes": 1}}}
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_is_newer_than_a_damaged_commit_leaves_before_its_error(tmp_path: Path, damage: str) -> None:
    table = TableBuilder(tmp_path).commit(["a"]).commit(["b"]).commit(["c"]).commit(["d"]).crc()
    table.append_to_commit(1, DAMAGES[damage])
    files = ld.open(tmp_path).scan(strategy="reverse").files()
    assert [next(files).path for _ in "dc"] == ["d", "c"]
    rest: list[str] = []
    with pytest.raises(LazyDeltaError):
        rest.extend(file.path for file in files)
    assert "a" not in rest, "nothing older than the damage comes"


# --- a log that is cleaned up under a scan --------------------------------------

KEPT_KEYS = 8 * MIB  # of files of a checkpoint; more of them are not remembered
ONE_BY_ONE = {"delta.cache.bytes": "0", "delta.commit.parallelism": "1"}


def long_names(first: int, count: int) -> list[str]:
    return [f"{number:06}-{'x' * 1000}" for number in range(first, first + count)]


def pull_past_8_mib(batches: Iterator[pa.RecordBatch]) -> list[str]:
    """Paths of more than 8 MiB together, and those of the batch that they end in."""
    found: list[str] = []
    while sum(map(len, found)) <= KEPT_KEYS:
        found += next(batches)["path"].to_pylist()
    return found


def rest_of(batches: Iterator[pa.RecordBatch]) -> list[str]:
    return [path for rows in batches for path in rows["path"].to_pylist()]


def clean_up(table: TableBuilder, checkpoint: int) -> None:
    """What Delta does once there is a newer checkpoint: older ones and the commits below it go."""
    for old in table.log.glob("*.checkpoint.parquet"):
        old.unlink()
    table.checkpoint(version=checkpoint).clean_up(before=checkpoint)


@pytest.mark.parametrize("limit", [None, 10_400])
def test_a_tail_that_is_cleaned_up_after_8_mib_of_keys_is_survived(tmp_path: Path, limit: int | None) -> None:
    table = TableBuilder(tmp_path).commit(["below"]).checkpoint()
    for number in range(11):
        gone = long_names(1000 * (number - 3), 5) if number in (4, 9) else []
        table.commit(long_names(1000 * number, 1000), gone)
    table.crc()
    scan = ld.open(tmp_path, storage_options=ONE_BY_ONE).scan(strategy="reverse", limit=limit)
    batches = scan.file_batches(["path"])
    found = pull_past_8_mib(batches)
    assert len(found) < 10_000, "some commits are still to be read"
    clean_up(table, 10)
    found += rest_of(batches)
    assert len(found) == len(set(found)) == (10_991 if limit is None else limit)
    assert set(found) <= {path for path, _ in table.live()}
    assert scan.explain().fallbacks_by_kind == {"log_cleaned_up": 1}


def test_a_tail_that_is_cleaned_up_after_8_mib_of_the_checkpoint_is_survived(tmp_path: Path) -> None:
    """The checkpoint's files come first; the long commit is read a second time, for its own."""
    table = TableBuilder(tmp_path).commit(long_names(0, 9000)).checkpoint(row_group_rows=1000)
    table.commit([padded(f"tail-{number}", 128 * 1024) for number in range(48)], long_names(0, 7))
    table.commit([*long_names(7, 1), "newest"]).crc()
    scan = ld.open(tmp_path, storage_options=ONE_BY_ONE).scan(strategy="forward")
    batches = scan.file_batches(["path"])
    found = pull_past_8_mib(batches)
    clean_up(table, 2)
    found += rest_of(batches)
    assert len(found) == len(set(found))
    assert set(found) == {path for path, _ in table.live()}
    assert scan.explain().fallbacks_by_kind == {"log_cleaned_up": 1}


def test_a_checkpoint_that_goes_after_8_mib_of_its_keys_ends_the_scan_and_nothing_comes_twice(
    tmp_path: Path,
) -> None:
    table = TableBuilder(tmp_path).commit(long_names(0, 11_000)).checkpoint(row_group_rows=500)
    table.commit(["new"], long_names(0, 5)).crc()
    how = {"strategy": "reverse", "checkpoint_row_groups_per_batch": 1}
    scan = ld.open(tmp_path, storage_options=ONE_BY_ONE).scan(**how)
    batches = scan.file_batches(["path"])
    found = pull_past_8_mib(batches)
    clean_up(table, 1)
    with pytest.raises(LazyDeltaError, match="checkpoint file vanished") as gone:
        for rows in batches:
            found += rows["path"].to_pylist()
    assert "open the table again" in gone.value.fix
    assert len(found) == len(set(found)) < 11_000
