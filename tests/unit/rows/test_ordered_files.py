"""OrderedFileIterator: what it asserts, and where a limit on rows may end it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import lazydelta as ld
from lazydelta import limits
from lazydelta.errors import CorruptLogError
from lazydelta.rows import DataFile
from lazydelta.rows.ordered_files import OrderedFileIterator, _none_twice, in_order
from lazydelta.scan import FileScan
from tests.support.actions import add, inline_dv, stats
from tests.support.table_builder import TableBuilder


def file(path: str, order_value: object = None) -> DataFile:
    return DataFile(path=path, size=1, partition_values={}, raw_path=path, order_value=order_value)


def scan_of(table: TableBuilder, where: str | None = None, *, order: str | None = None) -> FileScan:
    """As a scan of rows with a limit makes it."""
    return ld.open(str(table.path)).scan(where, order=order)._source.with_config(limit=5).rows().files


def names(files: Iterator[DataFile]) -> list[str]:
    return [found.path for found in files]


@pytest.mark.parametrize("descending", [False, True])
def test_files_in_order_pass(descending: bool) -> None:
    files = [file("b"), file("z"), file("a", 1), file("c", 1), file("a", 2)]
    ordered = files[::-1] if descending else files
    assert list(in_order(iter(ordered), descending=descending)) == ordered


@pytest.mark.parametrize("descending", [False, True])
def test_a_file_out_of_order_is_our_own_mistake(descending: bool) -> None:
    files = [file("a", 2), file("a", 1), file("a", 2)]
    with pytest.raises(AssertionError, match="out of order"):
        list(in_order(iter(files), descending=descending))


def test_a_file_that_comes_twice_is_an_error_of_the_log() -> None:
    with pytest.raises(CorruptLogError, match="twice"):
        list(in_order(iter([file("a"), file("a")]), descending=False))
    with pytest.raises(CorruptLogError, match="twice"):
        list(_none_twice(iter([file("a"), file("b"), file("a")])))


def test_nan_comes_after_nothing_and_before_every_value() -> None:
    nan = float("nan")
    files = [file("z"), file("a", nan), file("c", nan), file("b", -1.0), file("d", 0.5)]
    assert len(list(in_order(iter(files), descending=False))) == 5
    assert len(list(in_order(iter(files[::-1]), descending=True))) == 5


def test_files_remembered_are_bounded() -> None:
    count = limits.FILES_REMEMBERED_MAX + 10
    assert sum(1 for _ in _none_twice(file(str(at)) for at in range(count))) == count


@pytest.mark.parametrize("typed", [True, False])
@pytest.mark.parametrize("order", [None, "asc"])
def test_counts_come_from_commits_and_typed_checkpoints_alone(
    tmp_path: Path, typed: bool, order: str | None
) -> None:
    files = [add(f"old-{at}", stats=stats(10)) for at in range(3)]
    table = TableBuilder(tmp_path).commit(files).checkpoint(stats="parsed" if typed else "json")
    table.commit([add("new", stats=stats(7))])
    found = {
        file.path: file.num_records for file in OrderedFileIterator(scan_of(table, order=order), row_limit=99)
    }
    assert found == {"new": 7} | dict.fromkeys(("old-0", "old-1", "old-2"), 10 if typed else None)


def test_deleted_rows_and_unknown_counts_do_not_count(tmp_path: Path) -> None:
    vector = inline_dv()
    table = TableBuilder(tmp_path).commit([add("last", stats=stats(100))])
    table.commit([add("unknown")]).commit([add("deleted", stats=stats(10), deletion_vector=vector)])
    found = OrderedFileIterator(scan_of(table), row_limit=10)
    assert names(iter(found)) == ["deleted", "unknown", "last"]


def test_a_limit_ends_at_the_file_that_fills_it(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path)
    for at in range(6):
        table.commit([add(f"part-{at}", stats=stats(10))])
    for limit, count in ((1, 1), (10, 1), (11, 2), (60, 6), (99, 6)):
        assert len(list(OrderedFileIterator(scan_of(table), row_limit=limit))) == count


def test_a_file_that_the_partition_values_only_might_match_does_not_count(tmp_path: Path) -> None:
    # An empty text is null for a date; files are kept for either reading, rows are not.
    table = TableBuilder(tmp_path).commit([add("match", partition={"date": "2026-02-09"}, stats=stats(10))])
    table.commit([add("odd", partition={"date": ""}, stats=stats(10))])
    found = names(iter(OrderedFileIterator(scan_of(table, "not (date = '2026-02-08')"), row_limit=5)))
    assert "match" in found


def test_an_order_by_statistics_holds_where_counts_are_not_worth_reading(tmp_path: Path) -> None:
    configuration = {"lazydelta.time.column": "value"}
    table = TableBuilder(tmp_path, configuration=configuration, partition_columns=())
    files = [
        add(f"part-{at}", partition={}, stats=stats(10, low={"value": 9 - at}, high={"value": 9}))
        for at in range(4)
    ]
    table.commit(files).checkpoint(stats="json")
    found = names(iter(OrderedFileIterator(scan_of(table, order="asc"), row_limit=99)))
    assert found == [f"part-{at}" for at in (3, 2, 1, 0)]
