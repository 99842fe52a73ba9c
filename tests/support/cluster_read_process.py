"""A table read, and the sidecar of another built, by executors of which one is killed on the way.

`python -m tests.support.cluster_read_process TABLE OTHER FOLDER`: prints rows and sums of a calm read and of
those whose executors are killed, with a Python worker, until a kill came before the end, with speculation on,
and how many those were; then the same of builds.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable

import psutil

from lazydelta.sidecar import SidecarConfig
from lazydelta.spark import read
from lazydelta.spark.checkpoint import ensure_sidecar
from lazydelta.spark.config import SparkConfig
from lazydelta.spark.session import get_session
from tests.support.spark import QUICK_JAVA

DELAYS = (0.5, 0.2, 0.1, 0.05, 0.0)  # of kills: a quiet machine has read all in less
EXECUTOR = "CoarseGrainedExecutorBackend"
TOTALS = ("count(*) as n", "sum(id) as total", "count(distinct id) as ids")
SETTINGS = {
    "spark.master": "local-cluster[2,1,700]",
    "spark.executor.memory": "700m",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": QUICK_JAVA,
    "spark.executor.extraJavaOptions": QUICK_JAVA,
    "spark.speculation": "true",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.1",
    "spark.sql.files.maxPartitionBytes": "4200000",  # with the cost of opening it, one small file
}


def main(table: str, other: str, folder: str) -> None:
    """Read, then build."""
    spark = get_session(SparkConfig(spark=SETTINGS))
    frame = read(spark, table, native=False)
    totals = frame.selectExpr(*TOTALS)
    calm = totals.collect()[0].asDict()
    broken: list[dict[str, int]] = []
    killed = _kill_during(lambda: broken.append(totals.collect()[0].asDict()))
    config = SidecarConfig(folder=folder, row_group_rows=4, row_groups_max=2)
    built: list[str] = []

    def build() -> None:
        report = ensure_sidecar(spark, other, config=config, full=True, spark_files_min=0)
        assert report is not None
        built.append(report.kind)

    killed_builds = _kill_during(build)
    broken.append(read(spark, table, native=True).selectExpr(*TOTALS).collect()[0].asDict())
    partitions = frame.rdd.getNumPartitions()
    told = {"calm": calm, "broken": broken, "killed": killed, "partitions": partitions}
    print(json.dumps(told | {"built": built, "killed_builds": killed_builds}))
    spark.stop()


def _kill_during(work: Callable[[], None]) -> int:
    """Do it again, killing ever sooner, until a kill came before the end; how many those were."""
    for delay in DELAYS:
        kills: list[float] = []
        thread = threading.Thread(target=_kill_executors, args=(kills, delay), daemon=True)
        thread.start()
        work()
        ended = time.monotonic()
        thread.join()
        killed = sum(at < ended for at in kills)
        if killed:
            return killed
    return 0


def _kill_executors(kills: list[float], delay: float) -> None:
    """One of the two, as soon as it works, and the Python worker of the other; when that was."""
    time.sleep(delay)
    executors = [one for one in psutil.Process().children(recursive=True) if _has(one, EXECUTOR)]
    if executors:
        executors[0].kill()
        kills.append(time.monotonic())
    time.sleep(delay)
    for one in executors[1:]:
        workers = [child for child in one.children(recursive=True) if _has(child, "pyspark.daemon")]
        for worker in workers[-1:]:
            worker.kill()
            kills.append(time.monotonic())


def _has(process: psutil.Process, word: str) -> bool:
    try:
        return any(word in part for part in process.cmdline())
    except psutil.Error:
        return False


if __name__ == "__main__":
    main(*sys.argv[1:])
