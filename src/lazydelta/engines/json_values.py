"""Values of any column as JSON has them, and as text: what the command line and the web page show of rows.

Why: Python has no date after the year 9999 and no 24:00, msgspec writes NaN as null, and Arrow's text of a
moment that lies far off is a remark, or wrong. Contract: the same at the top and inside of nested values. NaN
and infinities are text; so are moments (years before 1 and after 9999 as ISO 8601 counts them), which may be
`infinity`, as DuckDB has it; bytes are base64; intervals are ISO 8601 durations; a union is the value that it
holds; keys of maps are text, those that are none by their JSON. Null is null, and nothing else is.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as kinds

from lazydelta.errors import CorruptDataError, LazyDeltaError

# Sums of whole numbers are decimals here; as JSON numbers they keep their digits.
ENCODER = msgspec.json.Encoder(decimal_format="number")
_FIRST_DAY, _LAST_DAY = -719_161, 2_932_895  # 0001-01-02 and 9999-12-30: in every zone within Python's years
_INFINITY, _INFINITE_DAY = 2**63 - 1, 2**31 - 1  # as DuckDB has them, also with a minus
_UNITS_A_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
_NANOSECONDS = 1_000_000_000
Values = list[Any]  # Any: whatever JSON can hold


def json_values(column: pa.Array) -> Values:
    """The values as JSON has them."""
    column = stored(column)
    kind = column.type
    if column.null_count == len(column) and not kinds.is_union(kind):  # nulls of a union are its members'
        return [None] * len(column)
    if kinds.is_nested(kind):
        return _nested(column)
    if kinds.is_temporal(kind) and not kinds.is_duration(kind) and not kinds.is_interval(kind):
        return list(pc.replace_substring(moment_texts(column), " ", "T").to_pylist())
    plain = _PLAIN.get(_family(kind))
    values = _python_values(column)
    return values if plain is None else [None if value is None else plain(value) for value in values]


def json_text(value: object) -> str:
    """A value of `json_values` as JSON."""
    return ENCODER.encode(value).decode()


def stored(column: pa.Array) -> pa.Array:
    """The column without dictionaries and extensions."""
    while True:
        if isinstance(column.type, pa.BaseExtensionType):
            column = column.storage
        elif kinds.is_dictionary(column.type):
            column = column.dictionary_decode()
        else:
            return column


def checked_texts(column: pa.Array) -> pa.Array:
    """The column, if it is UTF-8 as it must be."""
    try:
        column.validate(full=True)
    except pa.ArrowInvalid as damage:
        raise CorruptDataError(
            f"a text of the result is not UTF-8: {damage}",
            "the rows of the query",
            "write the rows of its data file again, or ask for its bytes: encode(x)",
        ) from damage
    return column


def is_in_calendar(column: pa.Array) -> bool:
    """Whether Arrow knows the text of all moments of the column."""
    return not pc.any(_is_far(column)).as_py()


def moment_texts(column: pa.Array) -> pa.Array:
    """Dates, times of the day and times as text, whatever their years."""
    if is_in_calendar(column):
        return column.cast(pa.string())
    is_far = _is_far(column)
    near = pc.if_else(is_far, pa.scalar(None, column.type), column).cast(pa.string())
    far = _ends_of_day if kinds.is_time(column.type) else _far_texts
    return pc.replace_with_mask(near, is_far, far(_counts(column).filter(is_far), column.type))


def _python_values(column: pa.Array) -> Values:
    kind = column.type
    if kinds.is_string(kind) or kinds.is_large_string(kind):
        checked_texts(column)
    if kinds.is_string(kind) or (kinds.is_integer(kind) and not column.null_count):
        return list(column.to_numpy(zero_copy_only=False).tolist())  # several times faster
    return list(column.to_pylist())


def _nested(column: pa.Array) -> Values:
    kind = column.type
    if kinds.is_union(kind):
        return _union(column)
    if kinds.is_struct(kind):
        names = [field.name for field in kind]
        children = [json_values(column.field(at)) for at in range(kind.num_fields)]
        rows = zip(*children, strict=True) if children else [()] * len(column)
        found: Values = [dict(zip(names, row, strict=True)) for row in rows]
    elif kinds.is_map(kind):
        found = _maps(column)
    else:
        if not (kinds.is_list(kind) or kinds.is_large_list(kind)):  # of a fixed size, or a view
            column = column.cast(pa.large_list(kind.value_type))
        found = _parts(column, json_values(_inside(column, column.values)))
    if not column.null_count:
        return found
    return [
        value if there else None for value, there in zip(found, column.is_valid().to_pylist(), strict=True)
    ]


def _maps(column: pa.MapArray) -> Values:
    keys = [
        key if isinstance(key, str) else json_text(key) for key in json_values(_inside(column, column.keys))
    ]
    pairs = _parts(column, list(zip(keys, json_values(_inside(column, column.items)), strict=True)))
    found = [dict(entries) for entries in pairs]
    if sum(map(len, found)) != len(keys):
        raise LazyDeltaError(
            "a map of the result has a key twice, which JSON cannot tell",
            "the rows of the query",
            "ask for map_entries(column) instead",
        )
    return found


def _inside(column: pa.Array, values: pa.Array) -> pa.Array:
    """The values of those lists that are in the column, which may be a slice."""
    first, last = column.offsets[0].as_py(), column.offsets[-1].as_py()
    return values.slice(first, last - first)


def _parts(column: pa.Array, values: Values) -> list[Values]:
    offsets = column.offsets.to_numpy()
    return [values[start:stop] for start, stop in pairwise((offsets - offsets[0]).tolist())]


def _union(column: pa.UnionArray) -> Values:
    # By the buffers: pyarrow's `type_codes` and `offsets` are those of the whole array, also of a slice.
    buffers, within = column.buffers(), slice(column.offset, column.offset + len(column))
    codes = np.frombuffer(buffers[1], np.int8)[within].tolist()
    is_dense = column.type.mode == "dense"
    places = np.frombuffer(buffers[2], np.int32)[within].tolist() if is_dense else range(len(column))
    children = {code: json_values(column.field(at)) for at, code in enumerate(column.type.type_codes)}
    return [children[code][place] for code, place in zip(codes, places, strict=True)]


def _is_far(column: pa.Array) -> pa.Array:
    """Which moments Python's calendar does not have; 24:00 is one, too."""
    counts, kind = _counts(column), column.type
    a_day = 1 if kinds.is_date32(kind) else _UNITS_A_DAY[_unit(kind)]
    if kinds.is_time(kind):
        return pc.fill_null(pc.greater_equal(counts, a_day), False)
    first, last = max(_FIRST_DAY * a_day, 1 - _INFINITY), min(_LAST_DAY * a_day, _INFINITY - 1)
    return pc.fill_null(pc.or_(pc.less(counts, first), pc.greater(counts, last)), False)


def _counts(column: pa.Array) -> pa.Array:
    """Days or units since 1970, or since midnight."""
    return column.view(pa.int32() if column.type.bit_width == 32 else pa.int64()).cast(pa.int64())


def _ends_of_day(counts: pa.Array, kind: pa.DataType) -> pa.Array:
    """`24:00:00`, with as many digits as other times of the column."""
    zero = pa.array([0] * len(counts), pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)
    return pc.replace_substring(zero.cast(pa.string()), "00:", "24:", max_replacements=1)


def _far_texts(counts: pa.Array, kind: pa.DataType) -> pa.Array:
    """As ISO 8601 counts years; times with a zone in UTC."""
    infinity, unit = (_INFINITE_DAY, "D") if kinds.is_date32(kind) else (_INFINITY, _unit(kind))
    numbers, zone = counts.to_numpy(), "Z" if getattr(kind, "tz", None) else ""
    texts = np.char.replace(np.datetime_as_string(numbers.astype(f"M8[{unit}]")), "T", " ").tolist()
    far = [
        "infinity" if number == infinity else "-infinity" if number <= -infinity else f"{_padded(text)}{zone}"
        for number, text in zip(numbers.tolist(), texts, strict=True)
    ]
    return pa.array(far, pa.string())


def _padded(text: str) -> str:
    """Four digits at least: numpy counts the minus among them."""
    if not text.startswith("-"):
        return text
    year, _, rest = text[1:].partition("-")
    return f"-{year.zfill(4)}-{rest}"


def _unit(kind: pa.DataType) -> str:
    return "ms" if kinds.is_date64(kind) else str(kind.unit)


def _family(kind: pa.DataType) -> str:
    if kinds.is_floating(kind):
        return "number"
    if kinds.is_duration(kind):
        return "duration"
    if kinds.is_interval(kind):
        return "interval"
    is_bytes = kinds.is_binary(kind) or kinds.is_large_binary(kind) or kinds.is_fixed_size_binary(kind)
    return "bytes" if is_bytes or kinds.is_binary_view(kind) else ""


def _number(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _bytes(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _interval(value: Any) -> str:  # Any: pyarrow's named tuple of months, days and nanoseconds
    """`P14M3DT4.5S`."""
    seconds, rest = divmod(abs(value.nanoseconds), _NANOSECONDS)
    fraction = f".{rest:09}".rstrip("0") if rest else ""
    sign = "-" if value.nanoseconds < 0 else ""
    months = f"{value.months}M" if value.months else ""
    days = f"{value.days}D" if value.days else ""
    time = f"T{sign}{seconds}{fraction}S" if value.nanoseconds or not (months or days) else ""
    return f"P{months}{days}{time}"


# Any: each takes the values of its own family.
_PLAIN: dict[str, Callable[[Any], Any]] = {
    "number": _number,
    "bytes": _bytes,
    "interval": _interval,
    "duration": str,
}
