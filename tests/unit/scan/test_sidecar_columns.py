"""Which bytes of a sidecar a scan reads: the columns it asks for, of split parts only the half it needs."""

from __future__ import annotations

from pathlib import Path

import pytest

import lazydelta as ld
from lazydelta.sidecar import SidecarConfig
from lazydelta.upkeep.build import build_sidecar
from tests.support.actions import add, stats
from tests.support.sidecar_damage import lazy_folder, storage_of
from tests.support.table_builder import TableBuilder

COLUMNS = 200
UNCACHED = {"delta.cache.bytes": "0"}


@pytest.fixture
def wide(tmp_path: Path) -> TableBuilder:
    """A table so wide that its sidecar's parts are split."""
    names = [f"c{number:03}" for number in range(COLUMNS)]
    table = TableBuilder(
        tmp_path, schema=dict.fromkeys(names, "long") | {"date": "date"}, partition_columns=("date",)
    )
    table.commit([_file(number, names) for number in range(60)]).checkpoint(stats="both")
    build_sidecar(storage_of(table), config=SidecarConfig(row_group_rows=10))
    assert list(lazy_folder(table).glob("*.stats.parquet")), "the parts are split"
    return table


def _file(number: int, names: list[str]) -> dict[str, object]:
    low, high = dict.fromkeys(names, number), dict.fromkeys(names, number + 1)
    day = f"2026-02-{1 + number // 10:02}"
    return add(f"f{number:02}", partition={"date": day}, stats=stats(10, low=low, high=high))


def scanned(table: TableBuilder, where: str | None) -> tuple[int, ld.ScanReport]:
    """How many files came, and what was done for them."""
    scan = ld.open(str(table.path), storage_options=UNCACHED).scan(where)
    return len(list(scan.files())), scan.explain()


@pytest.mark.parametrize(("where", "count"), [(None, 60), ("date = '2026-02-03'", 10)])
def test_the_statistics_half_of_a_split_part_stays_closed_unless_a_filter_names_it(
    wide: TableBuilder, where: str | None, count: int
) -> None:
    for half in lazy_folder(wide).glob("*.stats.parquet"):
        half.unlink()
    found, report = scanned(wide, where)
    assert (found, report.fallbacks) == (count, ())
    assert report.source.startswith("sidecar")


def test_a_filter_on_a_statistic_reads_its_columns_alone(wide: TableBuilder) -> None:
    found, report = scanned(wide, "c007 = 35")
    assert (found, report.fallbacks) == (2, ())
    halves = sum(path.stat().st_size for path in lazy_folder(wide).glob("*.stats.parquet"))
    _, plain = scanned(wide, None)
    assert report.bytes_read - plain.bytes_read < halves


def test_without_its_statistics_half_a_filter_on_them_falls_back(wide: TableBuilder) -> None:
    for half in lazy_folder(wide).glob("*.stats.parquet"):
        half.unlink()
    found, report = scanned(wide, "c007 = 35")
    assert found == 2
    assert len(report.fallbacks) == 1
    assert report.source.startswith("checkpoint")
