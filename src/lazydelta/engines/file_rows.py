"""Rows without a traversal: those of one file, and as many as the log counts.

Why: engines that share out the files of a dataset read each by itself; and whoever only counts rows need not
open files of which the log says how many there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing

import numpy as np
import pyarrow as pa

from lazydelta import limits
from lazydelta.log.file_rows import Batches
from lazydelta.rows.data_file import DATA_FILE_COLUMNS, DataFile, data_files
from lazydelta.rows.iterator import LazyRecordBatchIterator
from lazydelta.rows.row_plan import RowPlan
from lazydelta.rows.row_run import RowRun
from lazydelta.rows.source import RowSource
from lazydelta.scan.record_counts import NUM_RECORDS
from lazydelta.storage import Deadline


def rows_of_file(source: RowSource, file: DataFile, columns: Sequence[str]) -> LazyRecordBatchIterator:
    """The rows of this file that match, as a scan of the source would give them."""
    scan, snapshot, config = source.rows(columns), source.snapshot, source.config
    plan = RowPlan(
        selection=scan.selection,
        schema=scan.schema,
        predicate=scan.files.predicate,
        first_row=0,
        limit=scan.limit,
        is_backwards=False,
        batch_rows=config.batch_size,
        prefetch_size=limits.PREFETCH_SEGMENTS,
    )
    storage = snapshot.storage.scoped(deadline=Deadline.after(config.scan_timeout_seconds))
    run = RowRun(plan, (one for one in [file]), storage, version=snapshot.version)
    where = f"{storage.root} @ {snapshot.version}"
    return LazyRecordBatchIterator(scan.schema, run.batches(), where=where, stop=run.stop)


def is_countable(source: RowSource) -> bool:
    """Whether every row of every file counts, so that the log's counts are enough."""
    config = source.config
    return config.predicate is None and config.limit is None and config.order is None


def counted_rows(source: RowSource, mark: Sequence[str]) -> LazyRecordBatchIterator:
    """As many rows as there are; the `mark` (a column of numbers) says nothing, unless a file was read."""
    snapshot = source.snapshot
    where = f"{snapshot.storage.root} @ {snapshot.version}"
    return LazyRecordBatchIterator(source.rows(mark).schema, _counted(source, mark), where=where)


def _counted(source: RowSource, mark: Sequence[str]) -> Batches:
    schema = source.rows(mark).schema
    for file in _files(source):
        if file.num_records is None:
            with rows_of_file(source, file, mark) as rows:
                yield from rows
            continue
        for first in range(0, file.live_rows, source.config.batch_size):
            count = min(source.config.batch_size, file.live_rows - first)
            values = pa.array(np.zeros(count, np.int64)).cast(schema.field(0).type)
            yield pa.RecordBatch.from_arrays([values], schema=schema)


def _files(source: RowSource) -> Iterator[DataFile]:
    with closing(source.files().batches((*DATA_FILE_COLUMNS, NUM_RECORDS))) as batches:
        for batch in batches:
            yield from data_files(batch)
