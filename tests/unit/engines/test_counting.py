"""Rows counted by the log: where no file is opened, and where one must be."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import lazydelta as ld
from lazydelta.errors import CorruptDataError, LazyDeltaError
from tests.support.actions import add
from tests.support.deletion_vector_writer import inline_vector
from tests.support.row_tables import ROWS_A_FILE, readings_table
from tests.support.table_builder import TableBuilder

FIELD = pc.field
HOUR = FIELD("_event_hour")


@pytest.fixture
def unreadable(tmp_path: Path) -> ld.Table:
    """A table whose data files are damaged, every one."""
    url = readings_table(tmp_path)
    for path in Path(url).rglob("part-*.parquet"):
        path.write_bytes(b"not parquet")
    return ld.open(url)


@pytest.mark.parametrize(
    ("keep", "hours"),
    [
        (HOUR == "2026021003", 1),
        (HOUR != "2026021003", 7),
        ((HOUR > "2026021001") & (HOUR <= "2026021004"), 3),
        (HOUR.isin(["2026021000", "2026021007", "x"]), 2),
        (~HOUR.isin(["2026021000"]), 7),
        (HOUR.is_null(), 0),
        (HOUR.is_valid(), 8),
        (pc.starts_with(HOUR, "202602100"), 8),
        ((HOUR == "2026021003") | (HOUR == "2026021004"), 2),
        (pc.scalar(True), 8),
        (pc.scalar(False), 0),
    ],
    ids=str,
)
def test_a_filter_on_partition_values_opens_no_file(
    unreadable: ld.Table, keep: pc.Expression, hours: int
) -> None:
    dataset = unreadable.to_pyarrow_dataset()
    assert dataset.count_rows(keep) == hours * ROWS_A_FILE
    assert dataset.filter(keep).count_rows() == hours * ROWS_A_FILE
    assert dataset.to_table(columns=[], filter=keep).num_rows == hours * ROWS_A_FILE


@pytest.mark.parametrize(
    ("where", "rows"),
    [
        ("", 240),
        ("where _event_hour = '2026021003'", 30),
        ("where _event_hour between '2026021001' and '2026021003' or _event_hour = '2026021007'", 120),
        ("where _event_hour in ('2026021001', '2026021003')", 60),
        ("where _event_hour is null", 0),
    ],
)
def test_sql_counts_so_too(unreadable: ld.Table, where: str, rows: int) -> None:
    found = unreadable.sql(f"select count(*) from t {where}")
    assert found.fetchall() == [(rows,)]
    (used,) = found.explain().tables
    assert used.scans[0].columns_read == []


def test_any_other_filter_reads(unreadable: ld.Table) -> None:
    dataset = unreadable.to_pyarrow_dataset()
    for keep in (FIELD("id") < 300, (HOUR == "2026021003") & (FIELD("id") > 0), FIELD("id") * 2 > 0):
        with pytest.raises(CorruptDataError):
            dataset.count_rows(keep)
    with pytest.raises(CorruptDataError):
        unreadable.sql("select count(*) from t where _event_hour like '%3' and id > 0").fetchall()


def test_rows_that_a_deletion_vector_lists_are_not_counted(tmp_path: Path) -> None:
    table = _table(tmp_path)
    table.commit(
        [
            _file(table, "a", "2026-02-08", rows=5, stats={"numRecords": 5}, vector=inline_vector([0, 3])),
            _file(table, "b", "2026-02-08", rows=4, stats={"numRecords": 4}),
            _file(table, "c", "2026-02-09", rows=7, stats=None, vector=inline_vector([6])),
            _file(table, "d", None, rows=2, stats={"numRecords": 2}),
        ]
    )
    (table.path / "a").write_bytes(b"not parquet")
    opened = ld.open(table.path)
    dataset = opened.to_pyarrow_dataset()
    assert dataset.count_rows() == 3 + 4 + 6 + 2
    day = pa.scalar(dt.date(2026, 2, 9))
    assert dataset.count_rows(FIELD("day") < day) == 7
    assert dataset.count_rows(FIELD("day") >= day) == 6  # the log does not count it: its footer does
    assert dataset.count_rows(FIELD("day").is_null()) == 2
    assert opened.sql("select count(*) from t where day is not null").fetchall() == [(13,)]
    assert opened.sql("select count(*) from t where day <> date '2026-02-08'").fetchall() == [(6,)]


def test_a_partition_value_that_is_none_of_its_type_is_not_counted_but_told(tmp_path: Path) -> None:
    table = _table(tmp_path)
    table.commit([_file(table, "a", "yesterday", rows=5, stats={"numRecords": 5})])
    with pytest.raises(LazyDeltaError, match="yesterday"):
        ld.open(table.path).to_pyarrow_dataset().count_rows(FIELD("day") > pa.scalar(dt.date(2026, 2, 9)))


def _table(folder: Path) -> TableBuilder:
    return TableBuilder(folder / "table", schema={"x": "long", "day": "date"}, partition_columns=("day",))


def _file(
    table: TableBuilder, name: str, day: str | None, *, rows: int, stats: Any, vector: Any = None
) -> Any:
    path = table.path / name
    pq.write_table(pa.table({"x": list(range(rows))}), path)
    size = path.stat().st_size
    return add(name, partition={"day": day}, size=size, stats=stats, deletion_vector=vector)
