"""One live file as the rows of a scan need it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pyarrow as pa

from lazydelta.protocol.actions import DeletionVector
from lazydelta.scan.values import values_of

# What a scan of rows asks of the scan of files.
DATA_FILE_COLUMNS = (
    "path",
    "size",
    "partition_values",
    "deletion_vector",
    "base_row_id",
    "default_row_commit_version",
)


class DataFile(msgspec.Struct, frozen=True, kw_only=True):
    """A logical file: a Parquet file less the rows that its deletion vector lists."""

    path: str  # decoded, relative to the table's root, or an absolute URI outside it
    size: int
    partition_values: dict[str, str | None]  # by column name, as written in the log
    deletion_vector: DeletionVector | None = None
    num_records: int | None = None  # rows of the Parquet file, where the log says so
    base_row_id: int | None = None
    default_row_commit_version: int | None = None

    @property
    def live_rows(self) -> int:
        """Rows that are certainly there, by the log; 0 where it does not say."""
        if self.num_records is None:
            return 0
        deleted = 0 if self.deletion_vector is None else self.deletion_vector.cardinality
        return max(0, self.num_records - deleted)


def data_files(batch: pa.RecordBatch) -> Iterator[DataFile]:
    """The files of a batch that has `DATA_FILE_COLUMNS`."""
    columns = (values_of(batch.column(name)) for name in DATA_FILE_COLUMNS)
    for path, size, partitions, vector, row_id, version in zip(*columns, strict=True):
        yield DataFile(
            path=path,
            size=size,
            partition_values=partitions or {},
            deletion_vector=None if vector is None else DeletionVector(**vector),
            base_row_id=row_id,
            default_row_commit_version=version,
        )
