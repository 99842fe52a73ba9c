"""The batches of a stream, one at a time: called by Spark, from a thread of its own.

Contract: `write` returns only when the batch is in the table, its rejects beside it and the sidecar looked
after; Spark notes the batch as done after that. Whatever is raised stays in `error`, as it was raised: Spark
passes on its text alone. Once `stop` is set no batch begins: it is refused, and so stays undone.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import msgspec

from lazydelta.spark.after_commit import after_commit
from lazydelta.spark.config import IngestConfig
from lazydelta.spark.ingest import write_batch
from lazydelta.spark.record_columns import PATH
from lazydelta.spark.source import open_source
from lazydelta.spark.stream_state import StreamState, target_facts
from lazydelta.spark.stream_totals import StreamTotals
from lazydelta.upkeep.progress import Progress

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class _RefusedError(Exception):
    """A batch came after the wish to stop."""


class StreamBatches:
    """What Spark calls for every batch, and what came of it."""

    def __init__(
        self,
        spark: SparkSession,
        config: IngestConfig,
        state: StreamState,
        *,
        progress: Progress,
        stop: threading.Event,
    ) -> None:
        self.error: BaseException | None = None
        self.is_busy = False
        self.is_refusing = False
        self.totals = StreamTotals()
        self._spark = spark
        # A checkpoint that was asked for comes at the end, not after every batch.
        self._config = msgspec.structs.replace(config, app_id=state.app_id, checkpoint=False)
        self._is_checkpoint_asked = config.checkpoint
        self._state = state
        self._progress = progress
        self._stop = stop

    def write(self, frame: DataFrame, batch_id: int) -> None:
        """Write one batch; for `foreachBatch`."""
        if self._stop.is_set():
            self.is_refusing = True
            raise _RefusedError
        self.is_busy = True
        try:
            self._write(frame, batch_id)
        except BaseException as problem:
            self.error = problem
            raise
        finally:
            self.is_busy = False

    def write_last_checkpoint(self) -> None:
        """The checkpoint and its sidecar, where they were asked for and something was written."""
        if self._is_checkpoint_asked and self.totals.commits:
            config = msgspec.structs.replace(self._config, checkpoint=True)
            self.totals.add_sidecar(after_commit(self._spark, config, self._progress))

    def _write(self, frame: DataFrame, batch_id: int) -> None:
        totals = self.totals
        files, rows, spark = self._rows(frame)
        self._progress("batch_started", batch_id=batch_id, files=files)
        if rows is not None:
            result = write_batch(spark, rows, self._config, batch_id=batch_id, progress=self._progress)
            self._remember_table()
            totals.add(result)
            totals.add_sidecar(after_commit(self._spark, self._config, self._progress))
        totals.batches += 1
        totals.files_read += files or 0
        totals.batch_first = batch_id if totals.batch_first is None else totals.batch_first
        totals.batch_last = batch_id
        self._progress("batch_done", batch_id=batch_id, **msgspec.to_builtins(totals))

    def _rows(self, frame: DataFrame) -> tuple[int | None, DataFrame | None, SparkSession]:
        """How many files a batch has, its rows (None where the files are empty), and their session."""
        if PATH not in frame.columns:
            return None, frame, frame.sparkSession
        paths = sorted(row[0] for row in frame.select(PATH).distinct().collect())
        rows = open_source(self._spark, self._config, paths) if paths else None
        return len(paths), rows, self._spark

    def _remember_table(self) -> None:
        if self._state.table_id is None:
            self._state.keep_table_id(target_facts(self._spark, self._config.target).table_id)
