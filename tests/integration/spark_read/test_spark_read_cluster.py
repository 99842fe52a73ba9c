"""Several executors: every row once, though executors are killed and tasks run twice; so with a sidecar."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lazydelta.storage import LocalStorage
from lazydelta.upkeep.build import build_sidecar
from tests.integration.test_spark_sidecar import BY_SPARK, LOCALLY, assert_same
from tests.integration.test_spark_sidecar_resumed import many_files
from tests.support.spark import environment_of_commands

pytestmark = [
    pytest.mark.spark,
    pytest.mark.long("a cluster of three JVMs whose executors are killed again and again"),
]
FILES, ROWS_A_FILE = 30, 4000


def test_every_row_and_every_part_comes_once_though_executors_are_killed(tmp_path: Path) -> None:
    days = pa.array([f"d{at:03}" for at in range(FILES)]).dictionary_encode()
    indices = pa.array([at // ROWS_A_FILE for at in range(FILES * ROWS_A_FILE)], pa.int32())
    ids = pa.array(range(FILES * ROWS_A_FILE), pa.int64())
    rows = pa.table({"id": ids, "day": days.dictionary.take(indices)})
    write_deltalake(str(tmp_path / "t"), rows, partition_by=["day"])
    other = many_files(tmp_path / "other")
    places = [str(tmp_path / "t"), str(other), BY_SPARK.folder]
    command = [sys.executable, "-m", "tests.support.cluster_read_process", *places]
    done = subprocess.run(
        command, env=environment_of_commands(), capture_output=True, text=True, timeout=500, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout.splitlines()[-1])
    count = FILES * ROWS_A_FILE
    expected = {"n": count, "total": count * (count - 1) // 2, "ids": count}
    assert [told["calm"], *told["broken"]] == [expected] * (1 + len(told["broken"]))
    assert told["killed"] >= 1
    assert told["partitions"] >= 15
    assert set(told["built"]) == {"full"}
    assert told["killed_builds"] >= 1
    build_sidecar(LocalStorage(str(other), f"file://{other}"), config=LOCALLY, full=True)
    # What a task that was killed last has stored since is the cleaner's.
    assert_same(other, 0, is_tidy=False)
