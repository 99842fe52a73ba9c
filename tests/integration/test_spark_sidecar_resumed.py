"""A build by Spark that is killed is gone on with: whole parts are taken over, nothing is there twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lazydelta.spark.checkpoint import ensure_sidecar
from lazydelta.storage import LocalStorage
from lazydelta.upkeep.build import build_sidecar
from tests.integration.test_spark_sidecar import BY_SPARK, LOCALLY, Events, assert_same
from tests.support.actions import add, stats
from tests.support.sidecar_build_process import PARTS
from tests.support.sidecar_twin import manifest_of, part_files
from tests.support.spark import environment_of_commands
from tests.support.table_builder import TableBuilder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
FILES = 90


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return many_files(tmp_path / "t")


def many_files(folder: Path) -> Path:
    """A table without data files, with a checkpoint."""
    files = [
        add(
            f"f{number:04}",
            partition={"date": None if number % 50 == 0 else f"2026-02-{number % 28 + 1:02}"},
            size=number + 1,
            stats=stats(low={"count": number}, high={"count": number}),
        )
        for number in range(FILES)
    ]
    return TableBuilder(folder, partition_columns=("date",)).commit(files).checkpoint().path


def build(spark: SparkSession, table: Path, *, full: bool = True) -> tuple[dict[str, object], str]:
    """What the build told when it began to write, and of what kind it was."""
    told: Events = []
    report = ensure_sidecar(
        spark,
        str(table),
        config=BY_SPARK,
        full=full,
        spark_files_min=0,
        progress=lambda event, /, **facts: told.append((event, facts)),
    )
    assert report is not None
    return dict(told).get("writing", {}), report.kind


def compared(table: Path) -> None:
    """The sidecar is what the local feeder builds."""
    storage = LocalStorage(str(table), f"file://{table}")
    build_sidecar(storage, config=LOCALLY, full=True)
    assert_same(table, 0)


@pytest.mark.long("a Java of its own, to be killed; parts that are taken over are covered below")
def test_a_killed_build_is_gone_on_with(spark: SparkSession, table: Path) -> None:
    folder = table / BY_SPARK.folder
    command = [sys.executable, "-m", "tests.support.sidecar_build_process", str(table), BY_SPARK.folder]
    process = subprocess.Popen(command, env=environment_of_commands(), start_new_session=True)
    try:
        _wait_for_parts(folder, PARTS, process)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    left = part_files(table, BY_SPARK.folder)
    assert not list(folder.glob("*.manifest.json"))
    writing, kind = build(spark, table)
    assert kind == "full"
    assert int(str(writing["taken_over"])) == len(left) == PARTS
    assert int(str(writing["taken_over"])) < int(str(writing["parts"]))
    compared(table)


def test_what_is_damaged_missing_or_to_be_replaced_is_written_anew(spark: SparkSession, table: Path) -> None:
    folder = table / BY_SPARK.folder
    writing, _ = build(spark, table)
    count = int(str(writing["parts"]))
    assert (writing["taken_over"], count > 20) == (0, True)
    (manifest,) = folder.glob("*.manifest.json")
    manifest.unlink()
    first, second, third = sorted(part_files(table, BY_SPARK.folder))[:3]
    (folder / first).unlink()
    (folder / second).write_bytes((folder / second).read_bytes()[:-20])
    damaged = bytearray((folder / third).read_bytes())
    damaged[60] ^= 1
    (folder / third).write_bytes(bytes(damaged))
    writing, kind = build(spark, table)
    assert (writing["taken_over"], writing["parts"], kind) == (count - 3, count, "full")
    compared(table)
    before = manifest_of(table, 0, BY_SPARK.folder)
    writing, kind = build(spark, table)  # asked for though it is there: nothing of it is trusted
    assert (writing["taken_over"], kind) == (0, "full")
    after = manifest_of(table, 0, BY_SPARK.folder)
    assert not {part["file"] for part in before["parts"]} & {part["file"] for part in after["parts"]}
    assert build(spark, table, full=False)[1] == "present"


def _wait_for_parts(folder: Path, count: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 240
    while len(list(_stored(folder))) < count:
        assert process.poll() is None, "the build ended before it was killed"
        assert time.monotonic() < deadline, "the build does not come forward"
        time.sleep(0.05)


def _stored(folder: Path) -> Iterator[Path]:
    return folder.glob("v*.parquet")
