"""What is known of a batch of files before any of them is opened."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pyarrow as pa

from lazydelta.protocol.statistics import ColumnBounds, FileStatistics


class FileFacts(msgspec.Struct, frozen=True, eq=False):
    """Partition values and statistics of `row_count` files, by physical names.

    A partition column that is missing in `partition_values` is judged by its bounds in `statistics`, where it
    has any: one row may then stand for many files.
    """

    row_count: int
    partition_values: Mapping[str, pa.StringArray] = msgspec.field(default_factory=dict)  # raw strings
    statistics: FileStatistics | None = None
    dv_cardinality: pa.Array | None = None  # rows deleted by deletion vectors; null or None is none
    # Where one row stands for many files: the least and the greatest text in a generated time column, null
    # where some file may lack a period. A single file's text is in `partition_values`.
    period_ranges: Mapping[str, ColumnBounds] = msgspec.field(default_factory=dict)
