"""A literal in the type of its column, exactly.

Why: `x > 1.5` on an integer column must neither fail nor round. A literal that lies between two neighbours of
the type is kept as the lower one with the note that it lies above, and one beyond the type's range with the
note that it does; comparisons are rewritten from that. Contract: None where the value is no such type.
"""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Context, Decimal, InvalidOperation
from typing import Any
from typing import Literal as OneOf
from zoneinfo import ZoneInfo

import msgspec
import numpy as np
import pyarrow as pa

from lazydelta.errors import InvalidRequestError
from lazydelta.predicate.literal import Value
from lazydelta.predicate.moments import read_moment

_FLOAT_WORDS = {
    "nan": math.nan,
    "infinity": math.inf,
    "-infinity": -math.inf,
    "inf": math.inf,
    "-inf": -math.inf,
}
_ADJUSTED_MAX = 400  # beyond every numeric type; no number larger than this is expanded

Position = OneOf["exact", "between", "above all", "below all"]


class TypedLiteral(msgspec.Struct, frozen=True, eq=False):
    """`value` in the column's type and where the literal lies from it."""

    value: pa.Scalar | None  # None only outside the type's range
    position: Position = "exact"
    is_rounded: bool = False  # a float that readers may compare as float or as double


def typed_literal(value: Value, wanted: pa.DataType, time_zone: ZoneInfo) -> TypedLiteral | None:
    """`value` (not null) as a literal for a column of the Arrow type `wanted`."""
    types = pa.types
    if types.is_integer(wanted) or types.is_decimal(wanted):
        number = _number(value)
        return _on_grid(number, wanted) if number is not None else None
    if types.is_floating(wanted):
        return _floating(value, wanted)
    plain = _plain(value, wanted, time_zone)
    return None if plain is None else TypedLiteral(pa.scalar(plain, wanted))


def _plain(value: Value, wanted: pa.DataType, time_zone: ZoneInfo) -> Any:  # Any: as Arrow takes it
    """The value as Python has it, for the types in which it either fits exactly or does not belong."""
    types = pa.types
    if types.is_string(wanted):
        return value if isinstance(value, str) else None
    if types.is_binary(wanted):
        return value.encode() if isinstance(value, str) else value if isinstance(value, bytes) else None
    if types.is_boolean(wanted):
        words: dict[Value, bool] = {"true": True, "false": False}
        return (
            words.get(value.lower()) if isinstance(value, str) else value if isinstance(value, bool) else None
        )
    moment = read_moment(value) if isinstance(value, str) else value
    return _moment(moment, wanted, time_zone) if isinstance(moment, date) else None


def _moment(moment: date, wanted: pa.DataType, time_zone: ZoneInfo) -> date | None:
    if pa.types.is_date(wanted):
        return None if isinstance(moment, datetime) else moment
    if not isinstance(moment, datetime):
        moment = datetime(moment.year, moment.month, moment.day)  # noqa: DTZ001  # placed just below
    if wanted.tz is None:
        return None if moment.tzinfo else moment
    placed = moment if moment.tzinfo else moment.replace(tzinfo=time_zone)
    try:
        return placed.astimezone(UTC)
    except OverflowError as beyond:
        raise InvalidRequestError(
            f"the time {placed} is not of the years 1 to 9999 in UTC", "the filter", "give one that is"
        ) from beyond


def _number(value: Value) -> Decimal | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, Decimal)):
        return Decimal(value)
    if isinstance(value, str):
        try:
            number = Decimal(value.strip())
        except InvalidOperation:
            return None
        return number if number.is_finite() else None
    return None


def _on_grid(number: Decimal, wanted: pa.DataType) -> TypedLiteral:
    """Place a number among the integers or decimals of the type."""
    if pa.types.is_integer(wanted):
        scale, highest = 0, (1 << (wanted.bit_width - 1)) - 1
        lowest = -highest - 1
    else:
        scale, highest = wanted.scale, 10**wanted.precision - 1
        lowest = -highest
    digits = Context(prec=max(len(number.as_tuple().digits), 1) + 100)
    if number and number.adjusted() > _ADJUSTED_MAX:
        return TypedLiteral(None, "above all" if number > 0 else "below all")
    units = number.scaleb(scale, digits)
    if units > highest:
        return TypedLiteral(None, "above all")
    if units < lowest:
        return TypedLiteral(None, "below all")
    floor = math.floor(units)
    is_exact = units == floor
    value = floor if pa.types.is_integer(wanted) else Decimal(floor).scaleb(-scale, digits)
    return TypedLiteral(pa.scalar(value, wanted), "exact" if is_exact else "between")


def _floating(value: Value, wanted: pa.DataType) -> TypedLiteral | None:
    if isinstance(value, str) and value.strip().lower() in _FLOAT_WORDS:
        value = _FLOAT_WORDS[value.strip().lower()]
    if isinstance(value, float):  # NaN or an infinity
        return TypedLiteral(pa.scalar(value, wanted))
    number = _number(value)
    if number is None:
        return None
    kind = np.float32 if pa.types.is_float32(wanted) else np.float64
    with np.errstate(over="ignore"):
        nearest = float(kind(float(number)))  # the shortest digits of the greatest float lie above it
    if math.isinf(nearest):  # the number is finite, so below the infinity that rounding makes of it
        beyond = float(np.finfo(kind).max) if number > 0 else -math.inf
        return TypedLiteral(pa.scalar(beyond, wanted), "between")
    if kind is np.float32:
        return TypedLiteral(pa.scalar(nearest, wanted), is_rounded=Decimal(nearest) != number)
    if not isinstance(value, int) or Decimal(nearest) == number:
        # Digits with a point or an exponent mean the double nearest to them, as everywhere.
        return TypedLiteral(pa.scalar(nearest, wanted))
    below = nearest if Decimal(nearest) < number else math.nextafter(nearest, -math.inf)
    return TypedLiteral(pa.scalar(below, wanted), "between")
