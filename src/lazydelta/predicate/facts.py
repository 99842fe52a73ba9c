"""What is known of a batch of files before any of them is opened."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pyarrow as pa

from lazydelta.protocol.statistics import FileStatistics


class FileFacts(msgspec.Struct, frozen=True, eq=False):
    """Partition values and statistics of `row_count` files, by physical names.

    A partition column that is missing in `partition_values` is judged by its bounds in `statistics`, where it
    has any: one row may then stand for many files.
    """

    row_count: int
    partition_values: Mapping[str, pa.StringArray] = msgspec.field(default_factory=dict)  # raw strings
    statistics: FileStatistics | None = None
    dv_cardinality: pa.Array | None = None  # rows deleted by deletion vectors; null or None is none
