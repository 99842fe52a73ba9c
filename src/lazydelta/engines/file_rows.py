"""Rows without a traversal: those of one file, and as many as the log counts.

Why: engines that share out the files of a dataset read each by itself; and whoever only counts rows need not
open files of which the log says how many there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

import msgspec
import numpy as np
import pyarrow as pa

from lazydelta.log.file_rows import Batches
from lazydelta.rows.data_file import DATA_FILE_COLUMNS, data_files
from lazydelta.rows.iterator import LazyRecordBatchIterator
from lazydelta.rows.row_scan import RowScan
from lazydelta.rows.source import RowSource
from lazydelta.scan import FileScan
from lazydelta.scan.record_counts import NUM_RECORDS

_UNKNOWN = pa.nulls(1, pa.int64())


class OneFile(FileScan):
    """A scan of files that found one, whatever its filter would say of it."""

    def __init__(self, source: RowSource, file: pa.RecordBatch) -> None:
        """`file`: one row, with `DATA_FILE_COLUMNS`."""
        # Which file comes after which means nothing here.
        super().__init__(source.snapshot, msgspec.structs.replace(source.config, limit=None, order=None))
        self._file = file

    def batches(self, columns: Sequence[str] = DATA_FILE_COLUMNS, *, with_keys: bool = False) -> Batches:
        """The one; what is not known of it is null."""
        assert not with_keys or self.config.order is None
        row = self._file
        arrays = [row.column(name) if name in row.schema.names else _UNKNOWN for name in columns]
        yield pa.RecordBatch.from_arrays(arrays, names=list(columns))


def rows_of_file(source: RowSource, file: pa.RecordBatch, columns: Sequence[str]) -> LazyRecordBatchIterator:
    """The rows of this file that match, as a scan of the source would give them."""
    return RowScan(OneFile(source, file), columns, limit=source.config.limit).batches()


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
    schema, rows_max = source.rows(mark).schema, source.config.batch_size
    with closing(source.files().batches((*DATA_FILE_COLUMNS, NUM_RECORDS))) as batches:
        for batch in batches:
            for at, file in enumerate(data_files(batch)):
                if file.num_records is None:
                    yield from rows_of_file(source, batch.slice(at, 1), mark)
                    continue
                for first in range(0, file.live_rows, rows_max):
                    count = min(rows_max, file.live_rows - first)
                    values = pa.array(np.zeros(count, np.int64)).cast(schema.field(0).type)
                    yield pa.RecordBatch.from_arrays([values], schema=schema)
