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
from lazydelta.errors import CorruptDataError, InvalidRequestError
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
    "select count(*), max(a.device) from t a join t b on a.id = b.id + 1 where b.value > 5",
    "select id from t where id in (select max(id) from t group by device)",
    "select a.id, (select max(value) from t) from t a where a._event_hour = '2026021003' order by id",
    "select max(id) from (select * from t where _event_hour < '2026021001' union all "
    "select * from t where _event_hour > '2026021006')",
    "select t.id from t anti join (select id from t where _event_hour > '2026021000') b using (id)",
    "select a.id, b.id from t a left join t b on a.id = b.id + 239 order by all",
    "with c as (select * from t where id > 100) select count(c1.id) from c c1 join c c2 using (id)",
    "select device, count(*) from t group by device order by device limit 3",
    "select count(distinct device), sum(id) from t limit 7",
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
    ("query", "why"),
    [
        ("select * from t limit 5", "LIMIT"),
        ("select * from (select * from t limit 50) where id > 3", "LIMIT"),
        ("select count(*) from (select device from t limit 50) group by device limit 2", "LIMIT"),
        ("select distinct device from t limit 2", "LIMIT"),
        ("select count(*) from t, range(3)", "also reads RANGE"),
        ("select count(*) from t", "counted by the log"),
        ("select count(*) from t where _event_hour < '2026021003'", "counted by the log"),
        ("select 1; select max(id) from t", "not one SELECT"),
        (
            "with recursive r(n) as (select min(id) from t union all select n + 1 from r join t on "
            "r.n = t.id where n < 5) select * from r",
            "recursive",
        ),
    ],
)
def test_other_queries_are_not_handed_over_and_explain_says_why(
    table: ld.Table, query: str, why: str
) -> None:
    found = table.sql(query)
    assert found.handed_over is None
    found.read_all()
    (used,) = found.explain().tables
    assert not used.is_handed_over
    assert used.why_not is not None and why in used.why_not
    assert f"not handed over   {used.why_not}" in str(found.explain())


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


def test_files_in_sparks_legacy_calendar_are_read_by_us_and_the_others_handed_over(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "table", schema={"x": "long", "d": "date"}, partition_columns=())
    days = pa.array([-141_428], pa.int32()).view(pa.date32())  # 1582-10-04 of the hybrid calendar
    actions = []
    for x, version in enumerate(("2.4.8", "3.5.1")):
        rows = pa.table({"x": [x], "d": days})
        marked = rows.replace_schema_metadata({"org.apache.spark.version": version})
        actions.append(_file(table, f"{x}.parquet", marked))
    table.commit(actions)
    found = ld.open(table.path).sql("select x, d from t where d < date '1600-01-01' order by x")
    assert found.fetchall() == [(0, dt.date(1582, 10, 4)), (1, dt.date(1582, 10, 14))]
    (used,) = found.explain().tables
    assert (used.is_handed_over, used.files_by_duckdb, used.files_by_us) == (True, 1, 1)
    found = ld.open(table.path).sql("select sum(x) from t")  # in which no date matters
    assert found.fetchall() == [(1,)]
    assert found.explain().tables[0].files_by_duckdb == 2


def test_files_that_lack_a_column_are_read_by_us_and_the_others_handed_over(tmp_path: Path) -> None:
    url = str(tmp_path / "grown")
    write_deltalake(url, pa.table({"x": [1]}))
    write_deltalake(url, pa.table({"x": [2], "y": ["b"]}), mode="append", schema_mode="merge")
    found = ld.open(url).sql("select x, y from t order by x")
    assert found.fetchall() == [(1, None), (2, "b")]
    (used,) = found.explain().tables
    assert (used.is_handed_over, used.files_by_duckdb, used.files_by_us) == (True, 1, 1)
    found = ld.open(url).sql("select sum(x) from t")  # which every file has, in files of two schemas
    assert found.fetchall() == [(3,)]
    (used,) = found.explain().tables
    assert (used.files_by_duckdb, used.files_by_us) == (2, 0)


def test_files_of_another_type_than_the_table_are_not_handed_over(tmp_path: Path) -> None:
    narrow = _with_file(tmp_path, pa.table({"x": pa.array([1], pa.int32())}), {"x": "long"})
    found = ld.open(narrow.path).sql("select x, 2 from t")
    assert found.handed_over is None
    assert found.fetchall() == [(1, 2)]
    assert "other types" in (found.explain().tables[0].why_not or "")


def test_widened_columns_are_read_by_us_and_wide_files_handed_over(tmp_path: Path) -> None:
    widened = TableBuilder(tmp_path / "table", schema={"x": "long", "w": "double"}, partition_columns=())
    old = pa.table({"x": pa.array([1, 2], pa.int32()), "w": pa.array([0.1, 0.5], pa.float32())})
    new = pa.table({"x": pa.array([2**40], pa.int64()), "w": [0.1]})
    widened.commit([_file(widened, "old.parquet", old), _file(widened, "new.parquet", new)])
    found = ld.open(widened.path).sql("select x, w from t where w < 0.3 order by x")
    float_tenth = pa.scalar(0.1, pa.float32()).as_py()
    assert found.fetchall() == [(1, float_tenth), (2**40, 0.1)]
    (used,) = found.explain().tables
    assert (used.files_by_duckdb, used.files_by_us) == (1, 1)


def test_files_with_deletion_vectors_are_read_by_us_and_the_others_handed_over(tmp_path: Path) -> None:
    rows = pa.table({"x": [1, 2, 3]})
    deleted = _with_file(tmp_path, rows, {"x": "long"}, vector=inline_vector([1]))
    found = ld.open(deleted.path).sql("select x, 1 from t order by x")
    assert found.handed_over is None
    assert "1 of its 1 files have deletion vectors" in (found.explain().tables[0].why_not or "")
    assert found.fetchall() == [(1, 1), (3, 1)]
    deleted.commit([_file(deleted, "whole.parquet", pa.table({"x": [2, 4]}))])
    found = ld.open(deleted.path).sql("select a.x from t a join t b using (x) where a.x > 1 order by x")
    assert found.handed_over == "t"
    assert found.fetchall() == [(2,), (3,), (4,)]
    (used,) = found.explain().tables
    assert (used.files_by_duckdb, used.files_by_us) == (1, 1)
    assert [scan.report.rows.rows_read for scan in used.scans if scan.report and scan.report.rows] != []


def test_a_table_with_column_mapping_is_not_handed_over(tmp_path: Path) -> None:
    mapped = TableBuilder(
        tmp_path / "table", schema={"x": "long"}, partition_columns=(), column_mapping="name"
    )
    mapped.commit([_file(mapped, "f.parquet", pa.table({"x": [1], "col-x": [2]}))])
    found = ld.open(mapped.path).sql("select x, 0 from t order by x")
    assert found.handed_over is None
    assert found.fetchall() == [(2, 0)]
    assert found.explain().tables[0].why_not == "its columns are mapped by name"


def test_each_table_of_a_join_is_judged_by_itself(table: ld.Table, tmp_path: Path) -> None:
    rows = pa.table({"id": list(range(240))})
    deleted = _with_file(tmp_path, rows, {"id": "long"}, vector=inline_vector([7]))
    query = "select count(*), max(value) from a join b using (id) where a._event_hour < '2026021002'"
    found = ld.sql(query, a=table, b=ld.open(deleted.path))
    assert found.handed_over == "a"
    assert found.fetchall()[0][0] == 59
    told = {used.name: used for used in found.explain().tables}
    assert (told["a"].files_by_duckdb, told["a"].predicate) == (2, "_event_hour < '2026021002'")
    assert "deletion vectors" in (told["b"].why_not or "")
    assert told["b"].scans != []


def test_a_filter_of_each_part_of_a_query_keeps_its_files(table: ld.Table) -> None:
    query = (
        "select count(*) from t a join t b on a.id = b.id - 210 "
        "where a._event_hour = '2026021000' and b._event_hour = '2026021007'"
    )
    found = table.sql(query)
    assert found.fetchall() == [(30,)]
    assert found.explain().tables[0].files_by_duckdb == 2


def test_nan_is_the_greatest_whoever_reads_it(tmp_path: Path) -> None:
    values = [0.1, float("nan"), 0.2, float("inf"), -0.0, None]
    rows = pa.table({"v": pa.array(values), "f": pa.array(values, pa.float32()), "i": list(range(6))})
    table = ld.open(
        _with_file(tmp_path, rows, {"v": "double", "f": "float", "i": "long"}, row_group_size=2).path
    )
    for query, expected in (
        ("select i from t where v > 0.5 order by i", [1, 3]),
        ("select i from t where f > 0.5 order by i", [1, 3]),
        ("select i from t where v >= 'nan'::double", [1]),
        ("select i from t where v = 0.0 order by i", [4]),
        ("select i from t where not (v < 0.15) order by i", [1, 2, 3]),
        ("select i from t where v is distinct from 0.1 order by i", [1, 2, 3, 4, 5]),
        ("select i from t where v between 0.15 and 'inf'::double order by i", [2, 3]),
    ):
        found = table.sql(query)
        assert found.handed_over == "t"
        assert [row[0] for row in found.fetchall()] == expected, query


def test_names_that_are_patterns_to_duckdb_stay_with_us(tmp_path: Path) -> None:
    table = _with_file(tmp_path / "a[b]*", pa.table({"x": [1, 2]}), {"x": "long"})
    found = ld.open(table.path).sql("select max(x) from t")
    assert found.handed_over is None
    assert found.fetchall() == [(2,)]


def test_the_setting_that_a_probe_needs_is_as_it_was(table: ld.Table) -> None:
    with ld.connect({"r": table}) as connection:
        setting = "select current_setting('disabled_optimizers')"
        connection.sql("set disabled_optimizers = 'top_n'").close()
        assert connection.sql("select max(id) from r").fetchall() == [(239,)]
        assert connection.sql(setting).fetchall() == [("top_n",)]


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
    report = found.explain()
    assert report.fallbacks != [] and victim.name in report.fallbacks[0]
    assert not report.tables[0].is_handed_over


def test_a_query_that_fails_by_itself_is_not_run_again(table: ld.Table) -> None:
    found = table.sql("select sum(cast(device as integer)) from t")
    assert found.handed_over == "t"
    with pytest.raises(InvalidRequestError, match="convert"):
        found.fetchall()
    assert found.explain().fallbacks == []
    assert found.handed_over == "t"


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
    return table.commit([_file(table, "f.parquet", rows, vector=vector, **options)])


def _file(table: TableBuilder, name: str, rows: pa.Table, *, vector: Any = None, **options: Any) -> Any:
    """The `add` of a file that pyarrow writes."""
    path = table.path / name
    pq.write_table(rows, path, **options)
    return add(name, partition={}, size=path.stat().st_size, deletion_vector=vector)
