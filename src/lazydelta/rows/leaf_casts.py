"""One leaf column as a file has it, in the type that the table has.

Why: files outlive schemas. Contract: exactly the changes that Delta's type widening allows, and the physical
forms that writers choose for one type; a value that does not fit is pyarrow's `ArrowInvalid`, and a pair of
types that no writer may leave behind is None.
Nanoseconds are cut down to microseconds, towards the past: Delta's timestamps have no more.
Spec: PROTOCOL.md, "Type Widening"; parquet-format, "LogicalTypes".
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as kinds

Cast = Callable[[pa.Array], pa.Array]

_EXACT_IN_DOUBLE_BITS = 32


def leaf_cast(stored: pa.DataType, wanted: pa.DataType) -> Cast | None:
    """How arrays of type `stored` become `wanted`; None where the two contradict each other."""
    if stored.equals(wanted):
        return _as_it_is
    if kinds.is_null(stored) or kinds.is_null(wanted):
        return lambda array: pa.nulls(len(array), wanted)
    if kinds.is_dictionary(stored):
        inner = leaf_cast(stored.value_type, wanted)
        return None if inner is None else lambda array: inner(array.dictionary_decode())
    if kinds.is_timestamp(stored) and kinds.is_timestamp(wanted):
        return lambda array: _in_microseconds(array).view(wanted)
    return (lambda array: array.cast(wanted)) if _may_be(stored, wanted) else None


def _as_it_is(array: pa.Array) -> pa.Array:
    return array


def _may_be(stored: pa.DataType, wanted: pa.DataType) -> bool:
    if kinds.is_integer(stored):
        return bool(
            kinds.is_integer(wanted)
            or kinds.is_decimal(wanted)
            or (kinds.is_float64(wanted) and stored.bit_width <= _EXACT_IN_DOUBLE_BITS)
        )
    if kinds.is_floating(stored):
        return bool(kinds.is_floating(wanted) and stored.bit_width < wanted.bit_width)
    if kinds.is_decimal(stored):
        return bool(kinds.is_decimal(wanted))
    if kinds.is_date(stored):
        return bool(kinds.is_date(wanted) or (kinds.is_timestamp(wanted) and wanted.tz is None))
    return _is_bytes(stored) and _is_bytes(wanted)


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(
        kinds.is_string(kind)
        or kinds.is_binary(kind)
        or kinds.is_large_string(kind)
        or kinds.is_large_binary(kind)
        or kinds.is_string_view(kind)
        or kinds.is_binary_view(kind)
        or kinds.is_fixed_size_binary(kind)
    )


def _in_microseconds(array: pa.Array) -> pa.Array:
    """The ticks since 1970, whatever zone the file's writer noted beside them."""
    unit = array.type.unit
    ticks = array.view(pa.timestamp(unit))
    if unit == "ns":
        ticks = pc.floor_temporal(ticks, unit="microsecond")
    return ticks.cast(pa.timestamp("us"))
