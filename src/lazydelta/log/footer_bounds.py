"""What a Parquet footer tells of one column, row group by row group, as Arrow arrays.

Why: pyarrow gives bounds as Python values and fails on moments that Python cannot hold; here the stored
values are taken as they are. Contract: one value per row group in the file's own type, null where the footer
tells none. Parquet's bounds leave out nulls and NaN: whoever rules rows out by them must count both.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any, Literal

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

Side = Literal["min", "max"]
_Convert = Callable[[Any], Any]  # Any: as Parquet stores it, as Arrow takes it
_PLAIN = {
    "BOOLEAN": pa.bool_(),
    "INT32": pa.int32(),
    "INT64": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
}
_INTEGERS = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}
_TIME_UNITS = {"milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}
_DECIMAL_DIGITS_MAX = 38
_DIGITS = Context(prec=100)


class _Logical(msgspec.Struct, rename="camel"):
    """Parquet's logical type, as pyarrow spells it in JSON."""

    bit_width: int = 0
    is_signed: bool = True
    is_adjusted_to_utc: bool = msgspec.field(default=False, name="isAdjustedToUTC")
    time_unit: str = ""
    precision: int = 0
    scale: int = 0


_LOGICAL = msgspec.json.Decoder(_Logical)


def leaf_positions(footer: pq.FileMetaData) -> dict[str, int]:
    """Every leaf's dotted path with its position."""
    schema = footer.schema
    return {schema.column(at).path: at for at in range(len(schema.names))}


def chunk_bounds(footer: pq.FileMetaData, leaf: int, side: Side) -> pa.Array:
    """The least or the greatest value of each row group."""
    type_, converted = _reading(footer.schema.column(leaf))
    values: list[Any] = []
    for group in range(footer.num_row_groups):
        told = footer.row_group(group).column(leaf).statistics
        if pa.types.is_null(type_) or told is None or not told.has_min_max:
            values.append(None)
        else:
            values.append(converted(told.min_raw if side == "min" else told.max_raw))
    ticks = pa.int32() if pa.types.is_date(type_) else pa.int64() if pa.types.is_timestamp(type_) else None
    return pa.array(values, type_) if ticks is None else pa.array(values, ticks).view(type_)


def chunk_null_counts(footer: pq.FileMetaData, leaf: int) -> NDArray[np.int64]:
    """The nulls of each row group; -1 where the footer does not tell."""
    found = []
    for group in range(footer.num_row_groups):
        told = footer.row_group(group).column(leaf).statistics
        found.append(told.null_count if told is not None and told.has_null_count else -1)
    return np.array(found, np.int64)


def row_counts(footer: pq.FileMetaData) -> NDArray[np.int64]:
    """The rows of each row group."""
    return np.array([footer.row_group(group).num_rows for group in range(footer.num_row_groups)], np.int64)


def _reading(column: pq.ColumnSchema) -> tuple[pa.DataType, _Convert]:
    """The column's type and how its stored values become Arrow's; null where nobody here knows how."""
    kind, physical = column.logical_type.type, column.physical_type
    logical = _LOGICAL.decode(column.logical_type.to_json())
    match kind:
        case "NONE":
            type_ = _PLAIN.get(physical)
        case "INT":
            type_ = _INTEGERS.get(logical.bit_width) if logical.is_signed else None
        case "DATE":
            type_ = pa.date32()
        case "STRING":
            return pa.string(), _text
        case "TIMESTAMP":
            zone = "UTC" if logical.is_adjusted_to_utc else None
            type_ = pa.timestamp(_TIME_UNITS[logical.time_unit], tz=zone)
        case "DECIMAL" if logical.precision <= _DECIMAL_DIGITS_MAX:
            return pa.decimal128(logical.precision, logical.scale), _decimal(logical.scale)
        case _:
            type_ = None
    return type_ or pa.null(), _same


def _same(stored: Any) -> Any:
    return stored


def _text(stored: bytes) -> str | None:
    try:
        return stored.decode()
    except UnicodeDecodeError:
        return None


def _decimal(scale: int) -> _Convert:
    def convert(stored: int | bytes) -> Decimal:
        digits = stored if isinstance(stored, int) else int.from_bytes(stored, "big", signed=True)
        return Decimal(digits).scaleb(-scale, _DIGITS)

    return convert
