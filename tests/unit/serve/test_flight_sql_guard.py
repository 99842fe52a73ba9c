"""Statements that reach beyond the served tables: refused by what they say, and by the session below."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import lazydelta as ld
from lazydelta import limits
from lazydelta.engines.query_plan import plan_facts
from lazydelta.engines.session import SqlOptions
from lazydelta.errors import InvalidRequestError, LazyDeltaError, TableNotFoundError, UnsupportedTableError
from lazydelta.serve.flight_sql.parameter_types import parameter_types
from lazydelta.serve.flight_sql.session import fenced_session
from lazydelta.serve.flight_sql.statements import Statements
from lazydelta.serve.served import Served
from lazydelta.serve.session_fence import check_plan
from lazydelta.serve.sign_in import ANYONE
from lazydelta.serve.statement_bounds import nodes_of
from lazydelta.serve.statement_guard import Guard, NamedTable
from tests.support.row_tables import readings_table
from tests.support.serving import running_server

SECRET = "/etc/passwd"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("guarded")


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[Served]:
    url = readings_table(folder, hours=2)
    more = f'[tables.elsewhere]\nurl = "{url}"\nshare = "lake"\nschema = "raw-data"\n'
    with running_server(folder, {"readings": url}, more) as running:
        yield running.process.served


@pytest.fixture(scope="module")
def statements(served: Served) -> Iterator[Statements]:
    found = Statements(served)
    yield found
    found.close()


@pytest.fixture(scope="module")
def guard() -> Iterator[Guard]:
    found = Guard()
    yield found
    found.close()


def run(statements: Statements, query: str) -> list[dict[str, object]]:
    _, handle = statements.plan(query, ANYONE)
    _, batches = statements.stream(handle, ANYONE, ticket_id="")
    return [row for batch in batches for row in batch.to_pylist()]


# `{table}` is the folder of a served table.
READS_FILES = [
    f"select * from read_csv('{SECRET}')",
    f"select * from read_csv_auto('{SECRET}')",
    f"select * from read_text('{SECRET}')",
    f"select * from read_blob('{SECRET}')",
    f"select * from read_json('{SECRET}')",
    f"select * from '{SECRET}'",
    f'select * from "{SECRET}"',
    "select * from 'https://example.com/x.parquet'",
    "select * from glob('/etc/*')",
    "select * from sniff_csv('/etc/passwd')",
    "select * from '{table}/**/*.parquet'",
    "select * from read_parquet('{table}/**/*.parquet')",
    "select * from parquet_metadata('{table}/**/*.parquet')",
    "select * from read_text('{table}/_delta_log/*.json')",
    "select (select content from read_text('/etc/passwd'))",
    "select * from readings where exists (from read_text('/etc/passwd'))",
    "with a as (from read_csv('/etc/passwd')) select * from a",
    "select * from readings order by (select count(*) from read_text('/etc/passwd'))",
    "select * from readings limit (select count(*) from read_text('/etc/passwd'))",
    "select * from query('select * from read_csv(''/etc/passwd'')')",
    "select * from query_table('/etc/passwd')",
    "select * from json_execute_serialized_sql(json_serialize_sql('select 1'))",
    'with "{table}/x.parquet" as (select 1) select * from readings',
    "select * from readings union all select * from read_csv('/etc/passwd')",
    "select sum(id) filter (where id in (select 1 from read_text('/etc/passwd'))) from readings",
    "select list_transform([1], lambda x: (select content from read_text('/etc/passwd')))",
]
TELLS_OF_THE_SERVER = [
    "select getenv('HOME')",
    "select current_setting('temp_directory')",
    "select getvariable('x')",
    "select * from duckdb_secrets()",
    "select * from duckdb_settings()",
    "select * from duckdb_databases()",
    "select * from duckdb_views()",
    "select * from duckdb_logs",
    "select * from information_schema.tables",
    "select * from pg_catalog.pg_class",
    "select * from sqlite_master",
    "select * from pragma_database_list",
    "select * from which_secret('s3://x', 's3')",
    "describe readings",
    "show tables",
    "show all tables",
    "summarize readings",
    "from (describe readings)",
    "select sleep_ms(100000)",
    'select * from temp.main."lazydelta.main.readings"',
    "select * from system.main.duckdb_tables",
    # A name of a WITH clause means DuckDB's own view where the clause is not in force.
    "select * from (with pg_settings as (select 1) from pg_settings), pg_settings",
    "with a as (from pg_settings), pg_settings as (select 1) from a",
    "with Duckdb_Databases as (from duckdb_databases) from duckdb_databases",
    # Statements inside of text would be planned, and their constants worked out.
    "select json_serialize_plan('select current_setting(''temp_directory'')', optimize := true)",
    "select json_serialize_sql('select 1')",
    "select json_deserialize_sql('{}')",
]
IS_NO_SELECT = [
    "copy readings to '/tmp/lazydelta-out.csv'",
    "copy (select 1) to '{table}/out.csv'",
    "attach '/tmp/other.db'",
    "attach ':memory:' as other",
    "install httpfs",
    "load httpfs",
    "pragma version",
    "pragma database_list",
    "set threads = 1",
    "set enable_external_access = true",
    "reset all",
    "use memory",
    "create table t as select 1",
    "create view v as select 1",
    "create secret s (type s3)",
    "create macro m() as 1",
    "insert into readings values (1)",
    "update readings set id = 1",
    "delete from readings",
    "drop view readings",
    "alter table readings rename to x",
    "export database '/tmp/x'",
    "import database '/tmp/x'",
    "call pragma_version()",
    "checkpoint",
    "vacuum",
    "begin",
    "prepare p as select 1",
    "execute p",
    "explain select 1",
    "pivot readings on device using sum(value)",
    "select 1; select 2",
    "select 1; drop view readings",
    "set variable x = 1",
]
# DuckDB takes these for a SELECT.
WRITES_IN_A_CLAUSE = [
    "with x as (copy (select 1 as a) to '{table}/lazydelta-out.csv') select 1",
    "with x as (copy (select 1 as a) to '/tmp/lazydelta-out.csv') select 1",
    "with x as (insert into readings values (1) returning *) from x",
    "with x as (update readings set id = 1 returning *) select * from x",
    "with x as (delete from readings returning *) select * from x",
    "select * from (with x as (copy (select 1 as a) to '{table}/lazydelta-out.csv') select 1)",
    "select (with x as (copy (select 1 as a) to '{table}/lazydelta-out.csv') select 1)",
]
TOO_LARGE = [
    "select " + "(" * 100_000,
    "select '" + ")" * 5000 + "', " + "(" * 5000,
    "select e'\\'" + ")" * 5000 + "', " + "(" * 5000,
    "select /* /* */ " + ")" * 5000 + " */ " + "(" * 5000,
    "select " + "[" * 201 + "]" * 201,
    "select repeat('x', 1000000000)",
    "select repeat('x', id) from readings",
    "select length(lpad('x', 1000000000, 'y'))",
    "select range(1000000000)",
    "select unnest(generate_series(1, 1000000000))",
    "select format('{:>1000000000}', 1)",
    "select printf(device, 1) from readings",
    "select bitstring('1', 2000000000)",
    "select length(repeat(repeat(repeat('a', 1000), 1000), 1000))",
    "select repeat('a', 1000) as x, repeat(x, 1000) as y, repeat(y, 1000) as z",
    "with a as (select repeat('a', 9000) as x), b as (select repeat(x, 9000) as x from a) select x from b",
    f"select repeat('{'a' * 10_000}', 10000)",
    "select replace(replace(rpad('a', 9999, 'a'), 'a', rpad('a', 999, 'a')), 'a', rpad('a', 99, 'a'))",
    "select replace('aaa', 'a', device) from readings",
    "select regexp_replace(repeat('a', 9999), 'a', repeat('b', 9999), 'g')",
    "select array_to_string(range(1000000), rpad('a', 9999, 'a'))",
    "select list_resize([], 9999, rpad('a', 9999, 'a'))",
    "select list_transform(range(9999), lambda x: list_transform(range(9999), lambda y: y))",
    "select 'abcdefgh' as a0, " + ", ".join(f"a{n} || a{n} as a{n + 1}" for n in range(30)),
    "select 'abcdefgh' as a0, " + ", ".join(f"[a{n}, a{n}] as a{n + 1}" for n in range(30)),
    "select list_reduce(range(1, 35)::varchar[], lambda a, b: a || a)",
    "with recursive r as (select 'a' as s union all select s || s from r where length(s) < 4e9) from r",
    "select format('" + "{0}" * 9000 + "', rpad('a', 9999, 'a'))",
    "select id from readings where id = 1" + " or id = 2" * 6000,
]
BROKEN = [
    "",
    "-- nothing",
    "/* nothing */",
    ";",
    "selec 1",
    "select",
    "select * from",
    "select ' from readings",
    "\0",
    "select " + "(" * 5000,
]


@pytest.mark.parametrize(
    "query", [*READS_FILES, *TELLS_OF_THE_SERVER, *IS_NO_SELECT, *WRITES_IN_A_CLAUSE, *TOO_LARGE, *BROKEN]
)
def test_a_statement_that_reaches_further_is_refused(
    statements: Statements, folder: Path, query: str
) -> None:
    refused = (InvalidRequestError, UnsupportedTableError, TableNotFoundError)
    with pytest.raises(refused):
        statements.plan(query.replace("{table}", str(folder / "readings")), ANYONE)
    assert not list(folder.rglob("lazydelta-out.csv"))


@pytest.mark.parametrize("query", TOO_LARGE)
def test_what_is_too_large_is_refused_before_duckdb_works_it_out(guard: Guard, query: str) -> None:
    with pytest.raises(InvalidRequestError):
        guard.check(query)


def test_a_large_parameter_counts_as_a_large_text(guard: Guard) -> None:
    query = "select repeat(?, 1000)"
    guard.check(query, b"x" * 10_000)
    with pytest.raises(InvalidRequestError, match="multiply"):
        guard.check(query, b"x" * 100_000)


def test_a_statement_of_comments_alone_says_so(guard: Guard) -> None:
    with pytest.raises(InvalidRequestError, match="nothing to run"):
        guard.check("-- select 1")


def test_the_plan_alone_gives_away_who_would_write(served: Served, folder: Path) -> None:
    table = served.catalog.find("readings", ANYONE)
    source = served.catalog.open("readings", ANYONE).scan().source
    session = fenced_session([(table, source)], SqlOptions())
    first, *others = (query.replace("{table}", str(folder / "readings")) for query in WRITES_IN_A_CLAUSE)
    with pytest.raises(UnsupportedTableError, match="would write"):
        check_plan(plan_facts(session, first, None))
    # DuckDB plans none of the others in such a session.
    assert all(plan_facts(session, query, None).problem is not None for query in others)
    session.close()
    assert not list(folder.rglob("lazydelta-out.csv"))


@pytest.mark.parametrize(
    "query",
    [
        *(query for query in READS_FILES if "{table}" not in query and "lambda" not in query),
        *(query for query in (*IS_NO_SELECT, *WRITES_IN_A_CLAUSE) if "{table}" not in query),
        "select * from duckdb_secrets()",
    ],
)
def test_the_session_alone_keeps_a_statement_in(served: Served, tmp_path: Path, query: str) -> None:
    """What of these a session runs, because it does no harm, reaches no file and changes no setting."""
    table = served.catalog.find("readings", ANYONE)
    source = served.catalog.open("readings", ANYONE).scan().source
    session = fenced_session([(table, source)], SqlOptions())
    try:
        rows = session.execute(query).fetchall()
    except Exception:  # noqa: BLE001 - refused, as it should be
        rows = []
    settings = "select value from duckdb_settings() where name = 'enable_external_access'"
    assert session.execute(settings).fetchall() == [("false",)]
    assert "root:" not in str(rows)
    assert not Path("/tmp/lazydelta-out.csv").exists()
    session.close()


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("select count(*) as n from readings", [{"n": 60}]),
        ("select count(*) as n from main.readings", [{"n": 60}]),
        ("select count(*) as n from lazydelta.main.readings", [{"n": 60}]),
        ('select count(*) as n from "LAZYDELTA".Main."Readings"', [{"n": 60}]),
        ("select count(*) as n from elsewhere", [{"n": 60}]),
        ('select count(*) as n from "raw-data".elsewhere', [{"n": 60}]),
        ('select count(*) as n from lake."raw-data".elsewhere', [{"n": 60}]),
        ("select main.readings.id from main.readings where id = 5", [{"id": 5}]),
        ("select lazydelta.main.readings.id from lazydelta.main.readings where id = 5", [{"id": 5}]),
        (
            'select count(*) as n from readings r join lake."raw-data".elsewhere e on r.id = e.id',
            [{"n": 60}],
        ),
        ("with x as (select id from readings) select max(id) as m from x", [{"m": 59}]),
        ("with readings as (select 1 as one) select * from readings", [{"one": 1}]),
        ("select * from range(2)", [{"range": 0}, {"range": 1}]),
        ("select unnest([7, 8]) as x", [{"x": 7}, {"x": 8}]),
        ("values (1)", [{"col0": 1}]),
        ("from readings select count(*) as n", [{"n": 60}]),
        ("select 1 as one;", [{"one": 1}]),
        (
            "with recursive t(n) as (select 1 union all select n+1 from t where n<3) select max(n) m from t",
            [{"m": 3}],
        ),
    ],
)
def test_tables_are_reached_by_all_their_names(
    statements: Statements, query: str, rows: list[dict[str, object]]
) -> None:
    assert run(statements, query) == rows


def test_files_that_are_handed_to_duckdb_are_read_within_the_fence(
    statements: Statements, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "HANDOVER_BYTES_MIN", 1)
    query = "select device, sum(id) as s from {} group by all order by all"
    in_process = ld.open(str(folder / "readings")).sql(query.format("this"))
    assert in_process.handed_over is not None
    found = run(statements, query.format("readings"))
    assert found == in_process.read_all().to_pylist()


def test_a_statement_spills_within_the_fence(served: Served, tmp_path: Path) -> None:
    source = served.catalog.open("readings", ANYONE).scan().source
    table = served.catalog.find("readings", ANYONE)
    options = SqlOptions(memory_limit="32MB", temp_directory=tmp_path, threads=1)
    session = fenced_session([(table, source)], options)
    big = "select range as n, hash(range) as h, repeat('x', 40) as s from range(1500000) order by h"
    assert session.execute(f"select count(*), max(n) from ({big})").fetchall() == [(1500000, 1499999)]
    rows = session.sql(big).to_arrow_reader(10_000)
    assert sum(batch.num_rows for batch in rows) == 1_500_000
    session.close()


@pytest.mark.parametrize(
    "query",
    [
        "select " + "(" * 200 + "1" + ")" * 200,
        "select [" + ", ".join("(1)" for _ in range(1000)) + "]",
        "select '" + "(" * 500 + "'",
        "with recursive r as (select 1 as n, 'a' as path union all select n + 1, path || '/' || n from r"
        " where n < 9) select * from r",
        "select replace(replace(replace(device, '&', '&amp;'), '<', '&lt;'), '>', '&gt;') from readings",
        "select "
        + ", ".join(f"lpad(id::varchar, 20, '0') || '-' || device as k{n}" for n in range(50))
        + " from readings",
        "select list_transform(range(100), lambda x: x || 'a'), list_reduce([1, 2], lambda a, b: a + b)",
        "select format('{} {} {}', 1, 2, 3), regexp_replace(device, '(.*)-(.*)', '\\2 \\1') from readings",
        "select repeat('x', 100), lpad('x', 9, '0'), format('{:>20}', 1), list_sum(range(-3, 1_000))",
        "select count(*) from range(100000000)",
    ],
)
def test_what_is_of_a_size_that_people_write_is_served(statements: Statements, query: str) -> None:
    assert run(statements, query)


def test_a_missing_table_is_told_as_flight_tells_it(statements: Statements) -> None:
    with pytest.raises(TableNotFoundError, match="there is no table 'nope'"):
        statements.plan("select * from nope", ANYONE)
    with pytest.raises(TableNotFoundError, match=r"there is no table 'lake\.main\.readings'"):
        statements.plan("select * from lake.main.readings", ANYONE)


def test_errors_of_a_query_are_told_by_their_place(statements: Statements) -> None:
    with pytest.raises(LazyDeltaError, match='Referenced column "nope" not found') as caught:
        statements.plan("select nope from readings", ANYONE)
    assert "line 1, column 8" in caught.value.where


def test_the_guard_names_the_tables_of_a_statement(guard: Guard) -> None:
    checked = guard.check("select * from a.b.c, d join (select * from e.f) x on true where 1 in (from g)")
    assert set(checked.tables) == {
        NamedTable("a", "b", "c"),
        NamedTable("", "", "d"),
        NamedTable("", "e", "f"),
        NamedTable("", "", "g"),
    }


def test_parameters_have_the_types_of_what_stands_beside_them(guard: Guard, folder: Path) -> None:
    schema = ld.open(str(folder / "readings")).to_arrow().schema
    query = (
        "select cast(? as date), id + ?, lower(?) from readings r where r.value between ? and ? "
        "and device in (?, ?) and device like ? and 5 < ? limit ? offset ?"
    )
    found = parameter_types(nodes_of(guard.check(query).tree), [schema])
    names = {int(name): str(kind) for name, kind in found.items()}
    assert names == {
        1: "date32[day]",
        2: "int64",
        4: "double",
        5: "double",
        6: "string",
        7: "string",
        8: "string",
        9: "int64",
        10: "int64",
        11: "int64",
    }
