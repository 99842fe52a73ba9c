"""A Spark build of a sidecar in a process of its own, whose Python workers are killed while they write.

`python -m tests.support.killed_workers TABLE`: prints how many were killed, the kind of the build, its parts.
"""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

import psutil

from lazydelta.sidecar.format.config import SidecarConfig
from lazydelta.spark.checkpoint import ensure_sidecar
from lazydelta.spark.config import SparkConfig
from lazydelta.spark.session import get_session

KILLS = 3
DAEMON = "pyspark.daemon"
CONFIG = SidecarConfig(row_group_rows=5, row_groups_max=2)


def main(table: Path) -> None:
    """Build, and kill a worker each time a few more parts have come."""
    # Unlike the plain local master this one tries a failed task again.
    spark = get_session(SparkConfig(spark={"spark.master": "local[2,8]"}))
    killed: list[int] = []
    threading.Thread(target=_kill_some, args=(table, killed), daemon=True).start()
    report = ensure_sidecar(spark, str(table), config=CONFIG, spark_files_min=0)
    assert report is not None
    print(len(killed), report.kind, report.parts_total)


def _kill_some(table: Path, killed: list[int]) -> None:
    while len(killed) < KILLS:
        time.sleep(0.01)
        parts = list((table / CONFIG.folder).glob("*.parquet"))
        if len(parts) > 4 * len(killed):
            killed.extend(_kill_one_worker())


def _kill_one_worker() -> list[int]:
    for process in psutil.Process().children(recursive=True):
        try:
            parent = process.parent()
            if parent is not None and DAEMON in process.cmdline() and DAEMON in parent.cmdline():
                process.kill()
                return [process.pid]
        except psutil.Error:
            continue
    return []


if __name__ == "__main__":
    main(Path(sys.argv[1]))
