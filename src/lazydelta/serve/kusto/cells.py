"""Columns of Arrow as the text that JSON has for their values, a whole column at a time.

Why: a result of a million rows is written cell by cell otherwise, which takes longer than the query.
Contract: a column of one of Kusto's ten types, in the Arrow type that `engines/kql/columns.py` has for it,
gives text without nulls, and what stands before and after each. Null is `null`, but for strings, which are
never null in Kusto: theirs is empty. A value that Kusto's type cannot hold is an error, never another value.
Spec: Kusto, "Scalar data types"; numbers that JSON has no word for are the strings NaN, Infinity, -Infinity.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lazydelta.engines.kql.timespans import timespan_texts
from lazydelta.errors import InvalidRequestError

# Kusto's datetime is from year 1 to 9999; seconds since 1970.
_SECONDS_MIN, _SECONDS_END = -62_135_596_800, 253_402_300_800
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_DATETIME_ENDS = {"s": '.0000000Z"', "ms": '0000Z"', "us": '0Z"', "ns": 'Z"'}
_TO_TICKS_CHARS = 27  # of 2026-02-10T22:15:01.1234567
_SPECIAL = bytes([*range(0x20), ord('"'), ord("\\")])
_ESCAPES = {code: f"\\u{code:04x}" for code in range(0x20)} | {9: "\\t", 10: "\\n", 13: "\\r"}
_INTEGRAL = r"^-?\d+$"
_NON_FINITE = {"nan": '"NaN"', "inf": '"Infinity"', "-inf": '"-Infinity"'}
_JSON = msgspec.json.Decoder(msgspec.Raw)


class Cells(msgspec.Struct, frozen=True, eq=False):
    """The texts of one column, and what stands around each."""

    texts: pa.Array  # of strings, without nulls
    before: str = ""
    after: str = ""


def cells(column: pa.Array, kind: str) -> Cells:
    """The column as text; `kind` is Kusto's type."""
    return _WRITERS[kind](column)


def _plain(column: pa.Array) -> Cells:
    return Cells(column.cast(pa.string()).fill_null("null"))


def _real(column: pa.Array) -> Cells:
    values = column.cast(pa.float64())
    texts = values.cast(pa.string())
    if pc.any(pc.equal(pc.trunc(values), values)).as_py():
        # Clients that take a column's first value for its type must not take 1 for a whole number.
        is_whole = pc.match_substring_regex(texts, _INTEGRAL)
        texts = pc.if_else(is_whole, pc.binary_join_element_wise(texts, ".0", ""), texts)
    if not pc.all(pc.is_finite(values)).as_py():
        for written, told in _NON_FINITE.items():
            texts = pc.if_else(pc.equal(texts, written), told, texts)
    return Cells(texts.fill_null("null"))


def _decimal(column: pa.Array) -> Cells:
    texts = column.cast(pa.string())
    if pc.any(pc.match_substring(texts, "E")).as_py():  # small ones: 1E-8
        values = column.to_pylist()
        texts = pa.array([None if value is None else format(value, "f") for value in values], pa.string())
    return _quoted(texts)


def _datetime(column: pa.Array) -> Cells:
    kind = column.type
    if pa.types.is_date(kind):
        column, kind = column.cast(pa.timestamp("s")), pa.timestamp("s")
    numbers = column.cast(pa.int64())
    _check_range(numbers, _SECONDS_MIN * _PER_SECOND[kind.unit], _SECONDS_END * _PER_SECOND[kind.unit] - 1)
    texts = numbers.cast(pa.timestamp(kind.unit)).cast(pa.string())
    texts = pc.binary_replace_slice(texts.cast(pa.binary()), 10, 11, b"T").view(pa.string())
    if kind.unit == "ns":
        texts = pc.utf8_slice_codeunits(texts, 0, _TO_TICKS_CHARS)
    return _quoted(texts, after=_DATETIME_ENDS[kind.unit])


def _check_range(numbers: pa.Array, least: int, most: int) -> None:
    found = pc.min_max(numbers).as_py()
    if found["min"] is not None and (found["min"] < least or found["max"] > most):
        raise InvalidRequestError(
            "a datetime is before year 1 or after year 9999, which Kusto's datetime cannot hold",
            "result",
            "leave such rows out, or make it text with tostring()",
        )


def _timespan(column: pa.Array) -> Cells:
    return _quoted(timespan_texts(column))


def _string(column: pa.Array) -> Cells:
    return Cells(escaped(column.cast(pa.string()).fill_null("")), '"', '"')


def _guid(column: pa.Array) -> Cells:
    return _quoted(escaped(column.cast(pa.string())))


def _dynamic(column: pa.Array) -> Cells:
    texts = column.cast(pa.string()).fill_null("null")
    return Cells(texts if _are_json(texts) else _as_json(texts))


def escaped(texts: pa.Array) -> pa.Array:
    """The texts as JSON writes them, without the quotes around."""
    written = _written(texts)
    if len(written) == len(written.translate(None, _SPECIAL)):
        return texts
    texts = pc.replace_substring(pc.replace_substring(texts, "\\", "\\\\"), '"', '\\"')
    for code, told in _ESCAPES.items():
        if code in written:
            texts = pc.replace_substring(texts, chr(code), told)
    return texts


def _written(texts: pa.Array) -> bytes:
    """All the bytes of the texts, one after the other."""
    _, offsets, data = texts.buffers()
    if data is None or not len(texts):
        return b""
    ends = np.frombuffer(offsets, np.int32)
    found: bytes = data[int(ends[texts.offset]) : int(ends[texts.offset + len(texts)])].to_pybytes()
    return found


def _are_json(texts: pa.Array) -> bool:
    """Whether each is one value of JSON on one line, so that none can break out of its cell."""
    lines = "\n".join(texts.to_pylist())
    if lines.count("\n") != max(0, len(texts) - 1):
        return False
    try:
        return len(_JSON.decode_lines(lines)) == len(texts)
    except (msgspec.DecodeError, RecursionError):
        return False


def _as_json(texts: pa.Array) -> pa.Array:
    """What is no JSON becomes text in it."""
    return pa.array([_one_as_json(text) for text in texts.to_pylist()], pa.string())


def _one_as_json(text: str) -> str:
    try:
        _JSON.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return msgspec.json.encode(text).decode()
    return text


def _quoted(texts: pa.Array, *, after: str = '"') -> Cells:
    if not texts.null_count:
        return Cells(texts, '"', after)
    return Cells(pc.binary_join_element_wise('"', texts, after, "").fill_null("null"))


_WRITERS: dict[str, Callable[[pa.Array], Cells]] = {
    "bool": _plain,
    "datetime": _datetime,
    "decimal": _decimal,
    "dynamic": _dynamic,
    "guid": _guid,
    "int": _plain,
    "long": _plain,
    "real": _real,
    "string": _string,
    "timespan": _timespan,
}
