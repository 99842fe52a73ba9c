"""Rows of a query as tuples and frames; what is asked of a session and cannot be."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
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


@pytest.mark.parametrize("last", ["reader.read_next_batch()", "pass"])
def test_an_open_reader_makes_no_noise_when_the_program_ends(table: ld.Table, last: str) -> None:
    query = "select * from t, range(100000)"
    program = f"import lazydelta as ld\nreader = ld.open({table.url!r}).sql({query!r}).arrow()\n{last}"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False, timeout=60)
    assert (ended.returncode, ended.stderr.decode()) == (0, "")


def test_isin_of_a_null_asks_whether_the_list_has_one(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path), pa.table({"s": ["a", "b", None]}))
    dataset = ld.open(tmp_path).to_pyarrow_dataset()
    for values, count in ((["a"], 1), (["a", None], 2)):
        is_in = pc.field("s").isin(pa.array(values, pa.string()))
        assert (dataset.count_rows(filter=is_in), dataset.count_rows(filter=~is_in)) == (count, 3 - count)
