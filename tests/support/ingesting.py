"""Ingests for tests: sources written by hand, tables read back file by file without Spark."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq

import lazydelta as ld
from lazydelta.spark import IngestSummary, ingest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FORMATS = {
    "month": "%Y%m",
    "day": "%Y%m%d",
    "hour": "%Y%m%d%H",
    "minute": "%Y%m%d%H%M",
    "second": "%Y%m%d%H%M%S",
}
Row = Mapping[str, Any]  # Any: values of JSON


def write_json(folder: Path, rows: Iterable[Row | str], name: str = "rows.json") -> Path:
    """A folder with one more file of JSON lines; text is written as it is."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    (folder / name).write_text("".join(f"{line}\n" for line in lines))
    return folder


def write_text(folder: Path, text: str, name: str) -> Path:
    """A folder with one more file."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    return folder


def run_ingest(spark: SparkSession, source: Path | str, target: Path, **settings: Any) -> IngestSummary:
    """Ingest with the shared session; `ts` is the event time and no sidecar is written unless said."""
    given = {"event_time": "ts", "write_sidecar": False, **settings}
    return ingest(str(source), str(target), session=spark, **given)


def files_of(target: Path) -> dict[str, pa.Table]:
    """Every live file by its path, as its own Parquet has it."""
    paths = [file.path for file in ld.open(str(target)).scan().files()]
    return {path: _read(target / path) for path in paths}


def rows_by_period(target: Path, column: str = "_event_hour") -> dict[str, list[dict[str, Any]]]:
    """The rows of each period by the names of the folders; values as Python has them."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for path, table in files_of(target).items():
        folder = path.split("/")[0]
        assert folder.startswith(f"{column}="), path
        rows.setdefault(folder.removeprefix(f"{column}="), []).extend(table.to_pylist())
    return rows


def assert_one_period_per_file(
    target: Path,
    *,
    column: str = "_event_hour",
    granularity: str = "hour",
    zone: str = "UTC",
    time: str = "ts",
) -> int:
    """Every row's time, formatted here, names the folder its file is in; the number of files."""
    files = files_of(target)
    for path, table in files.items():
        assert table.num_rows, path
        found = {period_of(value, granularity, zone) for value in table[time].to_pylist()}
        assert found == {path.split("/")[0].removeprefix(f"{column}=")}, path
    return len(files)


def period_of(moment: dt.datetime | dt.date, granularity: str, zone: str) -> str:
    """The naive twin of the generated column."""
    if isinstance(moment, dt.datetime) and moment.tzinfo is not None:
        moment = moment.astimezone(ZoneInfo(zone))
    return moment.strftime(FORMATS[granularity])


def rejects_of(spark: SparkSession, target: Path) -> list[tuple[str, str]]:
    """(reason, record) of the rejects beside the target."""
    rows = spark.read.format("delta").load(f"{target}_rejects").collect()
    return sorted((row["reason"], row["record"]) for row in rows)


def commits_of(target: Path | str) -> int:
    """How many commits a table's log holds."""
    return len([name for name in Path(target, "_delta_log").glob("*.json") if name.stem.isdigit()])


def _read(path: Path) -> pa.Table:
    """A file's rows; Spark's INT96 is a moment, which pyarrow shows without a zone."""
    file = pq.ParquetFile(path, coerce_int96_timestamp_unit="us")
    table = file.read()
    leaves = [file.schema.column(number) for number in range(len(file.schema))]
    for name in [leaf.name for leaf in leaves if leaf.physical_type == "INT96" and leaf.path == leaf.name]:
        index = table.column_names.index(name)
        table = table.set_column(index, name, table[name].cast(pa.timestamp("us", "UTC")))
    return table
