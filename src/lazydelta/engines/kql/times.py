"""Functions of times that the library answers otherwise than Kusto documents: parts, differences, formats,
and moments read from text.

Contract: text is read in the forms that docs/kql.md lists, and is null in any other, as in one with a year of
two digits whose century is not certain. A format with a run of letters that Kusto does not have is refused.
"""

from __future__ import annotations

import re

from duckdb_kql import ir
from duckdb_kql.errors import KqlUnsupportedError
from duckdb_kql.translate import (
    _render_datetime_diff,
    _render_datetime_part,
    _render_format_datetime,
    constant_string,
    render_expr,
)

from lazydelta.engines.kql.kinds import kind_of

_CLOCK = r"(?:[01]?\d|2[0-3]):\d{2}(?::\d{2}(?:\.\d{1,9})?)?"
_DATE = r"(?:\d{4}-\d{1,2}-\d{1,2}|\d{4}/\d{1,2}/\d{1,2})"
_ISO = rf"{_DATE}([T ]{_CLOCK}\s*(Z|UTC|[+-]\d{{2}}(:?\d{{2}})?)?)?"
_TIME = r" \d{1,2}:\d{2}(:\d{2})?"
_DAYS = "Mon|Tue|Wed|Thu|Fri|Sat|Sun|Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday"
# Both of the rules that .NET has had for the century give these years the same one.
_CERTAIN_YEAR = r"(?:[012]\d|69|[789]\d)"
_OF_A_SECOND = {"millisecond": 1_000, "microsecond": 1_000_000}
_LONGEST_RUNS = {**dict.fromkeys("dhHmMst", 2), "y": 4, "f": 7, "F": 7}
_MICROSECONDS = (60_000_000, 3_600_000_000, 86_400_000_000)  # of a minute, an hour, a day
_RUN = re.compile(r"([A-Za-z])\1*")


def _formats(date: str) -> str:
    return f"['{date}', '{date} %H:%M', '{date} %H:%M:%S']"


MACROS: dict[str, tuple[str, ...]] = {
    # `Saturday, 08-Nov-14 15:05:02 GMT` without its day and zone, and with blanks.
    "_plain_date": (
        f"(s) AS regexp_replace(regexp_replace(regexp_replace(trim(s), '^(?i:{_DAYS}), ', ''), "
        "'(:\\d{2}) (?:GMT|UTC|Z)$', '\\1'), '^(\\d{1,2})-([A-Za-z]{3})-', '\\1 \\2 ')",
    ),
    "_written_date": (
        f"(s) AS CASE WHEN regexp_full_match(s, '\\d{{1,2}} [A-Za-z]{{3}} \\d{{4}}({_TIME})?') "
        f"THEN try_strptime(s, {_formats('%d %b %Y')}) "
        f"WHEN regexp_full_match(s, '\\d{{1,2}} [A-Za-z]{{3}} {_CERTAIN_YEAR}{_TIME}') "
        f"THEN try_strptime(s, {_formats('%d %b %y')}) "
        f"WHEN regexp_full_match(s, '\\d{{1,2}}-\\d{{1,2}}-\\d{{4}}({_TIME})?') "
        f"THEN try_strptime(s, {_formats('%m-%d-%Y')}) "
        f"WHEN regexp_full_match(s, '\\d{{1,2}}/\\d{{1,2}}/\\d{{4}}({_TIME})?') "
        f"THEN try_strptime(s, {_formats('%m/%d/%Y')}) "
        "WHEN regexp_full_match(s, '\\d{1,2}\\.\\d{1,2}\\.\\d{4}') THEN try_strptime(s, '%m.%d.%Y') "
        "WHEN regexp_full_match(s, '[A-Za-z]{3} \\d{1,2}, \\d{4}') THEN try_strptime(s, '%b %d, %Y') "
        "WHEN regexp_full_match(s, '\\d{8}') THEN try_strptime(s, '%Y%m%d') END",
    ),
    "_moment_of_text": (
        f"(s) AS CASE WHEN starts_with(ltrim(s), '0000') THEN NULL WHEN regexp_full_match(trim(s), '{_ISO}') "
        "THEN TRY_CAST(trim(s) AS TIMESTAMPTZ) AT TIME ZONE 'UTC' "
        "ELSE kql__written_date(kql__plain_date(s)) END",
    ),
}


def to_datetime(node: ir.FunctionCall) -> str | None:
    """`todatetime` of text, or of what a dynamic holds."""
    if len(node.args) != 1 or kind_of(node.args[0]) == "datetime":
        return None
    value = render_expr(node.args[0])
    text = value if kind_of(node.args[0]) == "string" else f"(to_json({value}) ->> '$')"
    return f"kql__moment_of_text({text})"


def datetime_part(node: ir.FunctionCall) -> str | None:
    """A part as an int; those of a second do not count the seconds."""
    if len(node.args) != 2 or not isinstance(node.args[0], ir.Literal):
        return None
    part = _render_datetime_part(node)
    modulus = _OF_A_SECOND.get(str(node.args[0].value).lower())
    return f"CAST({part}{f' % {modulus}' if modulus else ''} AS INTEGER)"


def datetime_diff(node: ir.FunctionCall) -> str | None:
    """Kusto's weeks begin on Sundays; the first of January of the year 1 was a Monday."""
    sql: str = _render_datetime_diff(node)
    if str(getattr(node.args[0], "value", "")).lower() != "week":
        return sql
    first = "TIMESTAMP '0001-01-01'"
    later, earlier = (f"((date_diff('day', {first}, {render_expr(arg)}) + 1) // 7)" for arg in node.args[1:])
    return f"({later} - {earlier})"


def format_datetime(node: ir.FunctionCall) -> str | None:
    """The library splits a run that is too long into several parts."""
    form = constant_string(node.args[1]) if len(node.args) == 2 else None
    for run in _RUN.finditer(form or ""):
        if len(run[0]) > _LONGEST_RUNS.get(run[1], 0) or run[0] in ("yyy", "t"):
            raise KqlUnsupportedError(
                "function:format_datetime",
                hint=f"{run[0]} is no part of a format: there are no such in Kusto",
            )
    sql: str = _render_format_datetime(node)
    return sql


def make_datetime(node: ir.FunctionCall) -> str | None:
    """Of parts that make no moment it is null."""
    if len(node.args) not in (3, 4, 5, 6):
        return None
    year, *others = (f"CAST({render_expr(arg)} AS BIGINT)" for arg in node.args[:5])
    whole = ", ".join([year, *others, *["0"] * (4 - len(others)), "0.0"])
    if len(node.args) < 6:
        return f"CASE WHEN {year} BETWEEN 1 AND 9999 THEN TRY(make_timestamp({whole})) END"
    second = _second(node.args[5])
    return (
        f"CASE WHEN {year} BETWEEN 1 AND 9999 AND {second} >= 0 AND {second} < 60 "
        f"THEN TRY(make_timestamp({whole})) + to_microseconds({_ticks(second)} // 10) END"
    )


def make_timespan(node: ir.FunctionCall) -> str:
    """`([day,] hour, minute[, second])`; of parts out of their range it is null."""
    if len(node.args) not in (2, 3, 4):
        raise KqlUnsupportedError("function:make_timespan", hint="takes 2, 3 or 4 arguments")
    days = node.args[:1] if len(node.args) == 4 else ()
    hour, minute, *rest = node.args[len(days) :]
    whole = [f"CAST({render_expr(arg)} AS BIGINT)" for arg in (*days, hour, minute)]
    second = _second(rest[0]) if rest else "0.0"
    ranges = [
        *(f"{day} BETWEEN 0 AND 10675198" for day in whole[:-2]),
        f"{whole[-2]} BETWEEN 0 AND 23 AND {whole[-1]} BETWEEN 0 AND 59 AND {second} >= 0 AND {second} < 60",
    ]
    micros = " + ".join(
        f"{part} * {size}" for part, size in zip(reversed(whole), _MICROSECONDS, strict=False)
    )
    told = "error('make_timespan: a timespan is kept to the microsecond here')"
    return (
        f"CASE WHEN NOT ({' AND '.join(ranges)}) THEN NULL WHEN {_ticks(second)} % 10 <> 0 THEN {told} "
        f"ELSE to_microseconds({micros} + {_ticks(second)} // 10) END"
    )


def _second(node: ir.Expr) -> str:
    return f"CAST({render_expr(node)} AS DOUBLE)"


def _ticks(second: str) -> str:
    return f"CAST(round({second} * 10000000) AS BIGINT)"
