"""Row groups of a file that cannot hold a row that matches, by the statistics in its footer.

Contract: one-sided: a row group is left out only when proven. Bounds are brought to the table's types the way
values are, and judged by the predicate room, which knows about NaN, cut texts and rounding. A column that the
file lacks is null in every row. Deleted rows are still counted by the footer, so that with a deletion vector
counts of nulls speak only at none and at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyarrow import types as kinds

from lazydelta.predicate import BoundColumn, BoundPredicate, FileFacts, columns_of
from lazydelta.protocol.statistics import ColumnBounds, FileStatistics
from lazydelta.rows.column_reading import Reading
from lazydelta.rows.data_file import DataFile
from lazydelta.rows.leaf_casts import leaf_cast
from lazydelta.rows.legacy_calendar import known_bounds

_EXACT = Context(prec=80)
_IMPOSSIBLE = (pa.ArrowException, ArithmeticError, ValueError, TypeError)
_UNITS = {"milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}


def row_groups_left(
    metadata: pq.FileMetaData, reading: Reading, predicate: BoundPredicate, file: DataFile
) -> NDArray[np.bool_]:
    """For each row group whether it might match; `reading` covers the columns of the predicate."""
    count = metadata.num_row_groups
    bounds: dict[tuple[str, ...], ColumnBounds] = {}
    partitions: dict[str, pa.Array] = {}
    num_rows = [metadata.row_group(index).num_rows for index in range(count)]
    for column in dict.fromkeys(columns_of(predicate.root)):
        if column.is_partition:
            text = file.partition_values.get(column.path[0])
            partitions[column.physical_path[0]] = pa.array([text] * count, pa.string())
            continue
        found = _reading_of(column, reading)
        if found is None:
            bounds[column.physical_path] = ColumnBounds(null_count=pa.array(num_rows, pa.int64()))
        elif found.cast is not None:
            bounds[column.physical_path] = _bounds(metadata, found)
    is_tight = None if file.deletion_vector is None else pa.array([False] * count)
    statistics = FileStatistics(count, pa.array(num_rows, pa.int64()), is_tight, bounds)
    return predicate.might_match(FileFacts(count, partitions, statistics))


def _reading_of(column: BoundColumn, root: Reading) -> Reading | None:
    """How the column is read; None where the file lacks it."""
    reading: Reading | None = root
    for name in column.path:
        assert reading is not None and kinds.is_struct(reading.wanted), "the filter is bound to this schema"
        reading = reading.children[reading.wanted.get_field_index(name)]
        if reading is None:
            return None
    return reading


def _bounds(metadata: pq.FileMetaData, reading: Reading) -> ColumnBounds:
    (leaf,) = reading.leaves
    chunks = [metadata.row_group(index).column(leaf).statistics for index in range(metadata.num_row_groups)]
    null_counts = [
        chunk.null_count if chunk is not None and chunk.has_null_count else None for chunk in chunks
    ]
    has_bounds = [chunk is not None and chunk.has_min_max for chunk in chunks]
    sides = (
        [getattr(chunk, side) if known else None for chunk, known in zip(chunks, has_bounds, strict=True)]
        for side in ("min_raw", "max_raw")
    )
    low, high = (_typed(raw, reading, metadata.schema.column(leaf)) for raw in sides)
    return ColumnBounds(low, high, pa.array(null_counts, pa.int64()))


def _typed(raw: Sequence[object], reading: Reading, column: pq.ColumnSchema) -> pa.Array | None:
    """Bounds out of a footer in the table's type; None where they cannot be taken for such."""
    assert reading.stored is not None
    stored = reading.stored.value_type if kinds.is_dictionary(reading.stored) else reading.stored
    cast = leaf_cast(stored, reading.wanted)
    try:
        values = _stored_values(raw, stored, column)
        if values is None or cast is None:
            return None
        return known_bounds(cast(values)) if reading.is_legacy else cast(values)
    except _IMPOSSIBLE:
        return None


def _stored_values(raw: Sequence[object], stored: pa.DataType, column: pq.ColumnSchema) -> pa.Array | None:
    if kinds.is_unsigned_integer(stored):
        return None  # the footer's numbers are signed
    if kinds.is_decimal(stored):
        return pa.array([None if value is None else _decimal(value, stored.scale) for value in raw], stored)
    if kinds.is_timestamp(stored):
        unit = _UNITS.get(_time_unit(column))
        is_plain = column.physical_type == "INT64" and unit == stored.unit
        return pa.array(raw, pa.int64()).view(stored) if is_plain else None
    if kinds.is_date32(stored):
        return pa.array(raw, pa.int32()).view(stored)
    if any(isinstance(value, bytes) for value in raw):
        return pa.array(raw, pa.binary()).cast(stored)
    return pa.array(raw, stored)


def _decimal(raw: object, scale: int) -> Decimal:
    assert isinstance(raw, int | bytes)
    unscaled = int.from_bytes(raw, "big", signed=True) if isinstance(raw, bytes) else raw
    return Decimal(unscaled).scaleb(-scale, _EXACT)


def _time_unit(column: pq.ColumnSchema) -> str:
    told = column.logical_type.to_json()
    return next((unit for unit in _UNITS if f'"{unit}"' in told), "")
