"""Rows without a traversal: as many as the log counts.

Why: whoever only counts rows need not open files of which the log says how many there are. Contract: exact. A
filter must be one that partition values decide, so that the rows of a file match all or none; a file whose
count or partition values the log does not tell is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lazydelta.engines.chosen_files import rows_of_file
from lazydelta.engines.partition_rows import all_rows_match
from lazydelta.log.file_rows import Batches
from lazydelta.rows.data_file import DATA_FILE_COLUMNS
from lazydelta.rows.ordered_files import covers_limit
from lazydelta.rows.source import RowSource
from lazydelta.scan import FileScan
from lazydelta.scan.record_counts import NUM_RECORDS

ROW_MARK = "_row_index"  # read where no column is asked for: it costs nothing
_ZERO, _UNKNOWN = pa.scalar(0, pa.int64()), pa.scalar(None, pa.int64())


def is_countable(source: RowSource) -> bool:
    """Whether every file's rows count, all or none, so that the log's counts are enough."""
    config = source.config
    return config.limit is None and config.order is None and covers_limit(source.files().predicate)


def count_of_rows(source: RowSource, files: FileScan) -> int:
    """How many rows match."""
    total = 0
    for batch, counts in _counts(source, files):
        total += int(pc.sum(counts, min_count=0).as_py())
        for at in np.flatnonzero(counts.is_null().to_numpy(zero_copy_only=False)):
            total += sum(rows.num_rows for rows in rows_of_file(source, batch.slice(at, 1), (ROW_MARK,)))
    return total


def counted_rows(source: RowSource, files: FileScan, mark: Sequence[str]) -> Batches:
    """As many rows as there are; the `mark` (a column of numbers) says nothing, unless a file was read."""
    schema, rows_max = source.rows(mark).schema, source.config.batch_size
    zeros = pa.array(np.zeros(rows_max, np.int64)).cast(schema.field(0).type)
    for batch, counts in _counts(source, files):
        left = int(pc.sum(counts, min_count=0).as_py())
        while left:
            part = zeros.slice(0, left)
            left -= len(part)
            yield pa.RecordBatch.from_arrays([part], schema=schema)
        for at in np.flatnonzero(counts.is_null().to_numpy(zero_copy_only=False)):
            with rows_of_file(source, batch.slice(at, 1), mark) as rows:
                yield from rows


def _counts(source: RowSource, files: FileScan) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
    """Files, and for each its rows that match; null where only the file can tell."""
    with closing(files.batches((*DATA_FILE_COLUMNS, NUM_RECORDS))) as batches:
        for batch in batches:
            deleted = pc.fill_null(pc.struct_field(batch.column("deletion_vector"), "cardinality"), 0)
            live = pc.subtract(batch.column(NUM_RECORDS), deleted.cast(pa.int64()))
            counts = pc.if_else(pc.less(live, _ZERO), _ZERO, live)
            if files.predicate is not None:
                match = all_rows_match(source, batch, files.predicate)
                counts = pc.if_else(match, counts, _ZERO)  # null where it cannot be told
            yield batch, counts
