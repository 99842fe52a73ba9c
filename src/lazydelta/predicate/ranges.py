"""What a batch of files may hold in one column: bounds wide enough to be true, and whether nulls may be.

Why: writers truncate, round and go stale, each in its own way. Here, and only here, their statistics are
widened until they hold for every valid row; what comes after is plain interval arithmetic.
Contract: one-sided. A bound is never inside the values; "may" is false only when proven.
Spec: PROTOCOL.md, "Per-file Statistics" and "Partition Value Serialization".
"""

from __future__ import annotations

from decimal import Decimal

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lazydelta.predicate.facts import FileFacts
from lazydelta.predicate.flags import Flags, flags_of
from lazydelta.predicate.nodes import BoundColumn
from lazydelta.predicate.periods import source_bounds
from lazydelta.protocol.arrow_casts import cast_where_possible
from lazydelta.protocol.float_readings import readings_of
from lazydelta.protocol.partition_values import parse_partition_column
from lazydelta.protocol.schema import PrimitiveType, arrow_type
from lazydelta.protocol.statistics import ColumnBounds, FileStatistics

_TIMESTAMP_CUT_US = 999
_EXACT_F64_DIGITS = 15
_F64_ULPS = 4
INT64_MIN, INT64_MAX, INT64_DIGITS = -(1 << 63), (1 << 63) - 1, 19


class ColumnRange(msgspec.Struct, frozen=True, eq=False):
    """Per file, what the column may hold. `low` and `high` bound the values; null or None is no bound."""

    may_be_null: Flags
    may_have_value: Flags  # a value other than NaN
    may_be_nan: Flags
    low: pa.Array | None = None
    high: pa.Array | None = None
    is_high_prefix: bool = False  # values may go on after `high`, which a writer cut off
    is_single: bool = False  # where low is not null, every row holds that value or null


def column_range(column: BoundColumn, facts: FileFacts, time_zone: str) -> ColumnRange:
    """What `facts` prove about the column, by itself and by the periods that were made from it."""
    known = _own_range(column, facts, time_zone)
    told = _period_bounds(column, facts)
    if told is None:
        return known
    return msgspec.structs.replace(
        known,
        low=_inner(pc.max_element_wise, known.low, told.min),
        high=_inner(pc.min_element_wise, known.high, told.max),
    )


def _inner(choose: pc.Function, bound: pa.Array | None, other: pa.Array | None) -> pa.Array | None:
    """The tighter of two bounds of dates or times, where both are there."""
    if bound is None or other is None:
        return other if bound is None else bound
    ticks = pa.int32() if other.type.bit_width == 32 else pa.int64()  # Arrow compares no times this way
    return choose(bound.view(ticks), other.view(ticks)).view(other.type)


def _period_bounds(column: BoundColumn, facts: FileFacts) -> ColumnBounds | None:
    if column.period is None:
        return None
    name = column.period.physical_name
    raw = facts.partition_values.get(name)
    if raw is not None:
        return source_bounds(column.period, column.type_name, raw, raw)
    texts = facts.period_ranges.get(name)
    if texts is None or texts.min is None or texts.max is None:
        return None
    return source_bounds(column.period, column.type_name, texts.min, texts.max)


def _own_range(column: BoundColumn, facts: FileFacts, time_zone: str) -> ColumnRange:
    raw = facts.partition_values.get(column.physical_path[0]) if column.is_partition else None
    if raw is not None:
        return _partition_range(column, raw, time_zone)
    bounds = facts.statistics.columns.get(column.physical_path) if facts.statistics else None
    if bounds is None or facts.statistics is None:
        return _unknown_range(column, facts.row_count)
    return _statistics_range(column, bounds, facts.statistics, facts.dv_cardinality)


# --- partition values ----------------------------------------------------------


def _partition_range(column: BoundColumn, raw: pa.StringArray, time_zone: str) -> ColumnRange:
    primitive = PrimitiveType(column.type_name)
    low = high = parse_partition_column(raw, primitive, time_zone=time_zone)
    if column.type_name == "timestamp":
        # A wall clock shows an hour twice when it is set back: both readings are kept.
        high = parse_partition_column(raw, primitive, time_zone=time_zone, prefer_latest=True)
    is_parsed, is_written = flags_of(low.is_valid()), flags_of(raw.is_valid())
    is_empty = flags_of(pc.fill_null(pc.equal(raw, ""), False))
    # The protocol takes "" as null for every type, writers of strings and binaries also mean "": keep both.
    may_be_null = ~is_written | is_empty | ~is_parsed
    may_have_value = is_parsed | (is_written & ~is_empty)
    is_nan = np.zeros(len(raw), bool)
    if pa.types.is_floating(low.type):
        is_nan = flags_of(pc.fill_null(pc.is_nan(low), False))
        low = high = _without_nan(low)
    may_be_nan = is_nan | (is_written & ~is_empty & ~is_parsed & pa.types.is_floating(low.type))
    if column.is_collated:
        low = high = None
    return ColumnRange(
        may_be_null=may_be_null,
        may_have_value=may_have_value & ~is_nan,
        may_be_nan=may_be_nan,
        low=low,
        high=high,
        is_single=column.type_name != "timestamp",
    )


# --- statistics ----------------------------------------------------------------


def _unknown_range(column: BoundColumn, row_count: int) -> ColumnRange:
    anything = np.ones(row_count, bool)
    is_floating = column.type_name in ("float", "double")
    return ColumnRange(anything, anything, anything if is_floating else np.zeros(row_count, bool))


def _statistics_range(
    column: BoundColumn, bounds: ColumnBounds, statistics: FileStatistics, dv_cardinality: pa.Array | None
) -> ColumnRange:
    may_have_value, may_be_null = _null_outlook(bounds, statistics, dv_cardinality)
    unknown = _unknown_range(column, statistics.row_count)
    if column.is_partition and column.type_name in ("string", "binary"):
        may_be_null = unknown.may_be_null  # the empty string may be meant as null
    # A collation orders text its own way; bounds in byte order say nothing about it.
    has_bounds = column.type_name not in ("", "variant", "void") and not column.is_collated
    wanted = arrow_type(PrimitiveType(column.type_name)) if has_bounds else None
    low = _widened(column, bounds.min, wanted, is_min=True)
    high = _widened(column, bounds.max, wanted, is_min=False)
    return ColumnRange(
        may_be_null=may_be_null,
        may_have_value=may_have_value,
        # Min and max pass over NaN in many writers, so any file with values may hold one.
        may_be_nan=may_have_value & unknown.may_be_nan,
        low=low,
        high=high,
        is_high_prefix=_may_be_cut(column, wanted),
    )


def _null_outlook(
    bounds: ColumnBounds, statistics: FileStatistics, dv_cardinality: pa.Array | None
) -> tuple[Flags, Flags]:
    """Whether values, and whether nulls, are possible in the valid rows."""
    row_count = statistics.row_count
    null_count = _counts(bounds.null_count, row_count, missing=-1)
    num_records = _counts(statistics.num_records, row_count, missing=-2)
    deleted = _counts(dv_cardinality, row_count, missing=0)
    # Absent means tight (PROTOCOL.md, "Per-file Statistics").
    tight = statistics.tight_bounds
    is_tight = np.ones(row_count, bool) if tight is None else flags_of(pc.fill_null(tight, True))
    # Wide: the count speaks only at 0 and at numRecords. Tight: it counts valid rows alone, so that all are
    # null when it reaches numRecords less the deletion vector's cardinality.
    is_all_null = (null_count == num_records) | (
        is_tight & (null_count >= 0) & (null_count == num_records - deleted)
    )
    return ~is_all_null, null_count != 0


def _counts(array: pa.Array | None, row_count: int, *, missing: int) -> NDArray[np.int64]:
    if array is None:
        return np.full(row_count, missing, np.int64)
    counts: NDArray[np.int64] = pc.fill_null(array.cast(pa.int64()), missing).to_numpy(zero_copy_only=False)
    return np.where(counts < 0, missing, counts)  # a count below zero tells nothing


def _widened(
    column: BoundColumn, bound: pa.Array | None, wanted: pa.DataType | None, *, is_min: bool
) -> pa.Array | None:
    """The bound, moved outwards as far as the writer may have moved it inwards."""
    bound = None if bound is None or wanted is None else cast_where_possible(bound, wanted)
    if bound is None or wanted is None:
        return None
    if pa.types.is_floating(wanted):
        return _widened_float(column, bound, is_min=is_min)
    if pa.types.is_decimal(wanted):
        return _widened_decimal(bound, is_min=is_min)
    # Partition values are kept whole, so that a range of them is, too.
    return bound if is_min or column.is_partition else _raised(bound)


def _may_be_cut(column: BoundColumn, wanted: pa.DataType | None) -> bool:
    is_text = wanted is not None and (pa.types.is_string(wanted) or pa.types.is_binary(wanted))
    return bool(is_text and not column.is_partition)


def _raised(high: pa.Array) -> pa.Array:
    if pa.types.is_timestamp(high.type):
        return _raised_timestamp(high)
    if pa.types.is_string(high.type):
        # Delta before 3.0 ended a cut max with U+FFFD, which sorts below the characters past U+FFFF: as a
        # prefix without it, the bound holds.
        return pc.utf8_rtrim(high, "\ufffd")
    return high


def _raised_timestamp(high: pa.Array) -> pa.Array:
    """Writers cut timestamps down to the millisecond (PROTOCOL.md, "Per-file Statistics", footnote 1)."""
    ticks = pc.fill_null(high.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    raised = np.minimum(ticks, INT64_MAX - _TIMESTAMP_CUT_US) + _TIMESTAMP_CUT_US
    mask = None if high.null_count == 0 else ~flags_of(high.is_valid())
    return pa.array(raised, mask=mask).cast(high.type)


def _widened_float(column: BoundColumn, bound: pa.Array, *, is_min: bool) -> pa.Array:
    bound = _without_nan(bound)
    if not column.was_float:
        return bound
    # Digits written while the column was a float name another double than the value they stood for, and
    # writers differ in how many they write (PROTOCOL.md, "Type Widening"). All of them lie before the next
    # float, so that the bound does not depend on which were read.
    as_float = bound.cast(pa.float32(), safe=False)
    exact, digits = readings_of(as_float)
    outside = np.float32(-np.inf if is_min else np.inf)
    beyond = np.nextafter(as_float.fill_null(0).to_numpy(zero_copy_only=False), outside)
    outermost = pc.if_else(pc.equal(exact, digits), exact, pa.array(beyond).cast(pa.float64()))
    return pc.min_element_wise(bound, outermost) if is_min else pc.max_element_wise(bound, outermost)


def _widened_decimal(bound: pa.Array, *, is_min: bool) -> pa.Array:
    """Writers that turn decimals into f64 keep 15 digits; beyond, the bound may be off by their rounding.

    Each step of theirs (to f64, the power of ten, the division) rounds, so a few ulps are allowed for. Values
    lie on the decimal's grid: an ulp finer than the grid moves nothing.
    """
    if bound.type.precision <= _EXACT_F64_DIGITS:
        return bound
    bound = _unless_stopped(bound, is_min=is_min)
    scale = bound.type.scale
    approximate = pc.fill_null(bound.cast(pa.float64()), 0.0).to_numpy(zero_copy_only=False)
    units = np.floor(_F64_ULPS * np.spacing(np.abs(approximate)) * 10.0**scale)
    if not units.any():
        return bound
    whole = pa.array(units).cast(pa.decimal256(40, 0))
    step = pa.Array.from_buffers(pa.decimal256(40, scale), len(whole), whole.buffers())
    wide = bound.cast(pa.decimal256(40, scale))
    return pc.subtract(wide, step) if is_min else pc.add(wide, step)


def _unless_stopped(bound: pa.Array, *, is_min: bool) -> pa.Array:
    """delta-rs tells decimals without a fraction as 64-bit integers: of those beyond, the last one."""
    if bound.type.precision - bound.type.scale < INT64_DIGITS:
        return bound
    last = pa.scalar(Decimal(INT64_MIN if is_min else INT64_MAX), bound.type)
    return pc.if_else(pc.equal(bound, last), pa.scalar(None, bound.type), bound)


def _without_nan(array: pa.Array) -> pa.Array:
    is_nan = pc.fill_null(pc.is_nan(array), False)
    return pc.if_else(is_nan, pa.scalar(None, array.type), array) if pc.any(is_nan).as_py() else array
