"""A dataset inside DuckDB and Polars: what they push arrives, and what comes out is right."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pytest
from deltalake import write_deltalake

import lazydelta as ld
from lazydelta.engines.dataset import LazyDataset
from tests.support.actions import add, stats
from tests.support.deletion_vector_writer import inline_vector
from tests.support.table_builder import TableBuilder

AT = dt.datetime(2026, 2, 10, tzinfo=dt.UTC)
ROWS = [
    {
        "n": None if at % 13 == 0 else at,
        "f": [1.5, math.nan, None, -0.0, math.inf, 0.1, 2.5][at % 7],
        "s": None if at % 5 == 0 else f"text {at % 10}",
        "b": [True, False, None][at % 3],
        "day": dt.date(2026, 2, 1 + at % 20),
        "moment": AT + dt.timedelta(microseconds=at * 333_333),
        "dec": Decimal(at).scaleb(-2),
        "st": None if at % 17 == 0 else {"k": at % 4, "t": str(at % 3)},
        "li": list(range(at % 3)),
        "bin": bytes([at % 256]),
    }
    for at in range(300)
]
SCHEMA = pa.schema(
    [
        ("n", pa.int32()),
        ("f", pa.float64()),
        ("s", pa.string()),
        ("b", pa.bool_()),
        ("day", pa.date32()),
        ("moment", pa.timestamp("us", "UTC")),
        ("dec", pa.decimal128(12, 2)),
        ("st", pa.struct([("k", pa.int64()), ("t", pa.string())])),
        ("li", pa.list_(pa.int64())),
        ("bin", pa.binary()),
    ]
)
CONDITIONS = [
    "n < 100",
    "n in (1, 2, 13, 299)",
    "n not in (1, 2)",
    "n is null or n > 290",
    "n between 10 and 20 or n = 200",
    "f > 1",
    "f >= 2.5",
    "f < 1",
    "not (f > 1)",
    "f <> 1.5",
    "f = 'nan'",
    "f = 0",
    "s like 'text 1%'",
    "s >= 'text 3' and s < 'text 5'",
    "s = 'text 7' and n % 2 = 1",
    "b",
    "not b",
    "b is null",
    "day = date '2026-02-03'",
    "moment >= timestamptz '2026-02-10 00:00:50+00'",
    "dec > 1.5 and dec <= 1.75",
    "st.k = 3",
    "st.k = 3 and st.t <> '1'",
    "st is null",
    "bin = '\\x05'::blob",
    "n > 1000",
    "n > 5 and (s = 'text 1' or f is null)",
]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> LazyDataset:
    url = str(tmp_path_factory.mktemp("kinds") / "t")
    for first in range(0, len(ROWS), 100):
        rows = pa.Table.from_pylist(ROWS[first : first + 100], SCHEMA)
        write_deltalake(url, rows, mode="append")
    return ld.open(url).to_pyarrow_dataset()


@pytest.fixture(scope="module")
def connection(dataset: LazyDataset) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("set timezone = 'UTC'")
        connection.register("lazy", dataset)
        connection.register("eager", pa.Table.from_pylist(ROWS, dataset.schema))
        yield connection


def answers(connection: duckdb.DuckDBPyConnection, query: str) -> tuple[Any, Any]:
    """What the query gives over the dataset, and over the rows in memory."""
    lazy, eager = (
        connection.execute(query.replace("FROM", f"from {view}")).fetchall() for view in ("lazy", "eager")
    )
    return repr(lazy), repr(eager)  # NaN equals itself as text


@pytest.mark.parametrize("condition", CONDITIONS)
def test_duckdb_filters_a_dataset_as_it_filters_rows_in_memory(
    connection: duckdb.DuckDBPyConnection, condition: str
) -> None:
    lazy, eager = answers(connection, f"select n, f, s, st FROM where {condition} order by moment")
    assert lazy == eager
    lazy, eager = answers(connection, f"select count(*) FROM where {condition}")
    assert lazy == eager


@pytest.mark.parametrize(
    "query",
    [
        "select count(*) FROM",
        "select s, count(*), sum(n) FROM group by s order by s nulls first",
        "select * FROM order by moment limit 7",
        "select day, max(dec) over (partition by day order by moment) FROM order by moment",
        "select unnest(li) as l FROM order by l",
        "select a.n FROM a join lazy b on a.n = b.n where b.n < 20 order by a.n",
    ],
)
def test_duckdb_works_on_a_dataset_as_on_rows_in_memory(
    connection: duckdb.DuckDBPyConnection, query: str
) -> None:
    lazy, eager = answers(connection, query)
    assert lazy == eager


def test_duckdb_tells_the_scan_its_columns_and_filter(dataset: LazyDataset) -> None:
    asked = []

    class Watched(LazyDataset):
        def scanner(self, *arguments: Any, **options: Any) -> Any:
            scanner = super().scanner(*arguments, **options)
            asked.append((options.get("columns"), str(scanner._plan.source.config.predicate)))
            return scanner

    watched = Watched(dataset._source)
    with duckdb.connect() as connection:
        connection.register("watched", watched)
        query = (
            "select s from watched where n in (1, 2, 3) and moment >= timestamptz '2026-02-10 00:00:00+00'"
        )
        assert len(connection.execute(query).fetchall()) == 3
    ((columns, condition),) = asked
    assert columns == ["s"]
    assert "n IN (1, 2, 3)" in condition
    assert "moment >= TIMESTAMP '2026-02-10T00:00:00+00:00'" in condition


def test_duckdb_stops_reading_where_its_limit_is_reached(tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    for first in range(8):
        write_deltalake(url, pa.table({"n": range(first * 1000, first * 1000 + 1000)}), mode="append")
    dataset = ld.open(url).to_pyarrow_dataset()
    first = next(dataset.get_fragments())
    readable = {first.path, *(fragment.path for fragment in list(dataset.get_fragments())[:5])}
    for path in Path(url).glob("*.parquet"):
        if path.name not in readable:
            path.write_bytes(b"not parquet")
    with duckdb.connect() as connection:
        connection.execute("set threads = 1")
        assert len(connection.execute("select n from dataset limit 5").fetchall()) == 5


def test_polars_scans_a_dataset_with_its_filter(dataset: LazyDataset) -> None:
    lazy = pl.scan_pyarrow_dataset(dataset)
    found = lazy.filter((pl.col("n") < 50) & (pl.col("s") == "text 3")).select("n").collect()
    assert sorted(found["n"]) == [row["n"] for row in ROWS if row["s"] == "text 3" and (row["n"] or 99) < 50]


def test_deleted_rows_are_in_no_fragment_and_no_count(tmp_path: Path) -> None:
    folder = tmp_path / "t"
    folder.mkdir()
    adds = []
    for name, numbers in (("a", 100), ("b", 50)):
        pads.write_dataset(pa.table({"id": range(numbers)}), folder / name, format="parquet")
        path = f"{name}/part-0.parquet"
        adds.append(add(path, partition={}, size=(folder / path).stat().st_size, stats=stats(numbers)))
    adds[0] |= {"deletionVector": inline_vector([0, 7, 99])}
    adds[1] |= {"stats": None}  # nobody knows how many rows it has
    TableBuilder(folder, schema={"id": "long"}, partition_columns=()).commit(adds=adds)
    dataset = ld.open(str(folder)).to_pyarrow_dataset()
    assert dataset.count_rows() == dataset.to_table().num_rows == 147
    assert dataset.count_rows(pc.field("id") < 10) == 18
    assert sorted(fragment.count_rows() for fragment in dataset.get_fragments()) == [50, 97]
    assert dataset.to_table(columns=[]).num_rows == 147
