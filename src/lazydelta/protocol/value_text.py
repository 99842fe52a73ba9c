"""Values written as text, in statistics and partition values, as typed Arrow arrays.

Contract: a text that is not exactly a value of the type becomes null, never a near value and never an error.
Spec: PROTOCOL.md, "Partition Value Serialization" and "Per-file Statistics".
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from lazydelta.protocol.arrow_casts import cast_where_possible
from lazydelta.protocol.schema import PrimitiveType, arrow_type

_INTEGER = r"^-?[0-9]+$"
_NUMBER = r"^-?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"
# Java says Infinity, delta-rs inf; Spark reads both, in any case.
_FLOAT = r"^((?i:nan|-?inf(inity)?)|-?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?)$"
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?)?"
_ZONE = r"(Z|[+-][0-9]{2}(:?[0-9]{2})?)$"
_INSTANT, _WALL_CLOCK, _WALL_CLOCK_Z = _TIME + _ZONE, _TIME + "$", _TIME + "Z?$"


def values_from_text(
    texts: pa.StringArray, type_name: str, *, time_zone: str = "UTC", prefer_latest: bool = False
) -> pa.Array:
    """Parse `texts` as values of a Delta primitive type; null where a text is no such value.

    A timestamp without a zone is taken in `time_zone`; one that the clock showed twice there is the earlier
    of the two unless `prefer_latest`.
    """
    wanted = arrow_type(PrimitiveType(type_name))
    if type_name == "timestamp":
        return _instants(texts, time_zone, prefer_latest)
    if type_name == "timestamp_ntz":
        return _wall_clock(_only(texts, _WALL_CLOCK_Z))
    parse = _parser_for(wanted)
    return parse(texts, wanted)


Parser = Callable[[pa.StringArray, pa.DataType], pa.Array]


def _parser_for(wanted: pa.DataType) -> Parser:
    parsers: tuple[tuple[Callable[[pa.DataType], bool], Parser], ...] = (
        (pa.types.is_string, lambda texts, _: texts),
        (pa.types.is_binary, _bytes),
        (pa.types.is_boolean, _truth),
        (pa.types.is_date, _matching(_DATE)),
        (pa.types.is_integer, _matching(_INTEGER)),
        (pa.types.is_decimal, _matching(_NUMBER)),
        (pa.types.is_floating, _floats),
    )
    return next((parse for is_kind, parse in parsers if is_kind(wanted)), _nothing)


def _matching(pattern: str) -> Parser:
    """Arrow's own parsers, kept from what they accept beyond Delta's forms (hexadecimal, spaces)."""
    return lambda texts, wanted: _cast(_only(texts, pattern), wanted)


def _nothing(texts: pa.StringArray, wanted: pa.DataType) -> pa.Array:
    return pa.nulls(len(texts), wanted)


def _floats(texts: pa.StringArray, wanted: pa.DataType) -> pa.Array:
    return _cast(_only(texts, _FLOAT), pa.float64()).cast(wanted)


def _truth(texts: pa.StringArray, wanted: pa.DataType) -> pa.Array:
    return _cast(_only(pc.utf8_lower(texts), "^(true|false)$"), wanted)


def _bytes(texts: pa.StringArray, wanted: pa.DataType) -> pa.Array:
    """One character per byte. Past ASCII writers differ (UTF-8 or Latin-1), so such a text says nothing."""
    return _only(texts, r"^[\x00-\x7f]*$").cast(wanted)


def _instants(texts: pa.StringArray, time_zone: str, prefer_latest: bool) -> pa.Array:
    wanted = pa.timestamp("us", tz="UTC")
    try:
        return texts.cast(wanted)  # all with a zone, as Spark writes statistics
    except pa.ArrowInvalid:
        pass
    zoned = _cast(_only(texts, _INSTANT), wanted)
    local = _wall_clock(_only(texts, _WALL_CLOCK))
    placed = pc.assume_timezone(
        local,
        time_zone,
        ambiguous="latest" if prefer_latest else "earliest",
        nonexistent="latest" if prefer_latest else "earliest",
    )
    return pc.coalesce(zoned, placed.cast(wanted))


def _wall_clock(texts: pa.StringArray) -> pa.Array:
    return _cast(pc.utf8_rtrim(texts, "Z"), pa.timestamp("us"))


def _only(texts: pa.StringArray, pattern: str) -> pa.StringArray:
    matches = pc.match_substring_regex(texts, pattern)
    if pc.all(matches, min_count=0).as_py():
        return texts
    return pc.if_else(matches, texts, pa.scalar(None, pa.string()))


def _cast(texts: pa.StringArray, wanted: pa.DataType) -> pa.Array:
    cast = cast_where_possible(texts, wanted)
    assert cast is not None, f"text does not convert to {wanted}"
    return cast
