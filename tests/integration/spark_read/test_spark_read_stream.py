"""A stream of a table in Spark: every row once, over restarts and kills."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as pads
import pytest
from deltalake import write_deltalake

from lazydelta.spark import register
from tests.integration.test_spark_parity import history, insert
from tests.support.spark import environment_of_commands

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def run(spark: SparkSession, table: Path, place: Path, **options: str) -> list[int]:
    """The table's stream to its present end, into Parquet; rows of each batch."""
    register(spark)
    frame = spark.readStream.format("lazydelta").options(**options).load(str(table))
    writer = frame.writeStream.format("parquet").option("checkpointLocation", str(place / "checkpoint"))
    query = writer.trigger(availableNow=True).start(str(place / "out"))
    query.awaitTermination()
    return [progress["numInputRows"] for progress in query.recentProgress if progress["numInputRows"]]


def test_a_stream_goes_on_where_it_ended(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "table"
    sql = history(spark, table, "'delta.enableDeletionVectors' = 'true'")
    insert(sql, 20, 1)
    sql("delete from {t} where count = 3")
    assert run(spark, table, tmp_path) == [19]
    insert(sql, 10, 4)
    insert(sql, 10, 5)
    assert run(spark, table, tmp_path, maxFilesPerTrigger="1") == [10, 10]
    assert run(spark, table, tmp_path) == []
    found = spark.read.parquet(str(tmp_path / "out"))
    expected = spark.read.format("delta").load(str(table))
    assert found.exceptAll(expected).count() == expected.exceptAll(found).count() == 0


def test_what_ends_a_stream_is_told_to_its_user(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.errors import StreamingQueryException

    table = tmp_path / "table"
    sql = history(spark, table)
    insert(sql, 10, 1)
    assert run(spark, table, tmp_path) == [10]
    sql("delete from {t} where date = '2026-02-01'")
    with pytest.raises(StreamingQueryException) as error:
        run(spark, table, tmp_path)
    assert "version 2 deletes rows that the stream may have read" in str(error.value)
    assert "give the option ignoreDeletes" in str(error.value)
    assert run(spark, table, tmp_path, ignoreDeletes="true") == []


@pytest.mark.long("two starts of Java; offsets that go on where they ended are covered above")
def test_a_stream_that_is_killed_gives_every_row_once(tmp_path: Path) -> None:
    table = tmp_path / "table"
    versions = 5

    def write(version: int) -> None:
        ids = pa.array(range(10 * version, 10 * version + 10), pa.int64())
        write_deltalake(str(table), pa.table({"id": ids}), mode="append")

    for version in range(versions - 1):
        write(version)
    command = [sys.executable, "-m", "tests.support.read_stream_process", str(table), str(tmp_path)]
    environment = environment_of_commands()
    process = _started([*command, "forever"], environment)
    _wait_for_commits(tmp_path / "checkpoint" / "commits", 2, process)
    write(versions - 1)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    process = _started(command, environment)
    assert process.wait(timeout=300) == 0
    assert len(_numbers(tmp_path / "checkpoint" / "commits")) == versions
    assert Counter(_committed_ids(tmp_path / "out")) == Counter(range(10 * versions))


def _started(command: list[str], environment: dict[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, env=environment, start_new_session=True)


def _wait_for_commits(folder: Path, count: int, process: subprocess.Popen[Any]) -> None:
    deadline = time.monotonic() + 240
    while len(_numbers(folder)) < count:
        assert process.poll() is None, "the stream ended before it was killed"
        assert time.monotonic() < deadline, "the stream does not come forward"
        time.sleep(0.02)


def _numbers(folder: Path) -> list[str]:
    return [path.name for path in folder.glob("*") if path.name.isdigit()]


def _committed_ids(folder: Path) -> list[int]:
    """Rows of the files that the sink's own log names: what a killed batch left behind is not among them."""
    lines = [
        line
        for path in sorted((folder / "_spark_metadata").glob("[0-9]*"))
        for line in path.read_text("utf-8").splitlines()[1:]
    ]
    names = {Path(name).name for line in lines for name in [line.partition('"path":"')[2].partition('"')[0]]}
    rows = pads.dataset([str(folder / name) for name in sorted(names)], format="parquet").to_table()
    return list(rows.column("id").to_pylist())
