"""Signs of life while Spark works: how many tasks of the running stages are done, every few seconds."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lazydelta.spark.failures import spark_failures

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lazydelta.upkeep.progress import Progress

EVERY_SECONDS = 2.0


@contextmanager
def ticking(
    spark: SparkSession, progress: Progress, *, every_seconds: float = EVERY_SECONDS
) -> Iterator[None]:
    """Tell `running` while the body runs, from a thread of its own."""
    is_over = threading.Event()

    def tell() -> None:
        while not is_over.wait(every_seconds):
            done, tasks = _tasks(spark)
            if tasks and not is_over.is_set():
                progress("running", tasks_done=done, tasks=tasks)

    thread = threading.Thread(target=tell, name="lazydelta-ticker", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join(every_seconds)


def _tasks(spark: SparkSession) -> tuple[int, int]:
    """(done, all) of the stages that run now; what cannot be asked is nothing."""
    try:
        tracker = spark.sparkContext.statusTracker()
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    except spark_failures():
        return 0, 0
    infos = [info for info in stages if info is not None]
    return sum(info.numCompletedTasks for info in infos), sum(info.numTasks for info in infos)
