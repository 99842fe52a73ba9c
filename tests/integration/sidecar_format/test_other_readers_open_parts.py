"""Any Parquet reader opens a part: pyarrow, Polars, DuckDB and Spark see the same values."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from bench.environments import python_of
from tests.integration.sidecar_format.parts import ROWS, layout, stored_part, sums

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DUCKDB = """
import duckdb, json, sys
duckdb.sql("set timezone = 'UTC'")
out = {}
for name in sys.argv[1:]:
    rows = duckdb.sql(f"select * from read_parquet('{name}')")
    names = rows.columns
    counts = ", ".join('count("%s")' % column.replace('"', '""') for column in names)
    out.update(zip(names, duckdb.sql(f"select {counts} from rows").fetchone()))
    if {"path", "min.moment"} <= {*names}:
        texts = ", ".join(f'"{column}"::varchar' for column in ("max.moment", "min.clock", "max.money"))
        where = '"min.big" is not null and "max.real" > 100'
        query = f'select "path", "min.big", {texts}, "min.tiny" from rows where {where} order by 1 limit 3'
        out["picked"] = duckdb.sql(query).fetchall()
print(json.dumps(out))
"""


def columns_of(files: list[Path]) -> pa.Table:
    """The halves of a part side by side."""
    tables = [ds.dataset(str(file), format="parquet").to_table() for file in files]
    columns = {name: table.column(name) for table in tables for name in table.schema.names}
    return pa.table({name: columns[name] for name in layout().schema.names})


@pytest.mark.parametrize("is_tiered", [False, True])
def test_pyarrow_reads_every_value_as_it_was(tmp_path: Path, is_tiered: bool) -> None:
    files, rows = stored_part(tmp_path, is_tiered=is_tiered)
    assert repr(columns_of(files).to_pylist()) == repr(rows.to_pylist())


def test_polars_reads_every_value_as_it_was(tmp_path: Path) -> None:
    (file,), rows = stored_part(tmp_path)
    found = pl.read_parquet(file)
    assert found.columns == rows.schema.names
    for name in found.columns:
        if name == "tags":
            continue
        expected = rows.column(name).to_pylist()
        assert repr(found[name].to_list()) == repr(expected), name
    kept = pl.scan_parquet(file).filter(pl.col("_event_hour") == "2026020102").collect()
    assert kept.height == 1_000


def duckdb_sees(files: list[Path]) -> dict[str, Any]:
    command = [str(python_of("duckdb")), "-c", DUCKDB, *map(str, files)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert ran.returncode == 0, ran.stderr
    seen: dict[str, Any] = json.loads(ran.stdout)
    return seen


@pytest.mark.parametrize("is_tiered", [False, True])
def test_duckdb_opens_a_part_and_counts_what_is_there(tmp_path: Path, is_tiered: bool) -> None:
    files, rows = stored_part(tmp_path, is_tiered=is_tiered)
    seen = duckdb_sees(files)
    picked = seen.pop("picked", None)
    assert seen == sums(rows)
    assert picked == (None if is_tiered else expected_picks(rows))


def expected_picks(rows: pa.RecordBatch) -> list[list[Any]]:
    """The same by Python."""
    picks = []
    for row in sorted(rows.to_pylist(), key=lambda row: row["path"]):
        high = row["max.real"]
        if row["min.big"] is None or high is None or not (high > 100 or high != high):  # noqa: PLR0124
            continue
        moment = row["max.moment"].isoformat(sep=" ", timespec="microseconds").replace("+00:00", "")
        clock = row["min.clock"].isoformat(sep=" ", timespec="microseconds")
        picks.append(
            [
                row["path"],
                row["min.big"],
                f"{moment.rstrip('0').rstrip('.')}+00",
                clock.rstrip("0").rstrip("."),
                str(row["max.money"]),
                row["min.tiny"],
            ]
        )
    return picks[:3]


@pytest.mark.spark
def test_spark_reads_a_part_by_its_vectorised_reader(spark: SparkSession, tmp_path: Path) -> None:
    (file,), rows = stored_part(tmp_path)
    assert spark.conf.get("spark.sql.parquet.enableVectorizedReader") == "true"
    frame = spark.read.parquet(str(file))
    assert frame.count() == ROWS
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    found = {row["path"]: row.asDict() for row in frame.collect()}
    for row in rows.to_pylist():
        seen = found[row["path"]]
        assert seen["min.big"] == row["min.big"]
        assert seen["max.money"] == row["max.money"]
        assert seen["min.day"] == row["min.day"]
        assert seen["min.clock"] == row["min.clock"]
        assert repr(seen["max.real"]) == repr(row["max.real"])
        assert seen["min.tiny"] == row["min.tiny"]
        assert seen["dv.offset"] == row["dv.offset"]
        assert seen["min.place.point.a\\.b"] == row["min.place.point.a\\.b"]
        assert seen["tags"] == (None if row["tags"] is None else dict(row["tags"]))
    counted = frame.selectExpr(*[f"count(`{name}`) as `{name}`" for name in frame.columns]).collect()[0]
    assert counted.asDict() == sums(rows)
    kept = frame.where("`_event_hour` = '2026020102' and `min.big` > 9007199254742000")
    big = [v for v in rows.column("min.big").to_pylist() if v is not None]
    assert kept.count() == sum(value > 9007199254742000 for value in big)
