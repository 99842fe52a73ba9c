"""A generated time column: what the text of a period tells about the time that it was made from.

Why: the pipeline partitions by `_event_hour`, people ask for `event_time`. The table's properties say how one
was made from the other, so a period bounds the times of every row that has it; the filter stays as written.
Contract: one-sided. A text that is no period of the format, an unknown format, zone or type is no bound.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lazydelta.protocol.schema import PrimitiveType, StructType
from lazydelta.protocol.statistics import ColumnBounds

_SOURCE, _COLUMN = "lazydelta.time.source", "lazydelta.time.column"
_FORMAT, _ZONE = "lazydelta.time.format", "lazydelta.time.zone"
# Format → numpy's unit of the period. Every text has as many digits as its format has letters.
_UNITS = {"yyyyMM": "M", "yyyyMMdd": "D", "yyyyMMddHH": "h", "yyyyMMddHHmm": "m", "yyyyMMddHHmmss": "s"}
_SOURCE_TYPES = frozenset({"timestamp", "timestamp_ntz", "date"})
_FIXED_ZONE = re.compile(r"^(UTC|GMT|Z|Etc/.+|[+-][0-9]{2}:[0-9]{2})$")
# The writer's Java and this machine have clock rules of different years, and a country changes them by an
# hour at a few days' notice. Before 1970 and after 2037 more is unsettled: zones are merged in some editions,
# and Arrow does not follow rules past the last change that a zone's file lists.
_RULES_SLACK_US, _UNSETTLED_SLACK_US = 3_600_000_000, 86_400_000_000
_SETTLED_US = (0, int(np.datetime64("2037-01-01", "us").astype(np.int64)))

Moments = NDArray[np.datetime64]


class GeneratedPeriod(msgspec.Struct, frozen=True):
    """The partition column that holds the period of another column's time."""

    physical_name: str
    format: str
    zone: str


class EventTime(msgspec.Struct, frozen=True):
    """A column of times, by its physical path, and the column of its periods."""

    source: tuple[str, ...]
    period: GeneratedPeriod


def event_time_of(
    configuration: Mapping[str, str | None], schema: StructType, partition_columns: Sequence[str]
) -> EventTime | None:
    """What the table's properties tell; None where they do not tell all, or of columns that are not there."""
    told = [configuration.get(name) for name in (_SOURCE, _COLUMN, _FORMAT, _ZONE)]
    source, column, format_, zone = told
    if source is None or column is None or format_ is None or zone is None or format_ not in _UNITS:
        return None
    generated = schema.field(column)
    if generated is None or generated.name not in partition_columns:
        return None
    path = _physical_path(schema, (source,)) or _physical_path(schema, source.split("."))
    if generated.type != PrimitiveType("string") or path is None:
        return None
    return EventTime(path, GeneratedPeriod(generated.physical_name, format_, zone))


def source_bounds(
    period: GeneratedPeriod, type_name: str, first: pa.StringArray, last: pa.StringArray
) -> ColumnBounds | None:
    """Bounds of a column of that type in rows whose periods lie between two; null where either is odd."""
    if type_name not in _SOURCE_TYPES:
        return None
    starts = period_starts(first, period.format)
    last_starts = starts if last is first else period_starts(last, period.format)
    is_odd = np.isnat(starts) | np.isnat(last_starts)
    starts[is_odd] = last_starts[is_odd] = np.datetime64("NaT")
    unit = _UNITS[period.format]
    ends = (last_starts.astype(f"M8[{unit}]") + 1).astype("M8[us]") - 1  # the last microsecond
    if type_name == "date":
        return ColumnBounds(min=_dates(starts), max=_dates(ends))
    if type_name == "timestamp_ntz":
        return ColumnBounds(min=_clocks(starts), max=_clocks(ends))
    return _instants(starts, ends, period.zone)


def period_starts(texts: pa.StringArray, format_: str) -> Moments:
    """When each period begins, by its own clock; NaT for null and for what is no period of the format."""
    distinct = texts.dictionary_encode()  # periods repeat over many files
    found = _parsed(distinct.dictionary, len(format_))
    starts = np.full(len(texts), np.datetime64("NaT"), "M8[us]")
    is_text = distinct.indices.is_valid().to_numpy(zero_copy_only=False)
    starts[is_text] = found[distinct.indices.drop_null().to_numpy(zero_copy_only=False)]
    return starts


def period_format(texts: pa.StringArray) -> str | None:
    """The one format of which every text that is not null is a period; None if there is none."""
    if texts.null_count == len(texts):
        return None
    length = len(texts.drop_null()[0].as_py())
    format_ = next((one for one in _UNITS if len(one) == length), None)
    if format_ is None:
        return None
    is_odd = np.isnat(period_starts(texts, format_)) & texts.is_valid().to_numpy(zero_copy_only=False)
    return None if is_odd.any() else format_


def _parsed(texts: pa.StringArray, length: int) -> Moments:
    is_digits = pc.match_substring_regex(texts, f"^[0-9]{{{length}}}$")
    number = pc.if_else(is_digits, texts, "0").cast(pa.int64()).to_numpy(zero_copy_only=False)
    number = number * 10 ** (14 - length)
    year, month = number // 10**10, number // 10**8 % 100
    day, hour, minute, second = (number // 10**power % 100 for power in (6, 4, 2, 0))
    if length < len("yyyyMMdd"):
        day = np.ones_like(day)
    is_sound = (year >= 1) & (month >= 1) & (month <= 12) & (day >= 1)
    is_sound &= (hour < 24) & (minute < 60) & (second < 60)
    months = ((year - 1970) * 12 + month - 1).astype("M8[M]")
    days = months.astype("M8[D]") + (day - 1)
    is_sound &= days.astype("M8[M]") == months  # no 30th of February
    starts: Moments = days.astype("M8[us]") + (((hour * 60 + minute) * 60 + second) * 1_000_000)
    starts[~is_sound] = np.datetime64("NaT")
    return starts


def _instants(starts: Moments, ends: Moments, zone: str) -> ColumnBounds | None:
    """The moments at which a clock in the zone shows these times: where it is set back, both readings."""
    low, high = _clocks(starts), _clocks(ends)
    if zone != "UTC":
        try:
            low = pc.assume_timezone(low, zone, ambiguous="earliest", nonexistent="earliest")
            high = pc.assume_timezone(high, zone, ambiguous="latest", nonexistent="latest")
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # a zone that this machine does not know
            return None
    if not _FIXED_ZONE.match(zone):
        low, high = _moved(low, is_low=True), _moved(high, is_low=False)
    wanted = pa.timestamp("us", tz="UTC")
    return ColumnBounds(min=low.view(wanted), max=high.view(wanted))


def _moved(moments: pa.Array, *, is_low: bool) -> pa.Array:
    """Outwards, as far as clock rules may differ."""
    ticks = moments.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    is_settled = (ticks >= _SETTLED_US[0]) & (ticks < _SETTLED_US[1])
    slack = np.where(is_settled, _RULES_SLACK_US, _UNSETTLED_SLACK_US)
    moved = ticks - slack if is_low else ticks + slack
    is_null = moments.is_null().to_numpy(zero_copy_only=False)
    return pa.array(moved, pa.int64(), mask=is_null)


def _clocks(moments: Moments) -> pa.Array:
    return pa.array(moments.astype("M8[us]"), pa.timestamp("us"))


def _dates(moments: Moments) -> pa.Array:
    return pa.array(moments.astype("M8[D]"), pa.date32())


def _physical_path(schema: StructType, names: Sequence[str]) -> tuple[str, ...] | None:
    path: list[str] = []
    inside: Any = schema  # Any: whatever type the last name had
    for name in names:
        field = inside.field(name) if isinstance(inside, StructType) else None
        if field is None:
            return None
        path.append(field.physical_name)
        inside = field.type
    return tuple(path)
