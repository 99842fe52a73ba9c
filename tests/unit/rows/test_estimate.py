"""What a scan expects to give, by what was read so far."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

import lazydelta as ld
from tests.support.actions import add, stats
from tests.support.row_tables import HOURS, ROWS_A_FILE, readings_table
from tests.support.table_builder import TableBuilder


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> ld.Table:
    return ld.open(readings_table(tmp_path_factory.mktemp("readings")))


def data_bytes(table: ld.Table) -> int:
    return sum(file.size for file in table.scan().files())


def test_before_a_run_the_whole_table_is_told_by_its_checksum(tmp_path: Path) -> None:
    files = [add(f"part-{number}", stats=stats(10)) for number in range(40)]
    builder = TableBuilder(tmp_path).commit(files).crc()
    told = ld.open(str(builder.path)).scan().estimate()
    assert (told.files, told.is_exact, told.rows) == (40, True, None)
    assert told.bytes == sum(file["size"] for file in files)
    filtered = ld.open(str(builder.path)).scan("date = '2026-02-08'").estimate()
    assert (filtered.files, filtered.is_exact) == (40, False)


def test_without_one_the_sizes_of_the_log_tell_about_how_many(table: ld.Table) -> None:
    told = table.scan().estimate()
    assert HOURS / 3 <= told.files <= HOURS * 3
    assert (told.bytes, told.is_exact) == (None, False)


@pytest.mark.parametrize("file_count", [0, 1, 3])
def test_a_small_log_that_opening_has_read_is_counted(tmp_path: Path, file_count: int) -> None:
    builder = TableBuilder(tmp_path).commit([add(f"part-{at}", stats=stats(10)) for at in range(file_count)])
    for _ in range(3):  # the later ones open it from the cache
        opened = ld.open(str(builder.path), storage_options={"delta.cache.bytes": "1000000"})
        told = opened.scan().estimate()
        assert (told.files, told.is_exact) == (file_count, False)


def test_a_run_to_the_end_tells_files_and_bytes_exactly(table: ld.Table) -> None:
    scan = table.scan("_event_hour >= '2026021005'")
    files = list(scan.files())
    told = scan.estimate()
    assert (told.files, told.bytes, told.is_exact) == (HOURS - 5, sum(file.size for file in files), True)


def test_rows_are_told_by_the_files_that_were_opened(table: ld.Table) -> None:
    scan = table.scan()
    list(scan.batches())
    told = scan.estimate()
    assert (told.rows, told.bytes, told.is_exact) == (HOURS * ROWS_A_FILE, data_bytes(table), True)


def test_a_run_part_of_the_way_is_carried_on(table: ld.Table) -> None:
    scan = table.scan(batch_size=2)
    with closing(scan.file_batches()) as batches:
        next(batches)
    told = scan.estimate()
    assert not told.is_exact
    assert told.bytes is not None
    assert 0.5 <= told.bytes / (told.files * data_bytes(table) / HOURS) <= 2
    assert told.source.endswith("part of the way")


def test_a_filter_that_drops_files_makes_the_estimate_smaller(tmp_path: Path) -> None:
    dates = [f"2026-02-{day:02}" for day in (8, 9)]
    files = [add(f"part-{at}", partition={"date": dates[at % 2]}) for at in range(400)]
    builder = TableBuilder(tmp_path).commit(files).crc()
    scan = ld.open(str(builder.path)).scan("date = '2026-02-09'", batch_size=10)
    with closing(scan.file_batches()) as batches:
        next(batches)
    assert 150 <= scan.estimate().files <= 250


def test_an_empty_result_is_told_as_such(table: ld.Table) -> None:
    scan = table.scan("_event_hour = 'none'")
    assert list(scan.batches()) == []
    told = scan.estimate()
    assert (told.files, told.rows, told.is_exact) == (0, 0, True)
