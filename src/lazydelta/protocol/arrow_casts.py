"""Casts that lose nothing: a value that does not fit its new type becomes null, the others survive.

Why: a log holds what many writers wrote over years. One odd value must not take the rest of its batch along.
"""

from __future__ import annotations

import pyarrow as pa

_IMPOSSIBLE = (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError)


def cast_where_possible(array: pa.Array, wanted: pa.DataType) -> pa.Array | None:
    """The array as `wanted`, null where a value cannot be; None where the types never convert."""
    if array.type.equals(wanted):
        return array
    try:
        return array.cast(wanted)
    except pa.ArrowNotImplementedError:
        return None
    except _IMPOSSIBLE:
        return _cast_halves(array, wanted)


def _cast_halves(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Cast by halves: few bad values cost a logarithm each, not the batch."""
    if len(array) == 1:
        return pa.nulls(1, wanted)
    middle = len(array) // 2
    parts = []
    for half in (array.slice(0, middle), array.slice(middle)):
        try:
            parts.append(half.cast(wanted))
        except _IMPOSSIBLE:
            parts.append(_cast_halves(half, wanted))
    return pa.concat_arrays(parts)
