"""A value in a filter, as the caller wrote it, before it meets a column's type.

Contract: a float is kept by its shortest digits as a Decimal, so that text and Python say the same; only NaN
and the infinities stay floats. Literals compare by value, except that True is not 1.
"""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec
import numpy as np

from lazydelta.errors import InvalidRequestError

Value = None | bool | int | Decimal | float | str | bytes | date | datetime

_INTEGER_BITS_MAX = 2000  # Python refuses to print integers of thousands of digits; a Decimal prints


class Literal(msgspec.Struct, frozen=True, eq=False):
    """One value."""

    value: Value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Literal) and _identity(self.value) == _identity(other.value)

    def __hash__(self) -> int:
        return hash(_identity(self.value))


def literal(value: Any) -> Literal:  # Any: whatever the caller has at hand
    """A Python value as a literal; numpy scalars are unpacked."""
    if isinstance(value, np.datetime64) and value.astype("datetime64[us]") == value:
        value = value.astype("datetime64[us]").item()
    elif isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (bytearray, memoryview)):
        value = bytes(value)
    if isinstance(value, float) and math.isfinite(value):
        return Literal(Decimal(repr(value)))
    if isinstance(value, int) and value.bit_length() > _INTEGER_BITS_MAX:
        return Literal(Decimal(value))
    if isinstance(value, Decimal) and value.is_snan():
        raise InvalidRequestError(
            "a filter cannot compare with a signalling NaN", "the filter", "compare with Decimal('NaN')"
        )
    if isinstance(value, Decimal) and not value.is_finite():
        value = float(value)
    if isinstance(value, str):
        return Literal(checked_text(value))
    if value is None or isinstance(value, (bool, int, Decimal, float, bytes, date)):
        return Literal(value)
    raise InvalidRequestError(
        f"a filter cannot compare with a {type(value).__name__}: {value!r}"[:200],
        "the filter",
        "compare with a number, a text, a date, a datetime, bytes, True or False",
    )


def checked_text(text: Any) -> str:  # Any: whatever the caller has at hand
    """The text, which must be one that can be written as UTF-8."""
    if not isinstance(text, str):
        raise InvalidRequestError(
            f"{text!r} is not a text"[:200], "the filter", 'write text, as in col("value") or .like("a%")'
        )
    try:
        text.encode()
    except UnicodeEncodeError as error:
        shown = text.encode(errors="backslashreplace").decode()
        raise InvalidRequestError(
            f"the text has half a character (a lone surrogate) at position {error.start}",
            f"filter: {shown}"[:300],
            "decode the text as what it was written in, or remove that character",
        ) from error
    return text


def literal_sql(literal: Literal) -> str:  # noqa: PLR0911  # one case per type
    """The value as an SQL literal."""
    value = literal.value
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case bytes():
            return f"X'{value.hex()}'"
        case str():
            return text_sql(value)
        case datetime():
            if value.tzinfo and value.utcoffset() != _whole_minutes(value):
                value = value.astimezone(UTC)
            return f"TIMESTAMP '{value.isoformat()}'"
        case date():
            return f"DATE '{value.isoformat()}'"
        case float():  # NaN or an infinity
            return f"DOUBLE '{value}'"
    return str(value)


def text_sql(text: str) -> str:
    """The text as an SQL string."""
    escaped = text.replace("'", "''")
    return f"'{escaped}'"


def _whole_minutes(moment: datetime) -> timedelta:
    """The offset that SQL text can carry."""
    return timedelta(minutes=(moment.utcoffset() or timedelta()) // timedelta(minutes=1))


def _identity(value: Value) -> tuple[str, Value]:
    """Equal for equal values of one kind: True is not 1, and a NaN is a NaN."""
    if isinstance(value, float) and math.isnan(value):
        return "NaN", None
    return ("truth" if isinstance(value, bool) else "", value)
