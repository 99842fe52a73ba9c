"""Files that DuckDB reads by itself: when, and that the answer stays the same."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

import lazydelta as ld
from lazydelta import limits
from lazydelta.errors import CorruptDataError
from tests.support.actions import add
from tests.support.deletion_vector_writer import inline_vector
from tests.support.row_tables import readings_table
from tests.support.table_builder import TableBuilder

WHOLE = [
    "select device, count(*), max(value) from t group by device",
    "select _event_hour, min(id) from t group by _event_hour",
    "select max(id) from t where _event_hour >= '2026021004' and value < 5",
    "select id, device from t where device is null or value > 9 order by id",
    "select max(third) from (select * from t) as s(first, second, third, fourth)",
    "select id, row_number() over (partition by device order by id) from t order by all",
    "with c as (select * from t where id > 100) select count(*), max(device) from c where value < 3",
    "select count(*) from t where _event_hour = '2026021099' and id > 0 or device = 'sensor-1'",
]


@pytest.fixture(autouse=True)
def small_files_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HANDOVER_BYTES_MIN", 0)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> ld.Table:
    return ld.open(readings_table(tmp_path_factory.mktemp("handover")))


@pytest.mark.parametrize("query", WHOLE)
def test_the_answer_is_the_same_whoever_reads_the_files(
    table: ld.Table, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_duckdb = table.sql(query)
    assert by_duckdb.handed_over == "t"
    found = by_duckdb.read_all()
    monkeypatch.setattr(limits, "HANDOVER_FILES_MAX", -1)
    by_us = table.sql(query)
    assert by_us.handed_over is None
    expected = by_us.read_all()
    assert found.schema == expected.schema
    assert sorted(found.to_pylist(), key=repr) == sorted(expected.to_pylist(), key=repr)


@pytest.mark.parametrize(
    "query",
    [
        "select * from t limit 5",
        "select * from (select * from t limit 50) where id > 3",
        "select count(*) from t a join t b using (id)",
        "select count(*) from t, range(3)",
        "select id from t where id in (select max(id) from t)",
        "select count(*) from t",
        "select 1; select max(id) from t",
        "create table c as select * from t",
    ],
)
def test_other_queries_are_not_handed_over(table: ld.Table, query: str) -> None:
    found = table.sql(query)
    assert found.handed_over is None
    found.read_all()


def test_a_scan_with_a_filter_or_a_limit_of_its_own_is_not_handed_over(table: ld.Table) -> None:
    for scan, rows in ((table.scan("id < 9"), 9), (table.scan(limit=4), 4)):
        found = ld.sql("select count(id) from s", s=scan)
        assert found.handed_over is None
        assert found.fetchall() == [(rows,)]


def test_too_many_files_are_not_handed_over(table: ld.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HANDOVER_FILES_MAX", 3)
    assert table.sql("select max(id) from t").handed_over is None
    few = table.sql("select max(id) from t where _event_hour <= '2026021002'")
    assert few.handed_over == "t"
    assert few.fetchall() == [(89,)]


def test_small_files_are_not_handed_over(table: ld.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HANDOVER_BYTES_MIN", limits.MIB)
    assert table.sql("select max(id) from t").handed_over is None


def test_partition_values_are_those_of_the_log_typed_and_null_where_they_are(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "x": [1, 2, 3],
            "day": [dt.date(2026, 2, 8), None, dt.date(2026, 2, 9)],
            "n": [7, 8, None],
            "text": ["it's [x] * ?", "ü/ä", None],
        }
    )
    url = str(tmp_path / "typed")
    write_deltalake(url, rows, partition_by=["day", "n", "text"])
    found = ld.open(url).sql("select x, day, n, text from t order by x")
    assert found.read_all().to_pylist() == rows.to_pylist()
    found = ld.open(url).sql("select sum(x), max(n) from t where day is null")
    assert found.fetchall() == [(2, 8)]


def test_nan_and_null_meet_a_filter_as_usual(tmp_path: Path) -> None:
    url = str(tmp_path / "nan")
    write_deltalake(url, pa.table({"x": [1, 2, 3, 4], "v": [float("nan"), None, 1.0, -0.0]}))
    found = ld.open(url).sql("select x from t where v > 0.5 order by x")
    assert found.handed_over == "t"
    assert found.fetchall() == [(1,), (3,)]


def test_old_timestamps_are_read_as_utc(tmp_path: Path) -> None:
    moments = [
        dt.datetime(2026, 2, 8, 1, 2, 3, 4, tzinfo=dt.UTC),
        None,
        dt.datetime(1950, 1, 1, tzinfo=dt.UTC),
    ]
    rows = pa.table({"ts": pa.array(moments, pa.timestamp("us", "UTC"))})
    table = _with_file(tmp_path, rows, {"ts": "timestamp"}, use_deprecated_int96_timestamps=True)
    found = ld.open(table.path).sql("select ts from t where ts is not null or ts is null")
    assert found.handed_over == "t"
    assert found.read_all()["ts"].to_pylist() == moments


def test_files_that_differ_from_each_other_or_from_the_table_are_not_handed_over(tmp_path: Path) -> None:
    url = str(tmp_path / "grown")
    write_deltalake(url, pa.table({"x": [1]}))
    write_deltalake(url, pa.table({"x": [2], "y": ["b"]}), mode="append", schema_mode="merge")
    found = ld.open(url).sql("select x, y from t order by x")
    assert found.handed_over is None
    assert found.fetchall() == [(1, None), (2, "b")]
    narrow = _with_file(tmp_path / "narrow", pa.table({"x": pa.array([1], pa.int32())}), {"x": "long"})
    found = ld.open(narrow.path).sql("select x, 2 from t")
    assert found.handed_over is None
    assert found.fetchall() == [(1, 2)]


def test_files_with_deletion_vectors_are_not_handed_over(tmp_path: Path) -> None:
    rows = pa.table({"x": [1, 2, 3]})
    deleted = _with_file(tmp_path / "dv", rows, {"x": "long"}, vector=inline_vector([1]))
    found = ld.open(deleted.path).sql("select x, 1 from t order by x")
    assert found.handed_over is None
    assert found.fetchall() == [(1, 1), (3, 1)]


def test_a_file_that_duckdb_cannot_read_is_told_by_us(tmp_path: Path) -> None:
    url = readings_table(tmp_path)
    table = ld.open(url)
    found = table.sql("select max(id), max(value) from t")
    assert found.handed_over == "t"
    victim = sorted(Path(url).glob("_event_hour=*/*.parquet"))[-1]
    victim.unlink()
    with pytest.raises(CorruptDataError) as caught:
        found.fetchall()
    assert victim.name in caught.value.where


def test_a_connection_hands_over_too(tmp_path: Path) -> None:
    url = readings_table(tmp_path)
    with ld.connect({"Readings": url}) as connection:
        connection.sql("create view v as select id * 2 as d from readings").close()
        found = connection.sql("select max(d) from v")
        assert found.fetchall() == [(478,)]
        found = connection.sql("select max(id) from readings")
        assert (found.handed_over, found.fetchall()) == ("Readings", [(239,)])


def _with_file(
    folder: Path, rows: pa.Table, schema: dict[str, str], *, vector: Any = None, **options: Any
) -> TableBuilder:
    """A table of one file that pyarrow writes."""
    table = TableBuilder(folder / "table", schema=schema, partition_columns=())
    path = table.path / "f.parquet"
    pq.write_table(rows, path, **options)
    return table.commit([add("f.parquet", partition={}, size=path.stat().st_size, deletion_vector=vector)])
