"""One live file as the rows of a scan need it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pyarrow as pa

from lazydelta.protocol.actions import DeletionVector
from lazydelta.scan.record_counts import NUM_RECORDS
from lazydelta.scan.values import values_of
from lazydelta.sidecar.read.traversal import ORDER_VALUE

# What a scan of rows asks of the scan of files.
DATA_FILE_COLUMNS = (
    "path",
    "size",
    "partition_values",
    "deletion_vector",
    "base_row_id",
    "default_row_commit_version",
)
_OPTIONAL = (NUM_RECORDS, ORDER_VALUE, "raw_path")


class DataFile(msgspec.Struct, frozen=True, kw_only=True):
    """A logical file: a Parquet file less the rows that its deletion vector lists."""

    path: str  # decoded, relative to the table's root, or an absolute URI outside it
    size: int
    partition_values: dict[str, str | None]  # by column name, as written in the log
    deletion_vector: DeletionVector | None = None
    num_records: int | None = None  # rows of the Parquet file, where the log says so and it was asked
    base_row_id: int | None = None
    default_row_commit_version: int | None = None
    # Of an ordered scan: what it goes by before the path; times and dates as numbers. Any: else of the
    # column's type.
    order_value: Any = None
    raw_path: str | None = None  # of an ordered scan: the path as the log spells it

    @property
    def live_rows(self) -> int:
        """Rows that are certainly there, by the log; 0 where it does not say."""
        if self.num_records is None:
            return 0
        deleted = 0 if self.deletion_vector is None else self.deletion_vector.cardinality
        return max(0, self.num_records - deleted)

    @property
    def dv_id(self) -> str | None:
        """What tells logical files of one path apart."""
        return None if self.deletion_vector is None else self.deletion_vector.dv_id


def data_files(batch: pa.RecordBatch) -> Iterator[DataFile]:
    """The files of a batch that has `DATA_FILE_COLUMNS`, and perhaps counts and keys."""
    columns = [values_of(batch.column(name)) for name in DATA_FILE_COLUMNS]
    for name in _OPTIONAL:
        has_it = name in batch.schema.names
        columns.append(_plain(batch.column(name)) if has_it else [None] * batch.num_rows)
    for path, size, partitions, vector, row_id, version, count, order_value, raw_path in zip(
        *columns, strict=True
    ):
        yield DataFile(
            path=path,
            size=size,
            partition_values=partitions or {},
            deletion_vector=None if vector is None else DeletionVector(**vector),
            num_records=count,
            base_row_id=row_id,
            default_row_commit_version=version,
            order_value=order_value,
            raw_path=raw_path,
        )


def _plain(column: pa.Array) -> list[Any]:  # Any: as the column's type
    """The values as Python has them; times and dates as numbers, since Python's end at the year 9999."""
    if pa.types.is_temporal(column.type):
        column = column.cast(pa.int32() if pa.types.is_date32(column.type) else pa.int64())
    return list(column.to_pylist())
