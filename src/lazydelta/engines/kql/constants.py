"""Parts of a query whose value is known before it runs.

Why: `timestamp > ago(1h)` prunes files only if somebody works the moment out. Contract: what is not certain
to be the value that Kusto gives is no constant; then nothing is concluded from it.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

Node = Any  # Any: of the translation library, which is an extra
Value = bool | int | float | str | dt.datetime | dt.timedelta

_DATETIME = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})(?:[T ](\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,7}))?)?Z?)?\Z", re.ASCII
)
_CLOCK = re.compile(r"(-?)(?:(\d+)\.)?(\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,7}))?)?\Z", re.ASCII)
_SPAN = re.compile(r"(-?\d+(?:\.\d+)?)\s*([a-z]+)\Z", re.ASCII)
_UNITS_US = {
    **dict.fromkeys(("d", "day", "days"), 86_400_000_000),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3_600_000_000),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60_000_000),
    **dict.fromkeys(("s", "sec", "second", "seconds"), 1_000_000),
    **dict.fromkeys(("ms", "milli", "millis", "millisecond", "milliseconds"), 1_000),
    **dict.fromkeys(("micro", "micros", "microsecond", "microseconds"), 1),
}
_DAY = dt.timedelta(days=1)
_MICROSECOND = dt.timedelta(microseconds=1)
EPOCH = dt.datetime(1, 1, 1)  # noqa: DTZ001  # moments of KQL are UTC and say so nowhere


class Constants(msgspec.Struct, frozen=True):
    """What is known while a query is translated."""

    now: dt.datetime  # UTC, without a zone
    parameters: Mapping[str, Any] = {}  # by slot; Any: as DuckDB takes them

    def value(self, node: Node) -> Value | None:
        """What a part of the query is; None: not known."""
        try:
            return self._value(node)
        except (OverflowError, ValueError, ZeroDivisionError):
            return None

    def bounds(self, node: Node) -> tuple[Value, Value] | None:
        """Two values between which the part lies, as close as can be told; None: not known.

        Kusto counts time by 100 nanoseconds, DuckDB by microseconds: `endofday(…)` lies between two of them.
        """
        try:
            return self._bounds(node)
        except (OverflowError, ValueError):  # after 9999
            return None

    def _bounds(self, node: Node) -> tuple[Value, Value] | None:
        from duckdb_kql import ir

        value = self.value(node)
        if value is not None:
            return value, value
        if isinstance(node, ir.FunctionCall) and node.name in _ENDS and len(node.args) == 1:
            inside = self.value(node.args[0])
            if isinstance(inside, dt.datetime):
                after = _STARTS[_ENDS[node.name]].after(inside)
                return after - _MICROSECOND, after
        if isinstance(node, ir.Literal) and node.kind == "datetime":
            cut = moment(str(node.value), is_cut=True)
            return None if cut is None else (cut, cut + _MICROSECOND)
        return None

    def _value(self, node: Node) -> Value | None:  # noqa: PLR0911  # one case per node
        from duckdb_kql import ir

        if isinstance(node, ir.LetRef):  # where a column might hide it, it is none any more (`pruning.py`)
            return self._value(node.value)
        if isinstance(node, ir.Literal):
            return _literal(node)
        if isinstance(node, ir.Parameter):
            return _plain(self.parameters.get(node.slot), node.kind)
        if isinstance(node, ir.UnaryOp) and node.op == "-":
            inner = self._value(node.operand)
            return -inner if isinstance(inner, int | float | dt.timedelta) and not _is_bool(inner) else None
        if isinstance(node, ir.BinaryOp) and node.op in ("+", "-", "*"):
            return _calculated(node.op, self._value(node.left), self._value(node.right))
        if isinstance(node, ir.FunctionCall):
            return self._called(node.name, [self._value(argument) for argument in node.args])
        return None

    def _called(self, name: str, arguments: list[Value | None]) -> Value | None:
        first = arguments[0] if arguments else None
        if name == "now":
            offset = first if arguments else dt.timedelta()
            return self.now + offset if isinstance(offset, dt.timedelta) else None
        if name == "ago" and len(arguments) == 1:
            return self.now - first if isinstance(first, dt.timedelta) else None
        if name in ("datetime", "todatetime") and len(arguments) == 1:
            return (
                first if isinstance(first, dt.datetime) else moment(first) if isinstance(first, str) else None
            )
        if name in ("timespan", "totimespan", "time") and len(arguments) == 1:
            # Text is read in fewer forms there than a literal is.
            return first if isinstance(first, dt.timedelta) else None
        step = step_of(name, arguments[1:])
        return step.start(first) if step is not None and isinstance(first, dt.datetime) else None


class Step(msgspec.Struct, frozen=True):
    """A function that takes moments back to the start of the period that they lie in."""

    start: Callable[[dt.datetime], dt.datetime]
    next: Callable[[dt.datetime], dt.datetime]  # the start after a start

    def after(self, moment: dt.datetime) -> dt.datetime:
        """The start of the next period."""
        return self.next(self.start(moment))


def step_of(name: str, arguments: list[Value | None]) -> Step | None:
    """What `bin(ts, 1h)` or `startofday(ts)` does to a moment; None: that is not known."""
    if name not in ("bin", "floor"):
        return _STARTS.get(name) if not arguments else None
    width = width_of(name, arguments)
    # Longer ones depend on where they are counted from.
    if width is None or _DAY % width:
        return None
    return Step(lambda at: EPOCH + (at - EPOCH) // width * width, lambda at: at + width)


def width_of(name: str, arguments: list[Value | None]) -> dt.timedelta | None:
    """Of the bins of `bin(ts, width)`, in whole seconds: finer ones are subject to rounding."""
    width = arguments[0] if name in ("bin", "floor") and len(arguments) == 1 else None
    if not isinstance(width, dt.timedelta) or width <= dt.timedelta() or width.microseconds:
        return None
    return width


def moment(text: str, *, is_cut: bool = False) -> dt.datetime | None:
    """A text as `datetime(…)` and `todatetime` take it; None where it is of another form.

    None as well where it is finer than a microsecond, unless that is cut off.
    """
    found = _DATETIME.match(text.strip(" "))
    if found is None:
        return None
    year, month, day, hour, minute, second = (int(part or 0) for part in found.groups()[:6])
    micros = int((found[7] or "").ljust(6, "0")[:6]) if is_cut else _micros(found[7])
    if micros is None:
        return None
    return dt.datetime(year, month, day, hour, minute, second, micros)  # noqa: DTZ001  # UTC


def span(text: str) -> dt.timedelta | None:
    """A literal as `timespan(…)` takes it; None where it is of another form or finer than a microsecond."""
    text = text.strip().lower()
    found = _SPAN.match(text)
    if found is not None and found[2] in _UNITS_US:
        micros = float(found[1]) * _UNITS_US[found[2]]
        return (
            dt.timedelta(microseconds=int(micros)) if micros == int(micros) and abs(micros) < 2**53 else None
        )
    clock = _CLOCK.match(text)
    if clock is None or (fraction := _micros(clock[6])) is None:
        return dt.timedelta(days=int(text)) if text.isdecimal() else None
    days, hours, minutes, seconds = (int(part or 0) for part in clock.groups()[1:5])
    found_span = dt.timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds, microseconds=fraction)
    return -found_span if clock[1] else found_span


def _month(at: dt.datetime) -> dt.datetime:
    return dt.datetime(at.year, at.month, 1)  # noqa: DTZ001  # UTC


def _day(at: dt.datetime) -> dt.datetime:
    return dt.datetime(at.year, at.month, at.day)  # noqa: DTZ001  # UTC


_STARTS = {
    "startofday": Step(_day, lambda at: at + _DAY),
    # Kusto's weeks begin on Sundays.
    "startofweek": Step(
        lambda at: _day(at) - dt.timedelta(days=(at.weekday() + 1) % 7), lambda at: at + dt.timedelta(days=7)
    ),
    "startofmonth": Step(_month, lambda at: _month(at + dt.timedelta(days=31))),
    "startofyear": Step(
        lambda at: dt.datetime(at.year, 1, 1),  # noqa: DTZ001  # UTC
        lambda at: dt.datetime(at.year + 1, 1, 1),  # noqa: DTZ001  # UTC
    ),
}
_ENDS = {f"endof{period}": f"startof{period}" for period in ("day", "week", "month", "year")}


def _literal(node: Node) -> Value | None:
    value, kind = node.value, node.kind
    if value is None:
        return None
    if kind == "datetime":
        return moment(str(value))
    if kind == "timespan":
        return span(str(value))
    return _plain(value, kind)


def _plain(value: Any, kind: str) -> Value | None:  # noqa: PLR0911  # one case per type; Any: of any type
    """A value, where Python has the same."""
    if kind in ("int", "long") and isinstance(value, int) and not _is_bool(value):
        return value
    if kind == "real" and isinstance(value, int | float) and not _is_bool(value):
        return float(value)
    if kind == "bool" and isinstance(value, bool):
        return value
    if kind == "string" and isinstance(value, str):
        return value
    if kind == "datetime" and isinstance(value, dt.datetime):
        return value if value.tzinfo is None else value.astimezone(dt.UTC).replace(tzinfo=None)
    if kind == "timespan" and isinstance(value, dt.timedelta):
        return value
    return None


def _calculated(  # noqa: PLR0911  # one case per pair of types
    operator: str, left: Value | None, right: Value | None
) -> Value | None:
    if isinstance(left, dt.datetime) and isinstance(right, dt.timedelta):
        return {"+": left + right, "-": left - right}.get(operator)
    if isinstance(left, dt.timedelta) and isinstance(right, dt.datetime):
        return right + left if operator == "+" else None
    if isinstance(left, dt.datetime) and isinstance(right, dt.datetime):
        return left - right if operator == "-" else None
    if isinstance(left, dt.timedelta) and isinstance(right, dt.timedelta):
        return {"+": left + right, "-": left - right}.get(operator)
    if operator == "*" and isinstance(left, dt.timedelta) and isinstance(right, int):
        return left * right
    if operator == "*" and isinstance(left, int) and isinstance(right, dt.timedelta):
        return right * left
    return None


def _micros(digits: str | None) -> int | None:
    """Of a fraction of a second; None where it is finer."""
    padded = (digits or "").ljust(7, "0")
    return int(padded[:6]) if padded[6] == "0" else None


def _is_bool(value: object) -> bool:
    return isinstance(value, bool)
