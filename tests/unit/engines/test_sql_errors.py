"""Queries that are wrong: what is said, where, and what to do."""

from __future__ import annotations

import threading
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

import lazydelta as ld
from lazydelta.engines.sql_errors import SqlContext, told
from lazydelta.errors import InvalidRequestError, LazyDeltaError
from tests.support.row_tables import readings_table


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    return readings_table(tmp_path_factory.mktemp("wrong"))


@pytest.fixture(scope="module")
def table(url: str) -> ld.Table:
    return ld.open(url)


@pytest.mark.parametrize(
    ("query", "where", "fix"),
    [
        ("select valu from t", "line 1, column 8", '"value"'),
        ("select id,\n  t.valu from t", "line 2, column 3", "did you mean value?"),
        ("select id from t\nwhere id > 3\n and devise = 'x'", "line 3, column 6", '"device"'),
        ("select * from nowhere", "line 1, column 15", "the tables are: t, this"),
        ("select * from tt", "line 1, column 15", "did you mean t?"),
        ("select id from t where value > 'abc'", "line 1, column 32", "DuckDB's SQL"),
        ("select a frm t", "line 1, column 14", "DuckDB's SQL"),
        ("select 'é' frm t", "line 1, column 16", "DuckDB's SQL"),
        ("select '日本語😀', valu from t", "line 1, column 16", '"value"'),
        ("select 'e\u0301', valu from t", "line 1, column 14", '"value"'),
        ("select '" + "日" * 200 + "', valu from t", "line 1, column 212", '"value"'),
        ("select " + "id, " * 200 + "valu from t", "line 1, column 808", '"value"'),
        ("select 1; select valu from t", "select 1; select valu", '"value"'),
        ("select nosuch(id) from t", "line 1, column 8", ""),
        ("select id from t where id = ?", "id = ?", "parameters=[…]"),
        ("insert into t values (1)", "insert", "read only"),
        ("delete from t", "delete", "read only"),
        ("update t set id = 1", "update", "read only"),
        ("drop table t", "drop", "read only"),
        ("alter table t drop column id", "alter", "read only"),
    ],
)
def test_a_wrong_query_shows_the_place_and_says_what_to_do(
    table: ld.Table, query: str, where: str, fix: str
) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        table.sql(query).fetchall()
    assert where in caught.value.where
    assert fix in caught.value.fix
    assert len(str(caught.value)) < 2000


@pytest.mark.parametrize("query", ["select 9223372036854775807 + id from t", "select factorial(34)"])
def test_a_value_out_of_range_is_no_lack_of_memory(table: ld.Table, query: str) -> None:
    with pytest.raises(InvalidRequestError, match="a value is out of range") as caught:
        table.sql(query).fetchall()
    assert "memory" not in str(caught.value)


def test_a_lack_of_memory_is_told_in_our_own_settings(table: ld.Table) -> None:
    with pytest.raises(LazyDeltaError, match="needs more memory") as caught:
        table.sql("select list(range) from range(10000000)", memory_limit="20MB").fetchall()
    assert "memory_limit" in caught.value.fix
    assert "SET " not in str(caught.value)


def test_an_interrupted_query_is_not_told_as_wrong(url: str) -> None:
    with ld.connect({"t": url}) as connection:
        is_over = threading.Event()

        def interrupt() -> None:
            while not is_over.wait(0.2):  # one that comes before the query has begun is lost
                connection.duckdb.interrupt()

        interrupting = threading.Thread(target=interrupt)
        interrupting.start()
        with (
            pytest.raises(LazyDeltaError, match="interrupted") as caught,
            told(SqlContext("select 1")),
        ):
            connection.duckdb.execute("select count(*) from range(1000000000000)").fetchall()
        is_over.set()
        interrupting.join()
    assert not isinstance(caught.value, InvalidRequestError)


def test_a_connection_lists_all_its_tables_not_those_of_the_query(url: str) -> None:
    with ld.connect({"readings": url, "devices": url}) as connection:
        with pytest.raises(InvalidRequestError) as caught:
            connection.sql("select * from device join readings using (id)")
        assert caught.value.fix == "did you mean devices? the tables are: readings, devices"


def test_without_any_table_it_says_how_to_give_one() -> None:
    with pytest.raises(InvalidRequestError) as caught:
        ld.sql("select * from orders")
    assert "orders=table" in caught.value.fix


def test_names_that_are_one_to_sql_are_refused(table: ld.Table) -> None:
    with pytest.raises(InvalidRequestError, match="'a' and 'A' are the same"):
        ld.sql("select 1", a=table, A=table)
    with ld.connect({"a": table}) as connection:
        with pytest.raises(InvalidRequestError, match="the same in SQL"):
            connection.attach("A", table)
        connection.attach("a", table)
        assert connection.sql("select count(*) from A").fetchall() == [(240,)]


def test_a_table_may_have_any_name(table: ld.Table) -> None:
    names = ['it"s', "with space", "sel;ect", "ünïcode", "a.b", "'", "select"]
    with ld.connect(dict.fromkeys(names, table)) as connection:
        for name in names:
            spelled = '"' + name.replace('"', '""') + '"'
            assert connection.sql(f"select max(id) from {spelled}").fetchall() == [(239,)], name


def test_a_column_that_was_widened_to_another_type_is_told_as_such(tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    write_deltalake(url, pa.table({"x": ["1", "two"]}))
    with pytest.raises(InvalidRequestError, match="two"):
        ld.open(url).sql("select sum(x::integer) from t").fetchall()


def test_memory_that_does_not_suffice_says_how_much_and_how_to_get_more(table: ld.Table) -> None:
    found = table.sql("select list(i) from range(30000000) r(i)", memory_limit="30MB")
    with pytest.raises(LazyDeltaError, match=r"28\.6 MiB") as caught:
        found.fetchall()
    assert "memory_limit (--memory-limit)" in caught.value.fix


def test_statements_before_the_last_run_and_the_last_one_answers(table: ld.Table, tmp_path: Path) -> None:
    target = tmp_path / "out.csv"
    query = (
        f"create table few as select * from t where id < 3; copy few to '{target}'; select count(*) from few"
    )
    assert table.sql(query).fetchall() == [(3,)]
    assert len(target.read_text().splitlines()) == 4


def test_a_session_without_access_to_files_reads_tables_all_the_same(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lazydelta.limits.HANDOVER_BYTES_MIN", 0)
    with ld.connect({"r": url}) as connection:
        connection.sql("set enable_external_access = false; set lock_configuration = true").close()
        found = connection.sql("select count(*), max(id) from r where value > 1")
        assert found.handed_over is None
        assert found.fetchall()[0][1] == 239
        for query in (f"copy r to '{tmp_path}/x.csv'", "select * from read_csv('/etc/passwd')"):
            with pytest.raises(LazyDeltaError, match="disabled"):
                connection.sql(query).fetchall()


@pytest.mark.parametrize(
    "query",
    [
        "create secret s (type azure, connection_string 'hush-hush') x",
        "attach 'x' (password 'hush-hush')",
        "attach 'x' (encryption_key $$hush-hush$$, nope 1)",
        "select 'hush-hush' as account_key from nowhere",
    ],
)
def test_no_text_of_a_query_about_secrets_is_repeated(tmp_path: Path, query: str) -> None:
    write_deltalake(str(tmp_path), pa.table({"x": [1]}))
    with pytest.raises(LazyDeltaError) as told:
        ld.open(tmp_path).sql(query).fetchall()
    assert "hush" not in str(told.value)
    assert query.split(maxsplit=1)[0] in str(told.value)
