"""The first rows by a column: which queries want them, and that parts of the table are enough for them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from deltalake import write_deltalake

import lazydelta as ld
from lazydelta.engines.query_report import QueryReport
from lazydelta.engines.top_rows import TopRows, top_rows
from tests.support.far_moments import FAR_KINDS, far_table

FILES, ROWS = 64, 10
START = dt.datetime(2026, 2, 10, tzinfo=dt.UTC)
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("moment", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
        ("day", pa.date32()),
        ("value", pa.float64()),
        ("name", pa.string()),
    ]
)
NEWEST = FILES * ROWS - 1


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> ld.Table:
    """A file a commit, ten minutes each; every tenth moment of every eighth file is null."""
    path = tmp_path_factory.mktemp("top") / "t"
    for file in range(FILES):
        rows = []
        for row in range(ROWS):
            number = file * ROWS + row
            at = START + dt.timedelta(minutes=number)
            is_null = file % 8 == 0 and row == 0
            rows.append(
                {
                    "id": number,
                    "moment": None if is_null else at,
                    "local": at.replace(tzinfo=None),
                    "day": at.date() + dt.timedelta(days=number),
                    "value": float(number),
                    "name": f"name {number % 7}",
                }
            )
        write_deltalake(str(path), pa.Table.from_pylist(rows, SCHEMA), mode="append")
    return ld.open(path)


def _top(column: str, rows: int, *, down: bool = True, nulls_first: bool = False) -> TopRows:
    return TopRows(table="t", column=column, is_descending=down, nulls_first=nulls_first, rows=rows)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("select * from t order by moment desc limit 5", _top("moment", 5)),
        ("select * from t order by moment limit 5", _top("moment", 5, down=False)),
        (
            "select id from t order by moment desc nulls first, id limit 5 offset 3",
            _top("moment", 5, nulls_first=True),
        ),
        (
            "select moment as id, id as moment from t where id > 3 or name > 'n' order by id desc limit 2",
            _top("moment", 2),
        ),
        ("select upper(name) from (select * from t where id > 3) order by day desc limit 1", _top("day", 1)),
        (
            "with a as (select id as x, name from t), b as (select * from a where name > 'a') "
            "select name from (select * from b order by x desc limit 4)",
            _top("id", 4),
        ),
        ("select moment at time zone 'UTC' as m from t order by m desc limit 2", _top("moment", 2)),
        ("select moment at time zone 'Europe/Oslo' as m from t order by m desc limit 2", None),
        ("select moment + interval 1 hour as moment from t order by moment desc limit 5", None),
        ("select -id as id from t order by id limit 5", None),
        ("select * from t order by value desc limit 5", None),
        ("select * from t order by name desc limit 5", None),
        ("select * from t order by moment desc limit 10%", None),
        ("select * from t order by moment desc", None),
        ("select * from t limit 5", None),
        ("select name, max(moment) as m from t group by name order by m desc limit 3", None),
        ("select distinct moment from t order by moment desc limit 3", None),
        ("select * from t order by moment desc limit 5 union all select * from t", None),
        ("select a.* from t a join t b using (id) order by a.moment desc limit 5", None),
        ("select * from (select * from t order by moment desc limit 5) where id > 3", None),
        ("select * from (select * from t limit 50) order by moment desc limit 5", None),
        ("select * from (select * from t order by id limit 50) order by moment desc limit 5", None),
        ("select id, row_number() over (order by id) as n, moment from t order by moment desc limit 5", None),
        ("select unnest([id, id]), moment from t order by moment desc limit 5", None),
        ("select * from t using sample 5 rows order by moment desc limit 5", None),
        ("select count(*) from (select * from t order by moment desc limit 5)", None),
        ("select * from t order by (select max(id) from t) limit 5", None),
    ],
)
def test_the_plan_tells_what_a_query_wants_the_first_rows_of(query: str, expected: TopRows | None) -> None:
    if query.endswith("union all select * from t"):
        query = "(" + query.replace(" union", ") union")
    session = duckdb.connect()
    session.execute("set TimeZone = 'UTC'")
    assert top_rows(session, query, "t", SCHEMA) == expected
    assert session.execute("select count(*) from duckdb_tables() where temporary").fetchall() == [(0,)]


def _ids(query: str, table: ld.Table) -> tuple[list[Any], QueryReport]:
    """Any: values of the first column."""
    if query.startswith("t |"):
        kql = ld.kql(query, t=table)
        return kql.read_all().column(0).to_pylist(), kql.explain().run
    sql = ld.sql(query, t=table)
    return sql.read_all().column(0).to_pylist(), sql.explain()


def _files_opened(report: QueryReport) -> int:
    scans = (scan.report for use in report.tables for scan in use.scans)
    return sum(scan.rows.files_opened for scan in scans if scan is not None and scan.rows is not None)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("select id from t order by moment desc limit 3", [NEWEST, NEWEST - 1, NEWEST - 2]),
        ("select id from t order by local desc limit 2 offset 5", [NEWEST - 5, NEWEST - 6]),
        ("select id from t order by id limit 3", [0, 1, 2]),
        ("select id from t order by day desc limit 1", [NEWEST]),
        ("select id from t where id < 400 order by moment desc limit 2", [399, 398]),
        (
            "select id from t where length(name) = 6 and name[6] = '3' order by id desc limit 2",
            [NEWEST - (NEWEST - 3) % 7, NEWEST - (NEWEST - 3) % 7 - 7],
        ),
        ("t | top 2 by moment | project id", [NEWEST, NEWEST - 1]),
        ("t | where name has '5' | top 1 by moment | project id", [NEWEST - (NEWEST - 5) % 7]),
        ("t | order by id asc | take 2 | project id", [0, 1]),
    ],
)
def test_few_files_are_opened_for_the_first_rows(table: ld.Table, query: str, expected: list[int]) -> None:
    found, report = _ids(query, table)
    assert found == expected
    assert len(report.windows) == 1
    assert _files_opened(report) <= 9
    assert all(use.listings for use in report.tables)


@pytest.mark.parametrize(
    ("query", "check"),
    [
        ("select id from t order by moment desc nulls first, id limit 9", lambda ids: ids[:8] == _null_ids()),
        ("t | top 9 by moment asc | project id", lambda ids: sorted(ids[:8]) == _null_ids()),
        ("select id from t order by moment nulls last limit 1", lambda ids: ids == [1]),
    ],
)
def test_rows_without_a_value_are_where_the_query_wants_them(
    table: ld.Table, query: str, check: Callable[[list[int]], bool]
) -> None:
    found, report = _ids(query, table)
    assert check(found), found
    assert len(report.windows) == 1


def _null_ids() -> list[int]:
    return [file * ROWS for file in range(0, FILES, 8)]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("select id from t where name || id = 'name 11' order by moment desc limit 2", [1]),
        ("select id from t where value < 0 order by moment desc limit 2", []),
        ("select id from t order by moment desc, id limit 1000", None),
    ],
)
def test_the_whole_table_is_read_where_its_parts_have_too_few(
    table: ld.Table, query: str, expected: list[int] | None
) -> None:
    found, report = _ids(query, table)
    assert report.is_finished
    assert found == expected if expected is not None else len(found) == FILES * ROWS
    assert all("rows" in window for window in report.windows)


@pytest.mark.parametrize(
    "query", ["select id from t order by id % 10, id limit 3", "select id from t order by value desc limit 3"]
)
def test_other_orders_read_the_table_as_ever(table: ld.Table, query: str) -> None:
    found, report = _ids(query, table)
    assert found == ([0, 10, 20] if "%" in query else [NEWEST, NEWEST - 1, NEWEST - 2])
    assert report.windows == []


def test_a_key_that_lies_anyhow_is_not_looked_for_in_parts(tmp_path: Path) -> None:
    rows = pa.table({"file": [n % 40 for n in range(400)], "key": [n * 7919 % 400 for n in range(400)]})
    write_deltalake(str(tmp_path / "t"), rows, partition_by=["file"])
    found, report = _ids("select key from t order by key desc limit 3", ld.open(tmp_path / "t"))
    assert found == [399, 398, 397]
    assert report.windows == []


@pytest.mark.parametrize("kind", FAR_KINDS, ids=str)
@pytest.mark.parametrize("direction", ["asc", "desc"])
def test_bounds_that_python_has_no_words_for_are_no_error(
    tmp_path: Path, kind: pa.DataType, direction: str
) -> None:
    far_table(tmp_path, kind, files=40)
    found, _ = _ids(f"select id from t order by moment {direction} limit 3", ld.open(tmp_path))
    assert found == ([0, 1, 2] if direction == "asc" else [39, 38, 37])


def test_several_tables_may_have_names_and_one_be_read(table: ld.Table) -> None:
    result = ld.sql("select id from b order by moment desc limit 1", a=table, b=table)
    assert result.read_all().column("id").to_pylist() == [NEWEST]
    assert len(result.explain().windows) == 1


def test_a_session_gives_the_first_rows_again_and_again(table: ld.Table) -> None:
    with ld.connect({"t": table}) as session:
        for rows in (2, 3):
            found = session.sql(f"select id from t order by moment desc limit {rows}").read_all()
            assert found.column("id").to_pylist() == [NEWEST - number for number in range(rows)]
        assert session.sql("select count(*) as n from t").read_all().column("n").to_pylist() == [640]
