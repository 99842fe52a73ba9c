"""What an executor does: the files of one partition in, their rows out, by the one row reader.

Contract: nothing of the log is opened; version, columns and filter came with the plan. Deletion vectors,
column mapping, partition values and widened types are the row reader's. A consumer that stops, as `LIMIT`
does, stops the reads.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing

import msgspec

from lazydelta.log.file_rows import Batches
from lazydelta.memory_budget import PROCESS_MEMORY
from lazydelta.memory_share import MemoryShare
from lazydelta.rows.data_file import DataFile
from lazydelta.rows.row_plan import RowPlan
from lazydelta.rows.row_run import RowRun
from lazydelta.settings import Settings
from lazydelta.spark.reading.file_chunks import Chunk, unpacked
from lazydelta.storage import open_storage


class RowsOfPartition(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Everything an executor must know besides the files; it travels with the tasks."""

    url: str
    settings: Settings
    plan: RowPlan
    spill: str | None = None

    def read(self, chunks: tuple[Chunk, ...], version: int) -> Batches:
        """The rows that match; the version is told where a file is not there."""
        if self.settings.memory_bytes:
            PROCESS_MEMORY.limit_to(self.settings.memory_bytes)
        run = RowRun(
            self.plan,
            _pulled(unpacked(chunks, self.spill, self.settings)),
            open_storage(self.url, self.settings),
            version=version,
            timeout_seconds=self.settings.scan_timeout_seconds,
            files_share=MemoryShare(),
        )
        try:
            with closing(run.batches()) as batches:
                yield from batches
        finally:
            run.stop()


def _pulled(files: Iterator[DataFile]) -> Generator[DataFile, None, None]:
    yield from files
