"""The batch reader without Spark's JVM: planned here, read as executors do, compared with a scan of rows."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StringType, StructField, StructType

import lazydelta as ld
from lazydelta import errors
from lazydelta.errors import CorruptDataError, InvalidRequestError, LazyDeltaError, VersionNotFoundError
from lazydelta.spark.reading.batch_reader import FilePartition, LazyDeltaReader
from lazydelta.spark.reading.source import LazyDeltaSource
from tests.support.shared_tables import mapped_rows, mapped_table


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Ten files of ten rows, one a day."""
    for day in range(10):
        ids = pa.array(range(10 * day, 10 * day + 10), pa.int64())
        rows = pa.table({"id": ids, "day": [f"d{day}"] * 10})
        write_deltalake(str(tmp_path / "t"), rows, mode="append", partition_by=["day"])
    return tmp_path / "t"


def reader_of(table: Path, **options: str) -> LazyDeltaReader:
    source = LazyDeltaSource({"path": str(table), **options})
    schema = source.schema()
    reader = pickle.loads(pickle.dumps(source)).reader(schema)
    assert isinstance(reader, LazyDeltaReader)
    return reader


def rows_of(reader: LazyDeltaReader) -> pa.Table:
    """What the tasks give; the reader goes to executors before it plans, as in Spark."""
    afar = pickle.loads(pickle.dumps(reader))
    batches = [rows for part in reader.partitions() for rows in afar.read(pickle.loads(pickle.dumps(part)))]
    return pa.Table.from_batches(batches) if batches else pa.table({})


def files_of(reader: LazyDeltaReader) -> int:
    parts = [part for part in reader.partitions() if isinstance(part, FilePartition)]
    return sum(chunk.file_count for part in parts for chunk in part.chunks)


def test_rows_are_those_of_a_scan(table: Path) -> None:
    found = rows_of(reader_of(table, where="id >= 35 and id < 62", columns="day,id"))
    expected = ld.open(str(table)).scan("id >= 35 and id < 62").to_arrow(["day", "id"])
    assert found.sort_by("id").equals(expected.sort_by("id"))
    assert files_of(reader_of(table, where="id >= 35 and id < 62")) == 4


def test_mapped_columns_and_deletion_vectors_are_applied(tmp_path: Path) -> None:
    found = rows_of(reader_of(Path(mapped_table(tmp_path)))).to_pylist()
    assert (
        sorted(({**row, "day": str(row["day"])} for row in found), key=lambda row: row["id"]) == mapped_rows()
    )


def test_a_limit_plans_no_more_files_than_are_certainly_enough(table: Path) -> None:
    assert files_of(reader_of(table, limit="25")) == 3
    assert rows_of(reader_of(table, limit="25")).num_rows == 25
    assert files_of(reader_of(table, limit="5", where="day > 'd4'")) == 1
    assert files_of(reader_of(table, limit="5", where="id > 40")) == 6
    assert rows_of(reader_of(table, limit="5", where="id > 40")).num_rows == 5
    assert rows_of(reader_of(table, limit="0")).num_rows == 0


def test_a_partition_that_spark_made_up_has_no_rows(table: Path) -> None:
    assert list(reader_of(table).read(InputPartition(None))) == []


def test_the_version_is_the_one_of_the_schema(table: Path) -> None:
    source = LazyDeltaSource({"path": str(table)})
    schema = source.schema()
    write_deltalake(str(table), pa.table({"id": pa.array([1000], pa.int64()), "day": ["d0"]}), mode="append")
    reader = pickle.loads(pickle.dumps(source)).reader(schema)
    assert rows_of(reader).num_rows == 100


def test_a_time_without_a_zone_is_one_of_the_option_time_zone(table: Path) -> None:
    for version in range(10):
        at = 1_760_000_000 + 3600 * version  # version 0 at 08:53:20 UTC, one more an hour
        os.utime(table / "_delta_log" / f"{version:020}.json", (at, at))
    travels = [
        ("UTC", "2025-10-09 10:53:20", 30),
        ("America/New_York", "2025-10-09 10:53:20", 70),
        ("-04:00", "2025-10-09T10:53:20", 70),
        ("America/New_York", "2025-10-09T10:53:20Z", 30),
    ]
    for zone, told, rows in travels:
        assert rows_of(reader_of(table, timestampAsOf=told, timeZone=zone)).num_rows == rows
    with pytest.raises(InvalidRequestError, match="'yesterday' is not a time"):
        reader_of(table, timestampAsOf="yesterday")


def test_a_table_that_was_replaced_is_noticed(table: Path, tmp_path: Path) -> None:
    source = LazyDeltaSource({"path": str(table)})
    schema = source.schema()
    table.rename(tmp_path / "gone")
    for _ in range(10):
        write_deltalake(str(table), pa.table({"id": pa.array([1], pa.int64()), "day": ["d0"]}), mode="append")
    with pytest.raises(VersionNotFoundError, match="another table"):
        source.reader(schema)


def test_a_file_that_was_vacuumed_is_named_with_the_version(table: Path) -> None:
    reader = reader_of(table)
    next((table / "day=d3").glob("*.parquet")).unlink()
    with pytest.raises(CorruptDataError, match="data file of version 9 is not there") as error:
        rows_of(reader)
    assert "day=d3" in str(error.value) and "VACUUM" in error.value.fix


def test_a_schema_that_is_not_the_tables_is_refused(table: Path) -> None:
    other = StructType([StructField("id", StringType())])
    with pytest.raises(InvalidRequestError, match="not the table's"):
        LazyDeltaSource({"path": str(table)}).reader(other)


def test_options_of_streams_are_refused(table: Path) -> None:
    with pytest.raises(InvalidRequestError, match="readStream"):
        reader_of(table, startingVersion="1")


def test_no_credentials_are_shown(table: Path) -> None:
    reader = reader_of(table, **{"storage.account_key": "c2VjcmV0"})
    shown = repr(reader.partitions()) + repr(reader) + repr(reader.__getstate__())
    assert "c2VjcmV0" not in shown


def test_every_error_survives_pickling_with_its_words() -> None:
    kinds = [
        kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, LazyDeltaError)
    ]
    assert len(kinds) > 8
    for kind in kinds:
        error = pickle.loads(pickle.dumps(kind("what", "where", "fix")))
        assert type(error) is kind
        assert (error.what, error.where, error.fix) == ("what", "where", "fix")
