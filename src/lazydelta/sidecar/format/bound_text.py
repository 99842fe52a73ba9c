"""Bounds as text for the manifest: the forms of partition values, read back to exactly the same value.

Contract: `protocol.value_text.values_from_text` of the text is the value; None where no such text exists or
where it would be long (`TEXT_BYTES_MAX`): then there is no bound.
Spec: PROTOCOL.md, "Partition Value Serialization".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa

TEXT_BYTES_MAX = 256
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def bound_text(value: pa.Scalar) -> str | None:
    """The text of a bound; None for null, for NaN, and where there is none."""
    if not value.is_valid:
        return None
    text = _writer_for(value.type)(value)
    if text is None or len(text.encode("utf-8", "surrogatepass")) > TEXT_BYTES_MAX:
        return None
    return text


def _writer_for(type_: pa.DataType) -> Callable[[pa.Scalar], str | None]:
    writers: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.Scalar], str | None]], ...] = (
        (pa.types.is_string, lambda value: str(value.as_py())),
        (pa.types.is_integer, lambda value: str(value.as_py())),
        (pa.types.is_boolean, lambda value: "true" if value.as_py() else "false"),
        (pa.types.is_floating, _float_text),
        (pa.types.is_decimal, _decimal_text),
        (pa.types.is_date, _date_text),
        (pa.types.is_timestamp, _timestamp_text),
        (pa.types.is_binary, _bytes_text),
    )
    return next((write for is_kind, write in writers if is_kind(type_)), lambda _: None)


def _float_text(value: pa.Scalar) -> str | None:
    number = float(value.as_py())
    if math.isnan(number):
        return None
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    return repr(number)


def _decimal_text(value: pa.Scalar) -> str:
    number: Decimal = value.as_py()
    return format(number, "f")


def _date_text(value: pa.Scalar) -> str | None:
    days: int = value.value
    try:
        return (date(1970, 1, 1) + timedelta(days=days)).isoformat()
    except OverflowError:  # a year that four digits do not hold
        return None


def _timestamp_text(value: pa.Scalar) -> str | None:
    try:
        moment = _EPOCH + timedelta(microseconds=value.value)
    except OverflowError:
        return None
    text = moment.replace(tzinfo=None).isoformat(timespec="microseconds")
    return text if value.type.tz is None else f"{text}Z"


def _bytes_text(value: pa.Scalar) -> str | None:
    body: bytes = value.as_py()
    return body.decode("ascii") if body.isascii() else None
