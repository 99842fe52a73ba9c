"""Files with statistics made as writers make them: cut, rounded, left out, or gone stale.

`SCHEMA` has a column of every kind that statistics treat in its own way. A `WrittenFile` knows its rows, what
a deletion vector hides of them, and the habits of its writer; `stats_json` is what that writer would log.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from lazydelta.protocol.schema import Field, PrimitiveType, StructType, arrow_schema
from lazydelta.protocol.statistics import (
    FileStatistics,
    StatsColumn,
    statistics_from_json,
    statistics_from_struct,
)

Row = dict[str, Any]

EPOCH = datetime.fromisoformat("1970-01-01T00:00:00")
LONG_TEXT = "x" * 32  # as much of a text as Spark keeps in statistics
PARTITIONS = ("part", "hour")
_WIDENED = {"delta.typeChanges": [{"toType": "double", "fromType": "float", "tableVersion": 1}]}
_FLOATS = [-math.inf, -1.5, -0.0, 0.0, 0.1, 0.2, 1.5, 16777217.0, 1e300, math.inf, math.nan]
_MICROS = [0, 1, 999, 1000, 1001, 1_999, -1, -999, -1000, 86_400_000_000]
_SINGLES = [float(np.float32(value)) for value in _FLOATS if value != 1e300]
_TEXTS = [
    *("", "a", "ab", "abc", "b", "é", "\U0001f600", "\uffff", "%", "a_c", "\ufffd", "x" * 31 + "éé"),
    *(LONG_TEXT + tail for tail in ("", "a", "\x7f", "\uffff", "\U0001f600", "\U0010ffffz")),
]
_EXACT = [
    *("0", "1.5", "-1.5", "0.1000000001", "12345678901234567.0123456789", "12345678901234567.0123456790"),
    *("99999999999999999999.9999999999", "99999999999999999999.9999999998", "-12345678901234567.8901234567"),
]


def _field(name: str, type_name: str, metadata: dict[str, Any] | None = None) -> Field:
    return Field(name, PrimitiveType(type_name), True, metadata or {})


SCHEMA = StructType(
    (
        _field("truth", "boolean"),
        _field("tiny", "byte"),
        _field("big", "long"),
        _field("single", "float"),
        _field("double", "double"),
        _field("widened", "double", _WIDENED),
        _field("price", "decimal(6,2)"),
        _field("exact", "decimal(30,10)"),
        _field("text", "string"),
        _field("day", "date"),
        _field("instant", "timestamp"),
        _field("clock", "timestamp_ntz"),
        _field("part", "string"),
        _field("hour", "integer"),
        Field("outer", StructType((_field("inner", "long"),)), True, {}),
    )
)

# Values that rows may hold, by column; of `outer`, the inner one.
VALUES: dict[str, list[Any]] = {
    "truth": [False, True],
    "tiny": [-128, -1, 0, 1, 2, 127],
    "big": [-(2**63), -1, 0, 1, 2**53, 2**53 + 1, 2**63 - 1],
    "single": _SINGLES,
    "double": _FLOATS,
    "widened": _SINGLES,
    "price": [Decimal(digits) for digits in ("0.00", "0.01", "0.57", "1.10", "-9999.99", "9999.99")],
    "exact": [Decimal(digits) for digits in _EXACT],
    "text": _TEXTS,
    "day": [date(1969, 12, 31), date(1970, 1, 1), date(2026, 2, 8)],
    "instant": [EPOCH + timedelta(microseconds=us) for us in _MICROS],
    "clock": [EPOCH + timedelta(microseconds=us) for us in _MICROS],
    "outer": [-5, 0, 5],
}
# Values that filters may compare with: those, and others beside, between and beyond them.
LITERALS: dict[str, list[Any]] = {
    **VALUES,
    "tiny": [-129, -128, Decimal("-0.5"), 0, 1, Decimal("1.5"), 127, 128, Decimal("1e99")],
    "big": [-(2**63) - 1, -1, Decimal("0.5"), 2**53, 2**53 + 1, 2**63 - 1, 2**63, Decimal("1e999")],
    "single": [*_FLOATS, 16777216, 1, Decimal("0.3"), 2**60 + 1],
    "double": [*_FLOATS, 2**53 + 1, 1, Decimal("0.3"), Decimal("1e400"), Decimal("-1e400")],
    "widened": [*_FLOATS, float(np.float32(0.1))],
    "price": [Decimal(digits) for digits in ("0", "0.01", "0.015", "0.57", "1.1", "1e9", "-1e9", "9999.99")],
    "exact": [Decimal(digits) for digits in (*_EXACT, "12345678901234567", "12345678901234568", "1e99")],
    "part": _TEXTS,
    "hour": [-1, 0, 5, Decimal("5.5")],
}
PATTERNS = ["%", "a%", "ab%", "a_c", "%c", LONG_TEXT + "%", "x%\U0001f600", "", r"\%", r"a\_%"]


class WrittenFile(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """One file: its physical rows, which of them are deleted, and how its writer behaves."""

    rows: Sequence[Row]
    is_deleted: Sequence[bool] = ()
    partition: dict[str, str | None] = msgspec.field(default_factory=lambda: dict.fromkeys(PARTITIONS))
    is_tight: bool = True
    cuts_text: str = "spark"  # or "plain", without a tie-breaker, or "old", with U+FFFD
    sees_nan: bool = False
    decimals_through_f64: bool = False
    left_out: frozenset[str] = frozenset()

    @property
    def valid_rows(self) -> list[Row]:
        """The rows that no deletion vector hides."""
        gone = self.is_deleted or [False] * len(self.rows)
        return [row for row, is_gone in zip(self.rows, gone, strict=True) if not is_gone]


def row_of(**values: Any) -> Row:
    """A row with these values and nulls elsewhere."""
    return {**dict.fromkeys(VALUES), **values}


def batch_of(rows: Sequence[Row], partition: Row | None = None) -> pa.RecordBatch:
    """The rows as a reader gives them, partition columns included."""
    full = [
        {**row, **(partition or {}), "outer": None if row["outer"] is None else {"inner": row["outer"]}}
        for row in rows
    ]
    return pa.RecordBatch.from_pylist(full, arrow_schema(SCHEMA))


def json_statistics(
    files: Sequence[WrittenFile], columns: Sequence[StatsColumn], *, lean: bool = False
) -> FileStatistics:
    """What a reader makes of the logged JSON."""
    texts = pa.array([stats_json(file) for file in files], pa.string())
    return statistics_from_json(texts, columns, lean=lean)


def typed_statistics(files: Sequence[WrittenFile], columns: Sequence[StatsColumn]) -> FileStatistics:
    """As a checkpoint holds them: the same JSON, parsed into the columns' types."""
    decoded = json_statistics(files, columns)
    sections = {
        section: _nested(
            {path: getattr(bounds, part) for path, bounds in decoded.columns.items()}, len(files)
        )
        for section, part in (("minValues", "min"), ("maxValues", "max"), ("nullCount", "null_count"))
    }
    names = ["numRecords", "tightBounds", *sections]
    arrays = [decoded.num_records, decoded.tight_bounds, *sections.values()]
    return statistics_from_struct(pa.StructArray.from_arrays(arrays, names), columns)


def stats_json(file: WrittenFile) -> str:
    """The `stats` of the file's add, put together by hand: writers do not share our JSON library."""
    counted = file.valid_rows if file.is_tight else file.rows
    low, high, nulls = [], [], []
    for name in VALUES:
        values = [row[name] for row in counted if row[name] is not None]
        bounds = _bounds(file, name, values)
        if bounds is not None:
            low.append(_member(name, _json(file, name, bounds[0])))
            high.append(_member(name, _json(file, name, bounds[1])))
        nulls.append(_member(name, str(len(counted) - len(values))))
    parts = {
        "numRecords": str(len(file.rows)),
        "minValues": "{" + ",".join(low) + "}",
        "maxValues": "{" + ",".join(high) + "}",
        "nullCount": "{" + ",".join(nulls) + "}",
        "tightBounds": "true" if file.is_tight else "false",
    }
    return (
        "{" + ",".join(f'"{name}":{text}' for name, text in parts.items() if name not in file.left_out) + "}"
    )


def _member(name: str, text: str) -> str:
    return f'"outer":{{"inner":{text}}}' if name == "outer" else f'"{name}":{text}'


def _bounds(file: WrittenFile, name: str, values: Sequence[Any]) -> tuple[Any, Any] | None:
    if not values:
        return None
    if name in ("single", "double", "widened"):
        return _float_bounds(values, sees_nan=file.sees_nan)
    if name == "text":
        ordered = sorted(values, key=str.encode)
        return ordered[0][:32], _cut_max(ordered[-1], file.cuts_text)
    return min(values), max(values)


def _float_bounds(values: Sequence[float], *, sees_nan: bool) -> tuple[float, float] | None:
    numbers = [value for value in values if not math.isnan(value)]
    if not numbers:
        return (math.nan, math.nan) if sees_nan else None
    return min(numbers), math.nan if sees_nan and len(numbers) < len(values) else max(numbers)


def _cut_max(text: str, how: str) -> str:
    if len(text) <= len(LONG_TEXT):
        return text
    cut = len(LONG_TEXT)
    if how != "spark":
        return text[:cut] + ("\ufffd" if how == "old" else "")
    while text[cut:].startswith("\U0010ffff"):
        cut += 1
    return text[:cut] + ("\x7f" if text[cut] < "\x7f" else "\U0010ffff")


def _json(file: WrittenFile, name: str, value: Any) -> str:  # noqa: PLR0911  # one case per type
    match value:
        case bool():
            return "true" if value else "false"
        case float() if not math.isfinite(value):
            return {"nan": '"NaN"', "inf": '"Infinity"', "-inf": '"-Infinity"'}[str(value)]
        case float():
            # A float by its own shortest digits, also in files written before it became a double.
            return str(np.float32(value)) if name in ("single", "widened") else repr(value)
        case Decimal():
            return repr(float(value)) if file.decimals_through_f64 else str(value)
        case datetime():
            cut = value - timedelta(microseconds=value.microsecond % 1000)
            text = cut.isoformat(timespec="milliseconds") + ("Z" if name == "instant" else "")
            return f'"{text}"'
        case date():
            return f'"{value.isoformat()}"'
    return msgspec.json.encode(value).decode()


def _nested(arrays: dict[tuple[str, ...], pa.Array | None], length: int) -> pa.StructArray:
    children = {}
    for path, array in arrays.items():
        if array is not None:
            children[path[0]] = array if len(path) == 1 else pa.StructArray.from_arrays([array], [path[1]])
    if not children:
        return pa.array([{}] * length, pa.struct([]))
    return pa.StructArray.from_arrays(list(children.values()), list(children))
