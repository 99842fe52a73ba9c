"""Rows of a query as tuples and frames; what is asked of a session and cannot be."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

import lazydelta as ld
from lazydelta.errors import InvalidRequestError, LazyDeltaError


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> ld.Table:
    folder = str(tmp_path_factory.mktemp("fetching") / "t")
    write_deltalake(folder, pa.table({"id": range(5)}))
    return ld.open(folder)


def test_fetchone_gives_one_row_after_the_other(table: ld.Table) -> None:
    found = table.sql("select id from t order by id")
    assert [found.fetchone() for _ in range(7)] == [(0,), (1,), (2,), (3,), (4,), None, None]


def test_what_fetchone_leaves_comes_next_whoever_asks(table: ld.Table) -> None:
    rest: list[Callable[[Any], list[int]]] = [
        lambda found: [row[0] for row in found.fetchall()],
        lambda found: found.read_all()["id"].to_pylist(),
        lambda found: found.arrow().read_all()["id"].to_pylist(),
        lambda found: found.df()["id"].tolist(),
        lambda found: [row["id"] for batch in found for row in batch.to_pylist()],
    ]
    for read in rest:
        with table.sql("select id from t order by id") as found:
            assert (found.fetchone(), found.fetchone()) == ((0,), (1,))
            assert found.has_next()
            assert read(found) == [2, 3, 4]
            assert not found.has_next()


@pytest.mark.parametrize("shape", ["{}", "[{}]", "{{'a': {}}}"])
def test_numbers_that_arrow_would_wrap_are_refused(table: ld.Table, shape: str) -> None:
    query = (
        f"select id, {shape.format('(id + 340282366920938463463374607431768211450)::uhugeint')} as x from t"
    )
    with pytest.raises(InvalidRequestError, match=r"'x' is .*UHUGEINT") as told:
        table.sql(query).fetchall()
    assert "cast it" in told.value.fix
    assert table.sql("select max(id)::hugeint as x from t").fetchall() == [(4,)]


@pytest.mark.parametrize("shape", ["{}", "[{}]", "{{'a': {}}}", "map(['k'], [{}])"])
@pytest.mark.parametrize("value", ["timetz '10:00:00+02'", "'101'::bit"])
def test_values_that_arrow_would_change_are_refused(table: ld.Table, shape: str, value: str) -> None:
    """Arrow drops the zone of a time, and shows how DuckDB packs bits."""
    with pytest.raises(InvalidRequestError, match="the column 'x' is") as told:
        table.sql(f"select {shape.format(value)} as x")
    assert "cast it to VARCHAR" in told.value.fix
    assert table.sql(f"select ({value})::varchar as x").fetchone() is not None
    assert table.sql("select {'bit': 1} as bit").fetchall() == [({"bit": 1},)]


def test_a_closed_result_gives_no_row_that_was_left(table: ld.Table) -> None:
    found = table.sql("select id from t order by id")
    found.fetchone()
    found.close()
    with pytest.raises(InvalidRequestError, match="closed"):
        found.fetchone()


@pytest.mark.parametrize(
    "value",
    ["timestamp '294000-01-01'", "'infinity'::date", "timestamp '0044-03-15 (BC)'", "time '24:00:00'"],
)
@pytest.mark.parametrize("shape", ["{}", "[{}]", "{{'a': {}}}", "map {{'k': {}}}"])
def test_times_that_python_does_not_have_are_told(table: ld.Table, value: str, shape: str) -> None:
    query = f"select {shape.format(value)} as x"
    with pytest.raises(LazyDeltaError, match="none of Python's") as told:
        table.sql(query).fetchall()
    assert "cast the column to text" in told.value.fix
    with pytest.raises(LazyDeltaError, match="none of Python's"):
        table.sql(query).fetchone()
    assert table.sql(query).read_all().num_rows == 1


@pytest.mark.parametrize("value", ["date '10000-01-01'", "{'a': timestamp '294000-01-01'}"])
def test_times_that_pandas_does_not_have_are_told(table: ld.Table, value: str) -> None:
    with pytest.raises(LazyDeltaError, match="none of Python's"):
        table.sql(f"select {value} as x").df()


def test_dates_of_a_table_that_pandas_does_not_have_are_told(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path), pa.table({"day": pa.array([2_932_897], pa.date32())}))
    with pytest.raises(LazyDeltaError, match="none of Python's"):
        ld.open(tmp_path).to_pandas()


@pytest.mark.parametrize("parameters", [5, "abc", b"x", {1, 2}, object()])
def test_parameters_that_are_no_list_are_told(table: ld.Table, parameters: Any) -> None:
    with pytest.raises(InvalidRequestError, match="parameters is"):
        table.sql("select ?", parameters=parameters)


def test_parameters_may_come_from_any_sequence(table: ld.Table) -> None:
    for parameters in ((3,), [3], (number for number in [3]), {"1": 3}):
        assert table.sql("select id from t where id = $1", parameters=parameters).fetchall() == [(3,)]


@pytest.mark.parametrize("memory_limit", [2**70, "9999999999TB"])
def test_a_memory_limit_past_what_duckdb_counts_is_told(table: ld.Table, memory_limit: Any) -> None:
    with pytest.raises(InvalidRequestError, match="memory_limit"):
        table.sql("select 1", memory_limit=memory_limit)


@pytest.mark.parametrize(
    ("option", "value"),
    [("threads", 10**9), ("threads", 2**70), ("temp_directory", 5), ("temp_directory", b"x")],
)
def test_odd_options_of_a_connection_are_told(option: str, value: Any) -> None:
    with pytest.raises(InvalidRequestError, match=option):
        ld.connect({}, **{option: value})


def test_an_unknown_column_of_a_wide_table_names_the_nearest_few(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path), pa.table({f"column_{at}": [at] for at in range(300)}))
    table = ld.open(tmp_path)
    for ask in (
        lambda: table.to_arrow(["colum_7"]),
        lambda: table.to_pyarrow_dataset().to_table(["colum_7"]),
    ):
        with pytest.raises(InvalidRequestError) as told:
            ask()
        assert "did you mean column_7 or" in told.value.fix
        assert ", and 280 more;" in told.value.fix
        assert len(told.value.fix) < 600


def test_open_readers_make_no_noise_when_the_program_ends(table: ld.Table) -> None:
    program = f"""
import lazydelta as ld
new, begun = (ld.open({table.url!r}).sql("select * from t, range(100000)").arrow() for _ in range(2))
begun.read_next_batch()
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False, timeout=300)
    assert (ended.returncode, ended.stderr.decode()) == (0, "")


def test_isin_of_a_null_asks_whether_the_list_has_one(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path), pa.table({"s": ["a", "b", None]}))
    dataset = ld.open(tmp_path).to_pyarrow_dataset()
    for values, count in ((["a"], 1), (["a", None], 2)):
        is_in = pc.field("s").isin(pa.array(values, pa.string()))
        assert (dataset.count_rows(filter=is_in), dataset.count_rows(filter=~is_in)) == (count, 3 - count)


_ENDLESS = """
import os, signal, sys, threading
import lazydelta as ld
signal.signal(signal.SIGINT, signal.default_int_handler)  # also where the run itself ignores it
query = "select count(*) from t, range(100_000_000) a, range(100_000_000) b where a.range < b.range + id"
found = ld.open(sys.argv[1]).sql(query)
try:
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    found.fetchall()
except KeyboardInterrupt:
    print("interrupted")
"""


def test_an_interrupt_ends_a_query_that_has_no_row_yet(table: ld.Table) -> None:
    command = [sys.executable, "-c", _ENDLESS, table.url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    assert (done.stdout, done.stderr) == ("interrupted\n", "")


def test_a_transaction_that_would_be_lost_with_its_query_is_refused() -> None:
    with ld.connect({}) as connection:
        connection.sql("create table x (a int)").close()
        for query in ("begin", "/* b */ Start Transaction; insert into x values (1)", "begin; commit; begin"):
            with pytest.raises(InvalidRequestError, match="the transaction would end with this query"):
                connection.sql(query)
        connection.sql("begin; insert into x values (2); commit").close()
        assert connection.sql("select a, 'begin' from x").fetchall() == [(2, "begin")]


def test_a_map_with_a_key_twice_is_told_apart_from_a_wrong_query(tmp_path: Path) -> None:
    kind, twice = pa.map_(pa.string(), pa.int64()), [("a", 1), ("a", 2)]
    write_deltalake(str(tmp_path), pa.table({"m": pa.array([[("a", 1)]], kind)}))
    (file,) = tmp_path.glob("*.parquet")
    pq.write_table(pa.table({"m": pa.array([twice], kind)}), file)
    commit = tmp_path / "_delta_log" / f"{0:020}.json"
    lines = [json.loads(line) for line in commit.read_text().splitlines()]
    for line in lines:
        line.get("add", {}).update(size=file.stat().st_size)
    commit.write_text("\n".join(map(json.dumps, lines)))
    table = ld.open(tmp_path)
    assert table.scan().to_arrow()["m"].to_pylist() == [twice]
    with pytest.raises(LazyDeltaError, match="duplicate key") as told:
        table.sql("select m from t").fetchall()
    assert "leave the column out, or read it with scan(…).batches([…])" in told.value.fix
