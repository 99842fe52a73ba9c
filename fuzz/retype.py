"""Parquet files that are whole, and whose columns are not what they should be: other types, names, values.

Why: flipped bytes and lying footers end in the decoder; a file that decodes without complaint, with a date of
the year 5,000,000 where a path should be, reaches what reads the values.
Contract: everything follows from the dice. What pyarrow cannot write is left out: then the file is as it was.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

_INT64 = (0, -1, 2**62, -(2**63), 2**63 - 1)
_TEXTS = (
    "",
    "a",
    "é",
    "../x",
    "%zz",
    "2026-02-30",
    "NaN",
    "{}",
    "x" * 5000,
    "\0",
    "1e999",
    "part-00001.parquet",
)
_Make = Callable[[int, Random], pa.Array]


def retyped(body: bytes, dice: Random) -> bytes:
    """The file with one to three of its columns, at any depth, made into something else."""
    table = pq.read_table(io.BytesIO(body)).combine_chunks()
    for _ in range(dice.choice((1, 1, 1, 2, 3))):
        table = _table_changed(table, dice)
    sink = io.BytesIO()
    try:
        pq.write_table(
            table,
            sink,
            row_group_size=dice.choice((3, 7, 10_000)),
            store_schema=dice.random() < 0.3,
            write_statistics=dice.random() < 0.8,
            use_dictionary=dice.random() < 0.5,
        )
    except (pa.ArrowException, ValueError, TypeError):
        return body
    return sink.getvalue()


def _table_changed(table: pa.Table, dice: Random) -> pa.Table:
    if not table.num_columns:
        return table
    at = dice.randrange(table.num_columns)
    field, column = table.schema.field(at), table.column(at)
    if dice.random() < 0.06:
        return table.remove_column(at)
    if dice.random() < 0.04:
        return table.append_column(field, column)
    array = column.combine_chunks()
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    changed = _array_changed(array, dice)
    name = dice.choice(("", "add", field.name.upper())) if dice.random() < 0.04 else field.name
    return table.set_column(at, pa.field(name, changed.type, metadata=field.metadata), changed)


def _array_changed(array: pa.Array, dice: Random) -> pa.Array:
    """The same array with one leaf exchanged, or another array of its length."""
    if pa.types.is_struct(array.type) and array.type.num_fields and dice.random() < 0.95:
        at = dice.randrange(array.type.num_fields)
        fields = [array.type.field(number) for number in range(array.type.num_fields)]
        children = [array.field(number) for number in range(len(fields))]
        if dice.random() < 0.08:
            del fields[at], children[at]
        else:
            children[at] = _array_changed(children[at], dice)
            fields[at] = pa.field(fields[at].name, children[at].type, metadata=fields[at].metadata)
        if not fields:
            return array
        return pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null())
    odd = dice.choice(_MAKERS)(len(array), dice)
    if dice.random() < 0.6:  # rows stay where they are
        odd = _with_nulls(odd, array)
    return odd


def _with_nulls(odd: pa.Array, like: pa.Array) -> pa.Array:
    indices = pa.array([None if is_null else row for row, is_null in enumerate(like.is_null().to_pylist())])
    try:
        return odd.take(indices.cast(pa.int64()))
    except pa.ArrowException:
        return odd


def _numbers(type_: pa.DataType, values: Sequence[Any]) -> _Make:
    def make(count: int, dice: Random) -> pa.Array:
        return pa.array([dice.choice(values) for _ in range(count)], type_)

    return make


def _ticks(type_: pa.DataType) -> _Make:
    """Times that Python cannot hold among them."""

    def make(count: int, dice: Random) -> pa.Array:
        if type_.bit_width == 32:
            ticks = [dice.choice((0, -1, 2**31 - 1, -(2**31), 20_000)) for _ in range(count)]
            return pa.array(ticks, pa.int32()).view(type_)
        return pa.array([dice.choice(_INT64) for _ in range(count)], pa.int64()).view(type_)

    return make


def _lists(count: int, dice: Random) -> pa.Array:
    return pa.array([dice.choice(([], [1], [None, 2], None)) for _ in range(count)], pa.list_(pa.int32()))


def _maps(count: int, dice: Random) -> pa.Array:
    rows = ([], [("a", "b")], [("a", None), ("a", "c")], [("date", "2026-02-30")], None)
    return pa.array([dice.choice(rows) for _ in range(count)], pa.map_(pa.string(), pa.string()))


def _structs(count: int, dice: Random) -> pa.Array:
    rows = ({"path": "x"}, {"path": None}, None)
    return pa.array([dice.choice(rows) for _ in range(count)], pa.struct([pa.field("path", pa.string())]))


_MAKERS: tuple[_Make, ...] = (
    *(_ticks(pa.timestamp(unit, zone)) for unit in ("ms", "us", "ns") for zone in (None, "UTC", "Bad/Zone")),
    _ticks(pa.date32()),
    _ticks(pa.time64("us")),
    _ticks(pa.duration("s")),
    _numbers(pa.int8(), (0, -1, 127)),
    _numbers(pa.int32(), (0, -1, 2**31 - 1, -(2**31))),
    _numbers(pa.int64(), _INT64),
    _numbers(pa.uint64(), (0, 2**64 - 1)),
    _numbers(pa.float32(), (0.0, -0.0, float("nan"), float("inf"))),
    _numbers(pa.float64(), (0.0, -0.0, float("nan"), float("-inf"), 1e308)),
    _numbers(pa.decimal128(38, 10), (Decimal(0), Decimal("-9e27"), Decimal("1.5"))),
    _numbers(pa.bool_(), (True, False)),
    _numbers(pa.string(), _TEXTS),
    _numbers(pa.string(), _TEXTS),
    _numbers(pa.large_string(), _TEXTS),
    _numbers(pa.binary(), (b"", b"\xff\xfe", b"a")),
    _numbers(pa.binary(4), (b"\xff\xfe\0\0", b"abcd")),
    _numbers(pa.null(), (None,)),
    _lists,
    _maps,
    _structs,
)
