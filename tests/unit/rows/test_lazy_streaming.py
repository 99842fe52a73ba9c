"""The seeds' tests of lazy record batches, by name: for each, the lazy path against the eager one."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
import textwrap
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from deltalake import WriterProperties, write_deltalake

import lazydelta as ld
from lazydelta.errors import InvalidRequestError
from tests.support.row_tables import HOURS, ROWS_A_FILE, all_readings, by_id, readings_table, rows_of
from tests.support.table_builder import TableBuilder

TIME_COLUMN = '{"lazydelta.time.column":"day"}'


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> ld.Table:
    return ld.open(readings_table(tmp_path_factory.mktemp("readings")))


def sums_by_device(batches: ld.LazyRecordBatchIterator) -> dict[str | None, float]:
    """A GROUP BY that holds the groups alone."""
    totals: Counter[str | None] = Counter()
    for batch in batches:
        grouped = pa.Table.from_batches([batch]).group_by("device").aggregate([("value", "sum")])
        for row in grouped.to_pylist():
            totals[row["device"]] += row["value_sum"]  # type: ignore[assignment]
    return {device: round(total, 6) for device, total in totals.items()}


def test_lazy_basic_query(table: ld.Table) -> None:
    lazy, eager = rows_of(table.scan()), rows_of(table.scan(), lazy=False)
    assert lazy == eager
    assert by_id(lazy) == all_readings()


def test_lazy_groupby(table: ld.Table) -> None:
    scan = table.scan()
    lazy, eager = sums_by_device(scan.batches()), sums_by_device(scan.batches(lazy=False))
    expected: Counter[str | None] = Counter()
    for row in all_readings():
        expected[row["device"]] += row["value"]
    assert lazy == eager == {device: round(total, 6) for device, total in expected.items()}


def test_lazy_filter(table: ld.Table) -> None:
    scan = table.scan("value > 7.5 and device = 'sensor-1'")
    lazy = rows_of(scan)
    assert lazy == rows_of(scan, lazy=False)
    assert by_id(lazy) == [
        row for row in all_readings() if row["value"] > 7.5 and row["device"] == "sensor-1"
    ]


def test_lazy_with_columns(table: ld.Table) -> None:
    scan = table.scan("value > 7.5")
    lazy = scan.batches(["device", "id"]).read_all()
    assert lazy.equals(scan.batches(["device", "id"], lazy=False).read_all())
    assert lazy.schema.names == ["device", "id"]
    assert sorted(lazy["id"].to_pylist()) == [row["id"] for row in all_readings() if row["value"] > 7.5]


@pytest.mark.parametrize(
    ("date_range", "hours"),
    [
        (("2026021002", "2026021004"), {2, 3, 4}),
        (("2026-02-10T02:59", dt.datetime(2026, 2, 10, 4, tzinfo=dt.UTC)), {2, 3, 4}),
        ((None, "2026021001"), {0, 1}),
        (("2026-02-10T06:30:00", None), {6, 7}),
        ((dt.date(2026, 2, 10), dt.date(2026, 2, 10)), set(range(HOURS))),
        (("2026-02-09", "2026-02-10"), set(range(HOURS))),
        (("20260210", "20260210"), set(range(HOURS))),
        (("2026-02-11", None), set()),
        ((None, None), set(range(HOURS))),
        (
            (
                dt.datetime(2026, 2, 10, 4, tzinfo=dt.timezone(dt.timedelta(hours=1))),
                dt.datetime(2026, 2, 10, 4, tzinfo=dt.UTC),
            ),
            {3, 4},
        ),
    ],
)
def test_lazy_with_date_range(table: ld.Table, date_range: tuple[object, object], hours: set[int]) -> None:
    scan = table.scan("value >= 0")
    lazy = rows_of(scan, date_range=date_range)
    assert lazy == rows_of(scan, date_range=date_range, lazy=False)
    assert {row["id"] // ROWS_A_FILE for row in lazy} == hours
    assert len(lazy) == len(hours) * ROWS_A_FILE
    told = scan.explain()
    assert told.rows is not None
    assert told.rows.files_opened == len(hours), "files outside the range are not opened"


@pytest.mark.parametrize("date_range", ["2026", ("a", "b"), (1, 2), ("2026-02-10",), ("2026-02-30", None)])
def test_a_date_range_that_is_none_is_refused(table: ld.Table, date_range: object) -> None:
    with pytest.raises(InvalidRequestError):
        table.scan().batches(date_range=date_range)  # type: ignore[arg-type]


@pytest.mark.parametrize(("unit", "kind"), [("us", "timestamp"), ("date", "date")])
def test_a_date_range_bounds_a_column_of_times_or_dates_exactly(tmp_path: Path, unit: str, kind: str) -> None:
    first = dt.datetime(2026, 2, 9, 22, tzinfo=dt.UTC)
    times = [first + dt.timedelta(hours=hour) for hour in range(30)]
    rows = {"id": list(range(30)), "day": pa.array(times, pa.timestamp("us", "UTC"))}
    if kind == "date":
        rows["day"] = pa.array([time.date() for time in times], pa.date32())
    write_deltalake(str(tmp_path), pa.table(rows))
    commit = tmp_path / "_delta_log" / f"{0:020}.json"
    commit.write_text(commit.read_text().replace('"configuration":{}', '"configuration":' + TIME_COLUMN))
    scan = ld.open(str(tmp_path)).scan()
    whole_day = [row["id"] for row in rows_of(scan, date_range=("2026-02-10", dt.date(2026, 2, 10)))]
    assert whole_day == list(range(2, 26))
    upto = rows_of(scan, date_range=(None, dt.datetime(2026, 2, 10, 1, tzinfo=dt.UTC)))
    assert [row["id"] for row in upto] == list(range(4 if kind == "timestamp" else 26))


def test_a_date_range_on_a_table_without_a_time_column_is_refused(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path), pa.table({"id": [1]}))
    with pytest.raises(InvalidRequestError, match="no time column"):
        ld.open(str(tmp_path)).scan().batches(date_range=("2026-02-10", None))


@pytest.mark.parametrize("limit", [0, 1, ROWS_A_FILE, 3 * ROWS_A_FILE + 1])
def test_lazy_limit_pushed(table: ld.Table, limit: int) -> None:
    scan = table.scan(limit=limit)
    lazy = rows_of(scan)
    assert lazy == rows_of(scan, lazy=False) == rows_of(table.scan())[:limit]
    told = table.scan(limit=limit)
    rows_of(told)
    report = told.explain().rows
    assert report is not None
    assert report.files_opened == -(-limit // ROWS_A_FILE)


def test_lazy_exhausted_iterator(table: ld.Table) -> None:
    batches = table.scan().batches()
    assert len(list(batches)) > 1
    with pytest.raises(InvalidRequestError, match="read to their end"):
        list(batches)


@pytest.mark.parametrize("lazy", [True, False])
def test_lazy_empty_symbol(tmp_path: Path, lazy: bool) -> None:
    builder = TableBuilder(tmp_path).commit()
    batches = ld.open(str(builder.path)).scan().batches(lazy=lazy)
    assert not batches.has_next()
    assert batches.num_batches == 0
    assert batches.read_all().num_rows == 0
    assert batches.schema == ld.open(str(builder.path)).schema


@pytest.fixture(scope="module")
def wide_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """About 40 MB of rows, in row groups of about 0.6 MB."""
    url = str(tmp_path_factory.mktemp("wide") / "t")
    random = np.random.default_rng(7)
    for file in range(6):
        count = 160_000
        columns = {name: random.random(count) for name in ("a", "b", "c", "value")}
        rows = pa.table({"device": random.integers(0, 50, count) + file, **columns})
        properties = WriterProperties(max_row_group_size=16_000)
        write_deltalake(url, rows, mode="append", writer_properties=properties)
    return url


def peak_bytes(url: str, body: str) -> int:
    """Arrow's greatest memory over a query, in a process of its own."""
    code = f"""
        import json, pyarrow as pa, lazydelta as ld
        table = ld.open({url!r})
        {body}
        print(json.dumps(pa.default_memory_pool().max_memory()))
    """
    run = [sys.executable, "-W", "error", "-c", textwrap.dedent(code)]
    return int(json.loads(subprocess.run(run, capture_output=True, text=True, check=True).stdout))


@pytest.mark.slow
def test_lazy_memory_groupby(wide_url: str) -> None:
    body = (
        "for batch in table.scan().batches(lazy={}):"
        " pa.Table.from_batches([batch]).group_by('device').aggregate([('value', 'sum')])"
    )
    lazy, eager = (peak_bytes(wide_url, body.format(lazy)) for lazy in (True, False))
    assert eager > 35e6
    assert lazy < eager / 2


@pytest.mark.slow
def test_lazy_memory_filter(wide_url: str) -> None:
    body = "rows = sum(batch.num_rows for batch in table.scan('value < 0.9').batches(lazy={}))"
    lazy, eager = (peak_bytes(wide_url, body.format(lazy)) for lazy in (True, False))
    assert eager > 30e6
    assert lazy < eager / 2
