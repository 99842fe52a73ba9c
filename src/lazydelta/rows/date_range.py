"""A range of dates as a filter on the table's time column.

Which column that is, in this order: the one that the table's properties name as the source of its periods
(`lazydelta.time.source`); else the column that its sidecar is sorted by, by rule: `lazydelta.time.column`,
`_event_hour`, the first partition column. Contract: both ends belong to the range, None leaves an end open; a
date as the end means all of that day, a period in text (`2026021022`) all of that period.
"""

from __future__ import annotations

import datetime as dt
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from lazydelta.errors import InvalidRequestError
from lazydelta.log.snapshot import Snapshot
from lazydelta.predicate import Column, Expression, col
from lazydelta.protocol.schema import PrimitiveType, StructType
from lazydelta.sidecar.read.traversal import traversal_by_rule

DateBound = dt.datetime | dt.date | str | None
DateRange = tuple[DateBound, DateBound]

_SOURCE, _FORMAT, _ZONE = "lazydelta.time.source", "lazydelta.time.format", "lazydelta.time.zone"
# Periods as the pipeline writes them, by column where the table does not tell; to Python's terms.
_PERIODS = {"_event_month": "yyyyMM", "_event_day": "yyyyMMdd", "_event_hour": "yyyyMMddHH"}
_CODES = {"yyyyMM": "%Y%m", "yyyyMMdd": "%Y%m%d", "yyyyMMddHH": "%Y%m%d%H", "yyyyMMddHHmm": "%Y%m%d%H%M"}
_WHERE = "date_range"


def date_filter(snapshot: Snapshot, date_range: DateRange) -> Expression | None:
    """The filter that the range means on this table; None where both ends are open."""
    start, end = _pair(date_range)
    path, type_name = _time_column(snapshot)
    column = col(*path)
    if type_name == "string":
        first = _period(snapshot, path[-1], start, is_end=False)
        last = _period(snapshot, path[-1], end, is_end=True)
        return _both(_from(column, first), _up_to(column, last))
    if type_name == "date":
        return _both(_from(column, _day(start)), _up_to(column, _day(end)))
    if type_name not in ("timestamp", "timestamp_ntz"):
        raise InvalidRequestError(
            f"the table's time column {'.'.join(path)} is of type {type_name}",
            _WHERE,
            "give a filter instead",
        )
    start, end = _read(start), _read(end)
    if end is None or isinstance(end, dt.datetime):
        return _both(_from(column, start), _up_to(column, end))
    if end == dt.date.max:
        return _both(_from(column, start), column <= dt.datetime.max)  # noqa: DTZ901 - in the scan's zone
    after = end + dt.timedelta(days=1)
    return _both(_from(column, start), column < dt.datetime(after.year, after.month, after.day))  # noqa: DTZ001 - in the scan's zone


def _time_column(snapshot: Snapshot) -> tuple[tuple[str, ...], str]:
    """Its logical path and type."""
    metadata, schema = snapshot.state.metadata, snapshot.schema
    source = metadata.configuration.get(_SOURCE)
    if source is not None:
        for path in ((source,), tuple(source.split("."))):
            type_name = _type_name(schema, path)
            if type_name is not None:
                return path, type_name
    column = traversal_by_rule(metadata, schema, descending=False).column
    if column is None:
        raise InvalidRequestError(
            "the table has no time column",
            snapshot.storage.root,
            "give a filter on a column of times instead, or set the property lazydelta.time.column",
        )
    names = (column.name,) if len(column.path) == 1 else tuple(column.name.split("."))
    return names, column.type.name


def _type_name(schema: StructType, path: tuple[str, ...]) -> str | None:
    inside: Any = schema  # Any: a type of the schema
    for name in path:
        field = inside.field(name) if isinstance(inside, StructType) else None
        if field is None:
            return None
        inside = field.type
    return inside.name if isinstance(inside, PrimitiveType) else None


def _pair(date_range: DateRange) -> DateRange:
    try:
        start, end = date_range
    except (TypeError, ValueError):
        start = end = 0  # type: ignore[assignment] # refused below
    for side in (start, end):
        if side is not None and not isinstance(side, str | dt.date):
            raise InvalidRequestError(
                f"date_range is {date_range!r}", _WHERE, "give (start, end): dates, times, text or None"
            )
    return start, end


def _read(bound: DateBound) -> dt.date | None:
    """Text as a date or a time."""
    if not isinstance(bound, str):
        return bound
    for read in (dt.date.fromisoformat, dt.datetime.fromisoformat):
        try:
            return read(bound)
        except ValueError:
            continue
    raise InvalidRequestError(
        f"{bound!r} is no date and no time", _WHERE, "write it as in 2026-02-10 or 2026-02-10T22:00:00"
    )


def _day(bound: DateBound) -> dt.date | None:
    read = _read(bound)
    return read.date() if isinstance(read, dt.datetime) else read


def _period(snapshot: Snapshot, name: str, bound: DateBound, *, is_end: bool) -> str | None:
    """The period that a bound lies in, as the column spells it; of a longer one, the first or the last."""
    configuration = snapshot.state.metadata.configuration
    format_ = configuration.get(_FORMAT) or _PERIODS.get(name)
    if bound is None:
        return None
    if isinstance(bound, str) and bound.isdigit():
        return bound.ljust(len(format_ or ""), "9") if is_end else bound
    code = None if format_ is None else _CODES.get(format_)
    if code is None:
        raise InvalidRequestError(
            "the table does not tell how its time column spells a time",
            _WHERE,
            "give both ends as the column has them, or set the property lazydelta.time.format",
        )
    read = _read(bound)
    assert read is not None
    if not isinstance(read, dt.datetime):
        read = dt.datetime.combine(read, dt.time.max if is_end else dt.time.min)
    elif read.tzinfo is not None:
        read = _in_zone(read, configuration.get(_ZONE) or "UTC")
    return read.strftime(code.replace("%Y", f"{read.year:04}"))  # strftime leaves zeros out


def _in_zone(moment: dt.datetime, zone: str) -> dt.datetime:
    try:
        return moment.astimezone(ZoneInfo(zone))
    except OverflowError:
        raise InvalidRequestError(
            f"{moment.isoformat()} lies outside of the years 1 to 9999 in the table's zone, {zone}",
            _WHERE,
            "give None to leave that end open",
        ) from None
    except (ValueError, OSError, ZoneInfoNotFoundError):
        raise InvalidRequestError(
            f"the table's time zone is {zone!r}, which is not known here",
            _WHERE,
            "give both ends as the column has them, or mend the property lazydelta.time.zone",
        ) from None


def _from(column: Column, start: object) -> Expression | None:
    return None if start is None else column >= start


def _up_to(column: Column, end: object) -> Expression | None:
    return None if end is None else column <= end


def _both(first: Expression | None, second: Expression | None) -> Expression | None:
    if first is None or second is None:
        return second if first is None else first
    return first & second
