"""A generated checkpoint is laid out as Delta on Spark lays out its own; Spark reads generated tables."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from bench.checkpoint import ROW_GROUP_BYTES
from bench.generate import Expected, generate
from bench.spec import TableSpec
from tests.support.eager_twin import replay
from tests.support.spark import delta_log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
variation = pytest.mark.long("one more layout of generated tables")

# Enough files for several pages a column and for dictionaries that outgrow their page.
FILES = 40_000
LAYOUTS: dict[str, dict[str, Any]] = {
    "json": {"stats": "json"},
    "both": {"stats": "both"},
    "parsed": {"stats": "parsed"},
    "both_unpartitioned": {"stats": "both", "partitioned": False},
    "both_event_hour": {"stats": "both", "event_hour": True},
    "both_no_deletion_vectors": {"stats": "both", "tail_dv_updates": 0},
}


@pytest.fixture(autouse=True)
def timestamps_as_spark_writes_them(spark: SparkSession) -> Iterator[None]:
    """The pipeline's session writes microseconds; Spark by itself the older INT96."""
    name = "spark.sql.parquet.outputTimestampType"
    before = spark.conf.get(name)
    spark.conf.set(name, "INT96")
    yield
    spark.conf.set(name, before)


@pytest.mark.parametrize(
    "layout", [layout if layout == "both" else pytest.param(layout, marks=variation) for layout in LAYOUTS]
)
def test_a_generated_checkpoint_looks_like_the_one_spark_writes(
    layout: str, spark: SparkSession, tmp_path: Path
) -> None:
    spec = TableSpec(
        files=FILES if layout == "both" else 2_000, order="spark", tail_commits=2, **LAYOUTS[layout]
    )
    expected = generate(tmp_path, spec)
    delta_log(spark, tmp_path).checkpoint()
    ours = _checkpoint(tmp_path, spec.base_version)
    theirs = _checkpoint(tmp_path, spec.version)
    assert _schema(ours) == _schema(theirs)
    assert _codecs(ours) == _codecs(theirs)
    assert ours.metadata.num_row_groups == theirs.metadata.num_row_groups
    assert theirs.metadata.num_rows == expected.live_files + 2, "Spark found exactly the live files"
    if layout == "both":
        assert _encodings(ours) == _encodings(theirs)
        assert _bytes_a_row(ours) == pytest.approx(_bytes_a_row(theirs), rel=0.15)


@pytest.mark.parametrize("checkpoint", ["v2-parquet", pytest.param("v2-json", marks=variation)])
def test_a_generated_v2_checkpoint_looks_like_the_one_spark_writes(
    checkpoint: str, spark: SparkSession, tmp_path: Path
) -> None:
    spec = TableSpec(files=2_000, tail_commits=2, stats="both", checkpoint=checkpoint, checkpoint_parts=2)
    generate(tmp_path, spec)
    form = checkpoint.removeprefix("v2-")
    with _setting(spark, "spark.databricks.delta.checkpointV2.topLevelFileFormat", form):
        delta_log(spark, tmp_path).checkpoint()
    log = tmp_path / "_delta_log"
    ours, theirs = (next(log.glob(f"{version:020d}.checkpoint.*.{form}")) for version in (1000, 1002))
    assert _kinds(ours) == _kinds(theirs)
    if form == "parquet":
        assert _schema(pq.ParquetFile(ours)) == _schema(pq.ParquetFile(theirs))
    sidecars = [next((log / "_sidecars").glob(f"{version:020d}.*")) for version in (1000, 1002)]
    assert _schema(pq.ParquetFile(sidecars[0])) == _schema(pq.ParquetFile(sidecars[1]))
    assert sidecars[0].name.split(".")[1:3] == ["checkpoint", "0000000001"]


@pytest.mark.parametrize(
    "checkpoint",
    [
        "v1",
        "v2-parquet",
        *(pytest.param(kind, marks=variation) for kind in ("v1-multipart", "v2-json", "none")),
    ],
)
def test_spark_reads_a_generated_table_with_its_data_and_deletion_vectors(
    checkpoint: str, spark: SparkSession, tmp_path: Path
) -> None:
    spec = TableSpec(
        files=120,
        tail_commits=4,
        tail_adds=5,
        tail_removes=4,
        tail_dv_updates=4,
        checkpoint=checkpoint,
        adds_per_commit=50,
        data="all",
    )
    expected: Expected = generate(tmp_path, spec)
    state = replay(tmp_path)
    rows = sum(json.loads(add["stats"])["numRecords"] for add in state.live.values())
    deleted = sum(
        (add.get("deletionVector") or {"cardinality": 0})["cardinality"] for add in state.live.values()
    )
    assert deleted > 0
    frame = spark.read.format("delta").load(str(tmp_path))
    assert frame.count() == rows - deleted
    assert len(frame.inputFiles()) == expected.live_files
    assert frame.where(f"date = '{expected.today}'").select("_metadata.file_path").distinct().count() == (
        expected.today_files
    )


def _checkpoint(table: Path, version: int) -> pq.ParquetFile:
    return pq.ParquetFile(table / "_delta_log" / f"{version:020d}.checkpoint.parquet")


def _schema(file: pq.ParquetFile) -> list[str]:
    """The Parquet schema without its first line, which names the writer."""
    return str(file.schema).splitlines()[2:]


def _columns(file: pq.ParquetFile) -> list[Any]:
    group = file.metadata.row_group(0)
    return [group.column(number) for number in range(group.num_columns)]


def _codecs(file: pq.ParquetFile) -> dict[str, tuple[str, str]]:
    return {column.path_in_schema: (column.physical_type, column.compression) for column in _columns(file)}


def _encodings(file: pq.ParquetFile) -> dict[str, tuple[bool, list[str]]]:
    """Encodings of adds; `BIT_PACKED` names the levels that a flat column does not have."""
    return {
        column.path_in_schema: (column.has_dictionary_page, sorted({*column.encodings} - {"BIT_PACKED"}))
        for column in _columns(file)
        if column.path_in_schema.startswith("add.")
    }


def _bytes_a_row(file: pq.ParquetFile) -> float:
    size = sum(column.total_compressed_size for column in _columns(file))
    assert size < ROW_GROUP_BYTES
    return float(size / file.metadata.row_group(0).num_rows)


def _kinds(top_level: Path) -> list[str]:
    """The kinds of action a V2 checkpoint's own file holds."""
    if top_level.suffix == ".json":
        return sorted({next(iter(json.loads(line))) for line in top_level.read_text().splitlines()})
    rows = pq.ParquetFile(top_level).read().to_pylist()
    return sorted({kind for row in rows for kind, action in row.items() if action is not None})


class _setting:  # noqa: N801 - reads as a statement
    """A Spark setting for the length of a block."""

    def __init__(self, spark: SparkSession, key: str, value: str) -> None:
        self._spark, self._key, self._value = spark, key, value

    def __enter__(self) -> None:
        self._spark.conf.set(self._key, self._value)

    def __exit__(self, *_: object) -> None:
        self._spark.conf.unset(self._key)
