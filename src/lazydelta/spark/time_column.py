"""The generated time column: an event time becomes the text of its period, `2026021014` for an hour.

Contract: expressions only, no data is touched. Nothing depends on the session's time zone. Text and
numbers become timestamps in microseconds (finer digits are cut); timestamps, timestamps without zone and
dates stay as they are. A row whose time is null, cannot be read or lies outside the years 1 to 9999 gets
a reason instead of a period.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import msgspec

from lazydelta.errors import InvalidRequestError
from lazydelta.spark.quoting import quoted, quoted_path
from lazydelta.spark.record_columns import INTERNAL_PREFIX, RAW_TEXT, REASON

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from lazydelta.spark.config import IngestConfig

# Granularity -> (format, characters of `2026-02-10 14:00:00` that tell the period).
PERIODS = {
    "month": ("yyyyMM", 7),
    "day": ("yyyyMMdd", 10),
    "hour": ("yyyyMMddHH", 13),
    "minute": ("yyyyMMddHHmm", 16),
    "second": ("yyyyMMddHHmmss", 19),
}
NULL_TIME = "event time is null"
BAD_TIME = "event time cannot be read"
FAR_TIME = "event time is outside the years 1 to 9999"

_ISO = r"^\s*\d{4}-\d{1,2}-\d{1,2}([T ].*)?$"
_ZONE = r"(Z|z|UTC|GMT|UT|[+-]\d{1,2}(:?\d{2}){0,2}|[A-Z][A-Za-z_]+/[A-Za-z_/+-]+)"
_ZONED = rf"^\d{{4}}-\d{{1,2}}-\d{{1,2}}[T ]\d{{1,2}}(:\d{{1,2}}){{0,2}}([.]\d+)?\s*{_ZONE}$"
_UNITS = {"s": 1_000_000, "ms": 1_000, "us": 1}
_TIMES = "a timestamp, a date, text, or a number with --event-time-unit"


class DatedFrame(msgspec.Struct, frozen=True, kw_only=True):
    """Rows with their period. `event_time` is the path of the source column, in the frame's spelling."""

    frame: Any  # DataFrame; Any: importing it would load PySpark
    event_time: list[str]
    period: str


def with_period(frame: DataFrame, config: IngestConfig) -> DatedFrame:
    """`frame` with the period column, the event time as it is stored, and why a row has no period.

    Columns `REASON` and `RAW_TEXT` that are there already (malformed records, source text) win. Rows with a
    reason keep their text: the source's own, else the row as JSON with the event time as it came.
    """
    from pyspark.sql import functions as fn

    _check_zone(frame, config.time_zone)
    path = _event_time_path(frame, config.event_time)
    raw = column_of(path)
    moment, wall = _moment_and_wall(raw, frame.select(raw).schema[0].dataType, config)
    period = _period_text(wall, config.granularity)
    is_in_range = fn.year(wall).between(1, 9999)
    why = fn.when(raw.isNull(), NULL_TIME).when(wall.isNull(), BAD_TIME).when(~is_in_range, FAR_TIME)
    if REASON in frame.columns:
        why = fn.coalesce(fn.col(REASON), why)
    text = fn.to_json(fn.struct(*_source_columns(frame)), {"ignoreNullFields": "false"})
    if RAW_TEXT in frame.columns:
        text = fn.coalesce(fn.col(RAW_TEXT), text)
    columns = {
        REASON: why,
        RAW_TEXT: fn.when(why.isNotNull(), text),
        config.time_column_name: fn.when(why.isNull(), period),
    }
    if moment is not None:
        top = fn.col(quoted(path[0]))
        nested = quoted_path(path[1:])
        columns[path[0]] = top.withField(nested, moment) if nested else moment
    return DatedFrame(frame=frame.withColumns(columns), event_time=path, period=config.time_column_name)


def _event_time_path(frame: DataFrame, name: str) -> list[str]:
    """The path of the column that `name` means: a column of that very name, else a field by its dots."""
    from pyspark.sql.types import StructType

    found = _field(frame.schema, name)
    if found is not None:
        return [found]
    path: list[str] = []
    level: Any = frame.schema
    for part in name.split("."):
        field = _field(level, part) if isinstance(level, StructType) else None
        if field is None:
            break
        path.append(field)
        level = level[field].dataType
    else:
        return path
    columns = [column for column in frame.columns if not column.startswith(INTERNAL_PREFIX)]
    close = get_close_matches(name, columns, 1, 0.5)
    hint = f"did you mean {close[0]}?" if close else f"there are: {', '.join(columns[:30])}"
    raise InvalidRequestError(f"the source has no event-time column {name!r}", "--event-time", hint)


def column_of(path: list[str]) -> Column:
    """The column at a path."""
    from pyspark.sql import functions as fn

    return fn.col(quoted_path(path))


def _check_zone(frame: DataFrame, zone: str) -> None:
    """Java's zones are of another year than Python's; Spark raises before a table is made for one."""
    jvm: Any = frame.sparkSession._jvm  # Any: objects of the JVM
    jvm.org.apache.spark.sql.catalyst.util.DateTimeUtils.getZoneId(zone)


def _source_columns(frame: DataFrame) -> list[Column]:
    from pyspark.sql import functions as fn

    return [fn.col(quoted(name)) for name in frame.columns if name not in (RAW_TEXT, REASON)]


def _field(schema: Any, name: str) -> str | None:  # Any: StructType
    names: list[str] = schema.fieldNames()
    if name in names:
        return name
    return next((one for one in names if one.lower() == name.lower()), None)


def _moment_and_wall(raw: Column, kind: Any, config: IngestConfig) -> tuple[Column | None, Column]:
    """(what is stored instead of the raw value or None, the wall clock in the zone as timestamp_ntz)."""
    from pyspark.sql import types as ty

    zone = config.time_zone
    match kind:
        case ty.TimestampType():
            return None, _wall_of(raw, zone)
        case ty.TimestampNTZType():
            return None, raw
        case ty.DateType():
            return None, raw.cast(ty.TimestampNTZType())
        case ty.StringType() | ty.VarcharType() | ty.CharType():
            moment = _parsed(raw, config)
            return moment, _wall_of(moment, zone)
        case ty.NumericType() if config.event_time_unit is not None:
            moment = _counted(raw, config.event_time_unit)
            return moment, _wall_of(moment, zone)
        case ty.NumericType():
            raise InvalidRequestError(
                f"the event-time column {config.event_time!r} is a number ({kind.simpleString()})",
                "--event-time",
                "say what it counts since 1970: --event-time-unit s, ms, us or ns",
            )
    raise InvalidRequestError(
        f"the event-time column {config.event_time!r} is no time, but {kind.simpleString()}",
        "--event-time",
        f"name a column that is {_TIMES}",
    )


def _parsed(raw: Column, config: IngestConfig) -> Column:
    """Text as a timestamp; without a zone of its own it is wall clock in the configured zone."""
    from pyspark.sql import functions as fn

    if config.event_time_format is not None:
        pattern = config.event_time_format
        if _has_zone(pattern):
            return fn.try_to_timestamp(raw, fn.lit(pattern))
        text = fn.concat(fn.trim(raw), fn.lit(" UTC"))
        as_utc = fn.try_to_timestamp(text, fn.lit(f"{pattern} VV"))
        return _moment_of(_wall_of(as_utc, "UTC"), config.time_zone)
    text = fn.trim(raw)
    wall = _moment_of(text.try_cast("timestamp_ntz"), config.time_zone)
    return fn.when(text.rlike(_ZONED), text.try_cast("timestamp")).when(text.rlike(_ISO), wall)


def _counted(raw: Column, unit: str) -> Column:
    """A number since 1970 as a timestamp, null where it is no such number."""
    from pyspark.sql import functions as fn

    if unit == "ns":
        micros = fn.floor(raw.try_cast("decimal(38,6)") / fn.lit(1000))
    else:
        micros = fn.floor(fn.try_multiply(raw.try_cast("decimal(30,6)"), fn.lit(_UNITS[unit])))
    return fn.timestamp_micros(micros.try_cast("bigint"))


def _wall_of(moment: Column, zone: str) -> Column:
    """What clocks in `zone` show, whatever the session's zone is."""
    from pyspark.sql import functions as fn

    utc = fn.timestamp_add("MICROSECOND", fn.unix_micros(moment), _epoch())
    return utc if zone == "UTC" else fn.convert_timezone(fn.lit("UTC"), fn.lit(zone), utc)


def _moment_of(wall: Column, zone: str) -> Column:
    from pyspark.sql import functions as fn

    utc = wall if zone == "UTC" else fn.convert_timezone(fn.lit(zone), fn.lit("UTC"), wall)
    return fn.timestamp_micros(fn.timestamp_diff("MICROSECOND", _epoch(), utc))


def _epoch() -> Column:
    from pyspark.sql import functions as fn

    return fn.lit("1970-01-01 00:00:00").cast("timestamp_ntz")


def _period_text(wall: Column, granularity: str) -> Column:
    from pyspark.sql import functions as fn

    length = PERIODS[granularity][1]
    return fn.translate(fn.substring(wall.cast("string"), 1, length), "- :", "")


def _has_zone(pattern: str) -> bool:
    outside = "".join(pattern.split("'")[::2])
    return any(letter in "XxZzVO" for letter in outside)
