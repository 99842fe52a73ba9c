"""Values that DuckDB sees otherwise in a file than in our rows: answers stay the same, whoever reads."""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

import lazydelta as ld
from lazydelta import limits
from lazydelta.errors import CorruptDataError, InvalidRequestError
from tests.support.actions import add

NAN = math.nan
NUMBERS = {
    "plain": [1.0, 2.5],
    "none": [None, None],
    "negative": [-5.0, -0.0, 0.0],
    "a NaN": [1.0, NAN, None],
    "only NaN": [NAN, NAN],
    "infinite": [math.inf, -math.inf, 3.0],
}
# Groups are met in any order, and the greatest of 0.0 and -0.0 may be either: `+ 0.0` makes them one.
QUERIES = """
    select max(x) from t
    select min(x) from t
    select max(x), min(x), count(*) from t
    select max(x), count(x) from t
    select max(f), min(f) from t
    select max(x) filter (where x > 1) from t
    select max(distinct x) from t
    select 1, max(x) from t group by 1
    select max(x) from t group by ()
    select max(x) + 0.0 from t group by grouping sets ((), (g)) order by grouping(g), g
    select g, max(x) + 0.0, min(x) from t group by rollup (g) order by all
    select max(x) from (select x from t)
    select max(y) from (select x as y from t union all select f from t)
    with c as (select x from t) select max(x), min(x) from c
    with c as materialized (select x from t) select max(x), min(x) from c
    select (select max(x) from t), (select min(f) from t)
    select g from t where x = (select max(x) from t) order by g
    select max(x) over (), g from t order by all
    select arg_max(g, x), max(s), min(s), max(d), min(n) from t
    select max(s), min(s), count(*) from t
    select max(d), min(d), max(n), min(n), max(b) from t
    select max({'x': x}), max([x]) from t
    select x from t order by x desc nulls last, g
    select count(*) from t where x > 2
    select count(*) from t where x <= 2.5
    select bool_or(x > 2), bool_and(x < 2), sum(g) from t
    select quantile_disc(x, 1.0), median(g) from t
"""


@pytest.fixture(autouse=True)
def small_files_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HANDOVER_BYTES_MIN", 0)


def same_either_way(table: ld.Table, query: str, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether DuckDB read the file, which it does not where the log knows that no row matches."""
    by_duckdb = table.sql(query)
    found = by_duckdb.fetchall()
    with monkeypatch.context() as patch:
        patch.setattr(limits, "HANDOVER_FILES_MAX", -1)
        by_us = table.sql(query)
        assert by_us.handed_over is None
        assert repr(found) == repr(by_us.fetchall()), query
    return by_duckdb.handed_over == "t"


@pytest.mark.parametrize(
    "name",
    [
        "a NaN",
        "only NaN",
        *(
            pytest.param(name, marks=pytest.mark.long("other values by the same way"))
            for name in ("plain", "infinite", "negative", "none")
        ),
    ],
)
def test_the_greatest_is_not_a_bound_of_the_footer(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = NUMBERS[name]
    rows = pa.table(
        {
            "x": pa.array(numbers, pa.float64()),
            "f": pa.array(numbers, pa.float32()),
            "g": pa.array(range(len(numbers)), pa.int64()),
            "s": ["a" * 200 + str(at) for at in range(len(numbers))],
            "d": [dt.date(1582, 10, 4), *[dt.date(2026, 2, 10)] * (len(numbers) - 1)],
            "n": [Decimal("-0.01")] * len(numbers),
            "b": [bytes([255] * 80 + [at]) for at in range(len(numbers))],
        }
    )
    write_deltalake(str(tmp_path), rows)
    table = ld.open(tmp_path)
    queries = [query for query in map(str.strip, QUERIES.splitlines()) if query]
    handed_over = [query for query in queries if same_either_way(table, query, monkeypatch)]
    assert len(handed_over) >= len(queries) - 2


def test_the_same_in_a_session_whose_queries_run_beside_each_other(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path), pa.table({"x": [1.0, 2.5]}))
    with ld.connect({"t": str(tmp_path)}) as session:
        first = session.sql("select max(x) from t")
        assert session.sql("select x, count(*) from t group by x order by x").fetchall() == [
            (1.0, 1),
            (2.5, 1),
        ]
        assert first.fetchall() == [(2.5,)]
        assert session.sql("select max(x) from t").fetchall() == [(2.5,)]


def test_half_floats_stay_with_us(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    halves = pa.table(
        {"x": pa.array(np.array([1.5, -2.0, 3.0], np.float16)), "g": pa.array([1, 2, 3], pa.int64())}
    )
    table = _one_file(tmp_path, halves, pa.schema([("x", pa.float32()), ("g", pa.int64())]))
    found = table.sql("select max(x), min(x) from t")
    assert found.handed_over is None
    assert found.fetchall() == [(3.0, -2.0)]
    assert same_either_way(table, "select max(g) from t", monkeypatch)


@pytest.mark.parametrize("with_statistics", [True, False])
def test_nulls_where_there_may_be_none_are_an_error_whoever_reads(
    tmp_path: Path, *, with_statistics: bool
) -> None:
    rows = pa.table({"x": pa.array([1, None], pa.int64()), "g": pa.array([1, 2], pa.int64())})
    schema = pa.schema([pa.field("x", pa.int64(), nullable=False), ("g", pa.int64())])
    table = _one_file(tmp_path, rows, schema, write_statistics=with_statistics)
    with pytest.raises(CorruptDataError, match="'x' is NOT NULL in the table"):
        table.sql("select x, count(*) from t group by x").read_all()
    other = table.sql("select sum(g) from t")
    assert other.handed_over == "t"
    assert other.fetchall() == [(3,)]


def test_files_whose_statistics_rule_nulls_out_are_handed_over(tmp_path: Path) -> None:
    rows = pa.table({"x": pa.array([1, 2], pa.int64())})
    schema = pa.schema([pa.field("x", pa.int64(), nullable=False)])
    found = _one_file(tmp_path, rows, schema).sql("select sum(x) from t")
    assert found.handed_over == "t"
    assert found.fetchall() == [(3,)]


@pytest.mark.parametrize("is_nested", [False, True])
def test_columns_that_are_one_to_sql_are_not_guessed(tmp_path: Path, *, is_nested: bool) -> None:
    rows = pa.table({"s": [{"x": 1, "X": 2}]} if is_nested else {"x": [1], "X": [2]})
    named = pa.table({"s": [{"x": 1, "y": 2}]} if is_nested else {"x": [1], "y": [2]})
    _one_file(tmp_path, rows, named.schema)
    log = tmp_path / "_delta_log" / f"{0:020d}.json"
    log.write_text(log.read_text().replace('\\"y\\"', '\\"X\\"'))  # which its writer would not
    table = ld.open(tmp_path)
    assert table.to_arrow().to_pylist() == rows.to_pylist()
    with pytest.raises(InvalidRequestError, match="are the same in SQL"):
        table.sql("select * from t")


def _one_file(folder: Path, rows: pa.Table, schema: pa.Schema, **how: Any) -> ld.Table:
    """A table of this schema, and a file of these rows in it, whatever is wrong with them."""
    DeltaTable.create(str(folder), schema)
    path = folder / "a.parquet"
    pq.write_table(rows, path, **how)
    action = {"add": add(path.name, partition={}, size=path.stat().st_size)}
    (folder / "_delta_log" / f"{1:020d}.json").write_text(json.dumps(action) + "\n")
    return ld.open(folder)


def test_tables_of_different_columns_are_not_mixed_up(tmp_path: Path) -> None:
    numbers, names, wide = (str(tmp_path / name) for name in ("numbers", "names", "wide"))
    write_deltalake(numbers, pa.table({"id": pa.array(range(12), pa.int64())}))
    write_deltalake(names, pa.table({"name": [f"n{at}" for at in range(12)]}))
    write_deltalake(wide, pa.table({"id": pa.array(range(6), pa.int64()), "x": [1.5] * 6, "y": ["z"] * 6}))
    found = ld.sql("select (select max(id) from a), (select max(name) from b)", a=numbers, b=names)
    assert sorted((found.handed_over or "").split(", ")) == ["a", "b"]
    assert found.fetchall() == [(11, "n9")]
    joined = ld.sql("select count(*), max(c.x), max(a.id) from a join c using (id)", a=numbers, c=wide)
    assert sorted((joined.handed_over or "").split(", ")) == ["a", "c"]
    assert joined.fetchall() == [(6, 1.5, 5)]
    with ld.connect({"a": numbers, "b": names, "c": wide}) as session:
        for _ in range(2):
            assert session.sql("select count(*) from a join c using (id)").fetchall() == [(6,)]
            assert session.sql("select max(name) from b").fetchall() == [("n9",)]


def test_a_null_partition_value_that_may_not_be_is_an_error_whoever_reads(tmp_path: Path) -> None:
    schema = pa.schema([("x", pa.int64()), pa.field("p", pa.string(), nullable=False)])
    DeltaTable.create(str(tmp_path), schema, partition_by=["p"])
    pq.write_table(pa.table({"x": pa.array([1], pa.int64())}), tmp_path / "a.parquet")
    size = (tmp_path / "a.parquet").stat().st_size
    action = {"add": add("a.parquet", partition={"p": None}, size=size)}
    (tmp_path / "_delta_log" / f"{1:020d}.json").write_text(json.dumps(action) + "\n")
    with pytest.raises(CorruptDataError, match="'p' is NOT NULL in the table"):
        ld.open(tmp_path).sql("select p, count(*) from t group by p").read_all()
