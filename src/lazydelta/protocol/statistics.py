"""What the log says about the values in a file, as Arrow columns: one row per file.

Why: a predicate drops files by these bounds, so they are decoded for the named columns only, whole batches
at a time. Contract: bounds are as the writer left them, but for those of a float that became a double
(`float_readings`); null says nothing. Reading them with the care they need (truncation, rounding, wide
bounds) is the predicate's business. Paths are physical names.
Spec: PROTOCOL.md, "Per-file Statistics" and "Column Mapping".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from lazydelta.protocol.arrow_casts import cast_where_possible
from lazydelta.protocol.float_readings import outer_reading
from lazydelta.protocol.schema import PrimitiveType, arrow_type
from lazydelta.protocol.statistics_json import decode_statistics

# A writer's text form of these bounds is not settled (PROTOCOL.md names none for binary; a variant's is an
# encoded object), so only their null counts are read.
BOTH_SIDES = frozenset({"min", "max"})
_TYPES_WITHOUT_BOUNDS = frozenset({"binary", "variant", "void"})


class StatsColumn(msgspec.Struct, frozen=True):
    """A column whose statistics are wanted."""

    path: tuple[str, ...]
    type: PrimitiveType
    is_collated: bool = False
    null_count_only: bool = False  # arrays, maps and variants have no bounds, only a null count
    is_null_tested: bool = False  # a filter asks for nulls, so the null count matters beside bounds
    sides: frozenset[str] = BOTH_SIDES  # the bounds that can rule a file out
    was_float: bool = False  # a double now: bounds are read as `float_readings` says

    @property
    def has_bounds(self) -> bool:
        """Whether min and max can be read for this column."""
        return not self.null_count_only and self.type.name not in _TYPES_WITHOUT_BOUNDS


class ColumnBounds(msgspec.Struct, frozen=True, eq=False):
    """Bounds of one column in each file, in the column's Arrow type; null or None says nothing."""

    min: pa.Array | None = None
    max: pa.Array | None = None
    null_count: pa.Array | None = None


class FileStatistics(msgspec.Struct, frozen=True, eq=False):
    """Statistics of a batch of files."""

    row_count: int
    num_records: pa.Array | None
    tight_bounds: pa.Array | None  # null or None means tight
    columns: Mapping[tuple[str, ...], ColumnBounds]


def statistics_from_json(
    stats: pa.Array, columns: Sequence[StatsColumn], *, lean: bool = False
) -> FileStatistics:
    """Decode the `stats` strings of `add` actions; a row that cannot be decoded says nothing.

    `lean` takes half the time and is enough to drop files: only bounds on the `sides` that can rule a file
    out are decoded then, and counts of records and nulls only from where a file lacks such a bound (its
    column may be all null) or if a filter tests for nulls.
    """
    if not pa.types.is_string(stats.type):
        stats = stats.cast(pa.string())
    decoded = decode_statistics(
        stats,
        tuple(column.path for column in columns),
        tuple(column.type.name if column.has_bounds else None for column in columns),
        tuple(column.sides if lean else BOTH_SIDES for column in columns),
        lean=lean and not any(column.is_null_tested for column in columns),
    )
    bounds = {
        column.path: _read_alike(column, ColumnBounds(low, high, null_count))
        for column, (low, high, null_count) in zip(columns, decoded.columns, strict=True)
    }
    return FileStatistics(len(stats), decoded.num_records, decoded.tight_bounds, bounds)


def statistics_from_struct(stats_parsed: pa.StructArray, columns: Sequence[StatsColumn]) -> FileStatistics:
    """Read a checkpoint's `stats_parsed`; any part of it may be absent."""
    bounds = {}
    for column in columns:
        value_type = arrow_type(column.type) if column.has_bounds else None
        found = ColumnBounds(
            _child(stats_parsed, ("minValues", *column.path), value_type),
            _child(stats_parsed, ("maxValues", *column.path), value_type),
            _child(stats_parsed, ("nullCount", *column.path), pa.int64()),
        )
        bounds[column.path] = _read_alike(column, found)
    return FileStatistics(
        len(stats_parsed),
        _child(stats_parsed, ("numRecords",), pa.int64()),
        _child(stats_parsed, ("tightBounds",), pa.bool_()),
        bounds,
    )


def _read_alike(column: StatsColumn, bounds: ColumnBounds) -> ColumnBounds:
    """The same bounds, whether they were written or typed before the column became a double or after."""
    if not column.was_float or column.type.name != "double":
        return bounds
    low = None if bounds.min is None else outer_reading(bounds.min, is_min=True)
    high = None if bounds.max is None else outer_reading(bounds.max, is_min=False)
    return ColumnBounds(low, high, bounds.null_count)


def _child(parent: pa.StructArray, path: tuple[str, ...], wanted: pa.DataType | None) -> pa.Array | None:
    if wanted is None:
        return None
    array: pa.Array = parent
    for name in path:
        if not pa.types.is_struct(array.type):
            return None
        index = array.type.get_field_index(name)
        if index < 0:
            return None
        # The kernel, not `StructArray.field`: a child under a null parent is null.
        array = pc.struct_field(array, [index])
    return cast_where_possible(array, wanted)
