"""How stored columns become the table's, at every level of nesting.

Contract: a `Reading` says which leaves of the file to read and what to make of the arrays that pyarrow then
gives: fields in the table's order under the table's names, null where the file has none, leaves in the
table's types. Of a struct pyarrow gives only the children that have a leaf among those read, in the file's
order.
"""

from __future__ import annotations

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as kinds

from lazydelta.rows.leaf_casts import Cast

MISSING = -1


class Reading(msgspec.Struct, frozen=True, eq=False):
    """One column or nested field."""

    wanted: pa.DataType
    leaves: tuple[int, ...]  # of the file, ascending
    cast: Cast | None = None  # of a leaf
    stored: pa.DataType | None = None  # of a leaf: its type in the file
    is_legacy: bool = False  # of a leaf: perhaps in the hybrid calendar, which its cast ends
    # Of a struct: a reading for each field of `wanted`, and where it is among the children that are read.
    # Of an array: the element's; of a map: the key's and the value's.
    children: tuple[Reading | None, ...] = ()
    places: tuple[int, ...] = ()


def converted(array: pa.Array, reading: Reading) -> pa.Array:
    """The array as the table has it."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if reading.cast is not None:
        return reading.cast(array)
    if kinds.is_struct(reading.wanted):
        return _struct(array, reading)
    return _map(array, reading) if kinds.is_map(reading.wanted) else _list(array, reading)


def fields_of(parent: pa.StructArray | pa.RecordBatch, reading: Reading, row_count: int) -> list[pa.Array]:
    """An array for each field of a struct, or for each column of a batch."""
    found = []
    for field, child, place in zip(reading.wanted, reading.children, reading.places, strict=True):
        if child is None:
            found.append(pa.nulls(row_count, field.type))
        else:
            stored = parent.field(place) if isinstance(parent, pa.StructArray) else parent.column(place)
            found.append(_converted_field(stored, child, field.name))
    return found


def _converted_field(array: pa.Array, reading: Reading, name: str) -> pa.Array:
    try:
        return converted(array, reading)
    except pa.ArrowException as damage:
        raise pa.ArrowInvalid(f"the column {name!r} has a value that does not fit: {damage}") from damage


def _struct(array: pa.StructArray, reading: Reading) -> pa.Array:
    if not reading.children:
        return pa.Array.from_buffers(
            reading.wanted, len(array), array.buffers()[:1], array.null_count, array.offset
        )
    return pa.StructArray.from_arrays(
        fields_of(array, reading, len(array)), fields=list(reading.wanted), mask=_null_mask(array)
    )


def _list(array: pa.Array, reading: Reading) -> pa.Array:
    (element,) = reading.children
    assert element is not None
    if not kinds.is_list(array.type):
        array = array.cast(pa.list_(array.type.value_field))
    offsets, first, end = _rebased(array)
    values = converted(array.values.slice(first, end - first), element)
    return pa.ListArray.from_arrays(offsets, values, type=reading.wanted, mask=_null_mask(array))


def _map(array: pa.MapArray, reading: Reading) -> pa.Array:
    key, value = reading.children
    assert key is not None and value is not None
    offsets, first, end = _rebased(array)
    keys = converted(array.keys.slice(first, end - first), key)
    items = converted(array.items.slice(first, end - first), value)
    return pa.MapArray.from_arrays(offsets, keys, items, type=reading.wanted, mask=_null_mask(array))


def _rebased(array: pa.Array) -> tuple[pa.Array, int, int]:
    """Offsets that begin at 0, and which of the values they stand for: a slice must not drag all along."""
    offsets = array.offsets
    first, end = offsets[0].as_py(), offsets[-1].as_py()
    if first == 0 and offsets.offset == 0:
        return offsets, first, end
    return pc.subtract(offsets, pa.scalar(first, offsets.type)), first, end


def _null_mask(array: pa.Array) -> pa.BooleanArray | None:
    return array.is_null() if array.null_count else None
