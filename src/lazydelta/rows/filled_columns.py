"""Columns that data files do not hold: partition values, and what is known of a row besides its columns.

Contract: a partition value is typed as the schema says; one that cannot be read so is an error, never null.
A row id is the one stored in the file where there is one, else the file's base row id plus the row's
position; likewise its commit version. Without row tracking both are null.
Spec: PROTOCOL.md, "Partition Value Serialization", "Row Tracking", "Reader Requirements for Row Tracking".
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lazydelta.errors import CorruptLogError
from lazydelta.protocol.partition_values import parse_partition_column
from lazydelta.protocol.schema import Field, PrimitiveType
from lazydelta.rows.data_file import DataFile
from lazydelta.rows.selection import METADATA_COLUMNS


def partition_column(field: Field, file: DataFile, row_count: int, *, time_zone: str, where: str) -> pa.Array:
    """The file's value of a partition column, for each row."""
    assert isinstance(field.type, PrimitiveType), "Delta partitions by primitive columns alone"
    text = file.partition_values.get(field.name)
    value = parse_partition_column(pa.array([text], pa.string()), field.type, time_zone=time_zone)[0]
    if text and not value.is_valid:
        raise CorruptLogError(
            f"the partition value {text!r} of {field.name!r} is no {field.type.name}",
            where,
            "correct the log, or write the file's rows again",
        )
    return pa.repeat(value, row_count)


def metadata_column(
    name: str, file: DataFile, first_row: int, row_count: int, stored: pa.Array | None = None
) -> pa.Array:
    """One of `METADATA_COLUMNS` for rows of the file from `first_row` on; `stored` is what the file has."""
    derived = _derived(name, file, first_row, row_count)
    return derived if stored is None else pc.coalesce(stored, derived)


def _derived(name: str, file: DataFile, first_row: int, row_count: int) -> pa.Array:
    if name == "_file_path":
        return pa.repeat(pa.scalar(file.path), row_count)
    if name == "_row_index":
        return _numbers(first_row, row_count)
    if name == "_row_id" and file.base_row_id is not None:
        return _numbers(file.base_row_id + first_row, row_count)
    if name == "_commit_version" and file.default_row_commit_version is not None:
        return pa.repeat(pa.scalar(file.default_row_commit_version, pa.int64()), row_count)
    return pa.nulls(row_count, METADATA_COLUMNS[name])


def _numbers(first: int, count: int) -> pa.Array:
    return pa.array(np.arange(first, first + count, dtype=np.int64))
