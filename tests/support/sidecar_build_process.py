"""A sidecar built by Spark in a process of its own, to be killed: `python -m … TABLE FOLDER`.

One core, so that parts appear one after the other. Once `PARTS` of them are stored, the task waits to be
killed: whoever looks at the folder may be held back for longer than the rest would take.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from lazydelta.sidecar import SidecarConfig
from lazydelta.spark import sidecar_job
from lazydelta.spark.checkpoint import ensure_sidecar
from lazydelta.spark.config import SparkConfig
from lazydelta.spark.session import get_session
from lazydelta.spark.sidecar_task import PartTask, write_parts
from tests.support.spark import QUICK_JAVA

PARTS = 3


def main(table: str, folder: str) -> None:
    """Build it."""
    stored = Path(table) / folder

    def held(batches: Iterator[pa.RecordBatch], task: PartTask) -> Iterator[pa.RecordBatch]:
        for report in write_parts(batches, task):
            while len(list(stored.glob("v*.parquet"))) >= PARTS:
                time.sleep(1)
            yield report

    sidecar_job.write_parts = held  # what runs in the tasks
    settings = {"spark.master": "local[1]", "spark.driver.extraJavaOptions": QUICK_JAVA}
    spark = get_session(SparkConfig(spark=settings))
    config = SidecarConfig(folder=folder, row_group_rows=2, row_groups_max=2)
    ensure_sidecar(spark, table, config=config, full=True, spark_files_min=0)


if __name__ == "__main__":
    main(*sys.argv[1:])
