"""Timespans as Kusto writes and reads them: `[-][d.]hh:mm:ss[.fffffff]`, by ticks of 100 ns.

Contract: writing is of whole columns. Reading takes what clients send as `servertimeout`, each in its way:
Kusto's own form, Kusto's literals (`4m`), Python's `str(timedelta)`, and bare seconds.
"""

from __future__ import annotations

import re
from datetime import timedelta

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lazydelta.errors import InvalidRequestError

_TICKS_A_SECOND = 10_000_000
_TICKS_OF_UNIT = {"s": _TICKS_A_SECOND, "ms": 10_000, "us": 10}
_CLOCK = re.compile(
    r"(?P<sign>-?)(?:(?P<days>\d{1,8})(?:\.| days?, ))?"
    r"(?P<h>\d{1,2}):(?P<m>\d{1,2}):(?P<s>\d{1,2}(?:\.\d{1,9})?)\Z",
    re.ASCII,
)
_LITERAL = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)\s*(d|h|m|s|ms|)\Z", re.ASCII)
_SECONDS = {"d": 86_400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001, "": 1.0}


def timespan_texts(column: pa.Array) -> pa.Array:
    """A column of durations; null stays null."""
    ticks = _ticks(column)
    is_negative = ticks < 0
    # Two's complement: the smallest number has no positive twin.
    size = np.where(is_negative, (~ticks).astype(np.uint64) + np.uint64(1), ticks.astype(np.uint64))
    seconds, fraction = np.divmod(size, np.uint64(_TICKS_A_SECOND))
    minutes, seconds = np.divmod(seconds, np.uint64(60))
    hours, minutes = np.divmod(minutes, np.uint64(60))
    days, hours = np.divmod(hours, np.uint64(24))
    sign = pc.if_else(pa.array(is_negative), "-", "")
    whole = _unless_zero(days, pc.binary_join_element_wise(_text(days), ".", ""))
    part = _unless_zero(fraction, pc.binary_join_element_wise(".", _text(fraction, 7), ""))
    clock = [_text(hours, 2), ":", _text(minutes, 2), ":", _text(seconds, 2)]
    texts = pc.binary_join_element_wise(sign, whole, *clock, part, "")
    return pc.if_else(column.is_valid(), texts, None) if column.null_count else texts


def read_timespan(text: str) -> float | None:
    """Seconds; None: it is none."""
    words = text.strip().lower()
    if found := _CLOCK.match(words):
        hours, minutes = int(found["h"]), int(found["m"])
        seconds = timedelta(
            days=int(found["days"] or 0), hours=hours, minutes=minutes, seconds=float(found["s"])
        ).total_seconds()
        return -seconds if found["sign"] else seconds
    if found := _LITERAL.match(words):
        return float(found[1]) * _SECONDS[found[2]]
    return None


def _ticks(column: pa.Array) -> npt.NDArray[np.int64]:
    unit = column.type.unit
    numbers = column.cast(pa.int64()).fill_null(0)
    if unit == "ns":
        found: npt.NDArray[np.int64] = numbers.to_numpy() // 100
        return found
    try:
        found = pc.multiply_checked(numbers, _TICKS_OF_UNIT[unit]).to_numpy()
    except pa.ArrowInvalid as problem:
        raise InvalidRequestError(
            "a timespan is longer than Kusto's timespan can hold", "result", "leave such rows out"
        ) from problem
    return found


def _unless_zero(numbers: npt.NDArray[np.uint64], texts: pa.Array) -> pa.Array:
    return pc.if_else(pa.array(numbers != 0), texts, "")


def _text(numbers: npt.NDArray[np.uint64], width: int = 1) -> pa.Array:
    return pc.utf8_lpad(pa.array(numbers).cast(pa.string()), width, "0")
