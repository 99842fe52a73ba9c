"""How many rows the log says that a file has: the column `num_records`, made of a file's statistics.

Why: a limit that counts rows, and estimates, need this one number. It lies in the JSON of a commit, typed in
most checkpoints and in every sidecar; JSON of a checkpoint takes more to read than the number is worth where
a few files are wanted. Contract: null where it is not known, or was not looked for. Deleted rows are in it.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from lazydelta.log.file_rows import STATS_PARSED
from lazydelta.protocol.schema import PrimitiveType
from lazydelta.protocol.statistics import StatsColumn, statistics_from_json, statistics_from_struct

NUM_RECORDS = "num_records"
# Asks for the counts that every file has, without any column.
COUNTS = StatsColumn((), PrimitiveType("void"), null_count_only=True)


def with_record_counts(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The rows of files with `num_records` besides."""
    if NUM_RECORDS in rows.schema.names:
        return rows
    counts = _counts(rows)
    if counts is None:
        counts = pa.nulls(rows.num_rows, pa.int64())
    told = pc.if_else(pc.less(counts, 0), None, counts)  # a count below zero tells nothing
    return rows.append_column(NUM_RECORDS, told)


def _counts(rows: pa.RecordBatch) -> pa.Array | None:
    if STATS_PARSED in rows.schema.names:
        return statistics_from_struct(rows.column(STATS_PARSED), []).num_records
    if "stats" in rows.schema.names:
        return statistics_from_json(rows.column("stats"), []).num_records
    return None
