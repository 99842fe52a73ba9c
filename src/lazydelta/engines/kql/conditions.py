"""What the first operators after a table ask of its rows, as a condition that can be pushed into the scan.

Why: the translation library writes `coalesce(x = 'a', false)` and the like, and KQL's columns are made from
the table's; of that DuckDB pushes nothing. Contract: one-sided. The condition is true wherever all of those
operators let a row pass, and speaks of the table's own columns; the operators themselves stay as they are.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from lazydelta.engines.kql.constants import Constants, Value, step_of, width_of
from lazydelta.engines.session import spelled, text_literal

Node = Any  # Any: of the translation library, which is an extra
Bounds = tuple[Value, Value]

_TURNED = {"==": "==", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
_SQL = {"==": "=", "<": "<", ">": ">", "<=": "<=", ">=": ">="}
_LONG = 1 << 63
_EXACT_DOUBLES = 2**53  # whole numbers up to here are doubles; from here on, several are the same one
_OR_NULL = re.compile(r"\A\((.+) or (\".+\") is null\)\Z", re.DOTALL)
_SURROGATES = (0xD800, 0xE000)  # no characters
_MEMBERS_MAX = 1000  # of a list; a longer one is left to DuckDB


class Conditions(msgspec.Struct, frozen=True):
    """Reads predicates over one table."""

    schema: pa.Schema
    constants: Constants

    def of(self, predicate: Node) -> str | None:  # noqa: PLR0911  # one case per node
        """What the predicate implies; None: nothing that is known."""
        from duckdb_kql import ir

        if isinstance(predicate, ir.BinaryOp):
            if predicate.op in ("and", "or"):
                return self._joined(predicate)
            if predicate.op in _TURNED:
                return self._compared(predicate.op, predicate.left, predicate.right)
            if predicate.op == "startswith_cs":
                return self._prefixed(predicate)
        if isinstance(predicate, ir.Between) and not predicate.negated:
            return self._between(predicate)
        if isinstance(predicate, ir.InList):
            return self._listed(predicate)
        if isinstance(predicate, ir.ColumnRef) and self._kind(predicate) == pa.bool_():
            return spelled(predicate.name)
        return None

    def _joined(self, node: Node) -> str | None:
        parts = [self.of(part) for part in _flat(node, node.op)]
        told = [part for part in parts if part is not None]
        if node.op == "and":
            return all_of(told)
        return "(" + " or ".join(told) + ")" if len(told) == len(parts) else None

    def _between(self, node: Node) -> str | None:
        high = node.high
        if isinstance(self.constants.value(high), dt.timedelta):  # from low on, for so long
            from duckdb_kql import ir

            high = ir.BinaryOp("+", node.low, high)
        return all_of([self._compared(">=", node.value, node.low), self._compared("<=", node.value, high)])

    def _listed(self, node: Node) -> str | None:
        if node.negated or node.case_insensitive or node.subquery is not None:
            return None
        if not 0 < len(node.items) <= _MEMBERS_MAX:
            return None
        parts = [self._compared("==", node.value, item) for item in node.items]
        told = [part for part in parts if part is not None]
        return "(" + " or ".join(told) + ")" if len(told) == len(parts) else None

    def _prefixed(self, node: Node) -> str | None:
        prefix = self.constants.value(node.right)
        if not isinstance(prefix, str) or not prefix or not self._is_text(node.left):
            return None
        column, after = spelled(node.left.name), _after(prefix)
        low = f"{column} >= {text_literal(prefix)}"
        return low if after is None else f"({low} and {column} < {text_literal(after)})"

    def _compared(self, operator: str, left: Node, right: Node) -> str | None:
        bounds = self.constants.bounds(right)
        if bounds is None:
            left, operator, bounds = right, _TURNED[operator], self.constants.bounds(left)
        return None if bounds is None else self._bounded(left, operator, bounds)

    def _bounded(self, node: Node, operator: str, bounds: Bounds) -> str | None:
        """What `node operator constant` implies, where the constant lies between two values."""
        from duckdb_kql import ir

        if isinstance(node, ir.ColumnRef):
            return self._column(node, operator, bounds)
        try:
            if isinstance(node, ir.FunctionCall) and node.args:
                return self._stepped(node, operator, bounds)
            if isinstance(node, ir.BinaryOp) and node.op in ("+", "-"):
                return self._moved(node, operator, bounds)
        except (OverflowError, ValueError):  # before the year 1, or after 9999
            return None
        return None

    def _stepped(self, node: Node, operator: str, bounds: Bounds) -> str | None:
        """`bin(ts, 1h) >= c` is `ts >= c`: the start of a period is never after what lies in it."""
        low, high = bounds
        if not isinstance(low, dt.datetime) or not isinstance(high, dt.datetime):
            return None
        arguments = [self.constants.value(argument) for argument in node.args[1:]]
        step, width = step_of(node.name, arguments), width_of(node.name, arguments)
        if step is None and width is None:
            return None
        if step is not None:
            is_start = step.start(high) == high
            end = high if operator == "<" and is_start else step.after(high)
        else:
            assert width is not None
            end = high + width
        parts = []
        if operator in (">", ">=", "=="):
            parts.append(self._bounded(node.args[0], ">=" if operator == "==" else operator, (low, low)))
        if operator in ("<", "<=", "=="):
            parts.append(self._bounded(node.args[0], "<", (end, end)))
        return all_of(parts)

    def _moved(self, node: Node, operator: str, bounds: Bounds) -> str | None:
        """`ts + 1h > c` is `ts > c - 1h`, and `now() - ts < 1h` is `ts > now() - 1h`."""
        low, high = bounds
        by, whole = self.constants.value(node.right), self.constants.value(node.left)
        if isinstance(by, dt.timedelta) and isinstance(low, dt.datetime) and isinstance(high, dt.datetime):
            by = by if node.op == "+" else -by
            return self._bounded(node.left, operator, (low - by, high - by))
        if not isinstance(low, dt.timedelta) or not isinstance(high, dt.timedelta):
            return None
        if node.op == "-" and isinstance(whole, dt.datetime):
            return self._bounded(node.right, _TURNED[operator], (whole - high, whole - low))
        if node.op == "-" and isinstance(by, dt.datetime):
            return self._bounded(node.left, operator, (by + low, by + high))
        return None

    def _column(self, node: Node, operator: str, bounds: Bounds) -> str | None:
        kind, column = self._kind(node), spelled(node.name)
        if kind is None:
            return None
        write = _writer(kind)
        if write is None:
            return None
        low, high = bounds
        if operator == "==" and low == high:
            value = write(low, "==")
            told = None if value is None else f"{column} = {value}"
        elif operator == "==":
            told = None
        else:
            value = write(high if operator in ("<", "<=") else low, operator)
            told = None if value is None else f"{column} {_SQL[_loose(operator, kind)]} {value}"
        if told is None or not pa.types.is_string(kind):
            return told
        # A text that is null is empty in KQL.
        is_empty_in = operator == "<=" or (high != "" if operator == "<" else low == "" and operator != ">")
        return f"({told} or {column} is null)" if is_empty_in else told

    def _kind(self, node: Node) -> pa.DataType | None:
        index = self.schema.get_field_index(node.name)
        return None if index < 0 else self.schema.field(index).type

    def _is_text(self, node: Node) -> bool:
        from duckdb_kql import ir

        return isinstance(node, ir.ColumnRef) and self._kind(node) == pa.string()


def all_of(parts: Sequence[str | None]) -> str | None:
    """All of the conditions that are there, in brackets; None: there is none.

    Where one of them rules null out, another need not let it in: bounds of one column are pushed as a range.
    """
    told = [part for part in dict.fromkeys(parts) if part is not None]
    for at, part in enumerate(told):
        found = _OR_NULL.match(part)
        if found is not None and any(_rules_null_out(other, found[2]) for other in told):
            told[at] = found[1]
    return None if not told else told[0] if len(told) == 1 else "(" + " and ".join(told) + ")"


def conjuncts(predicate: Node) -> list[Node]:
    """The parts of `a and b and c`, all of which must hold."""
    return list(_flat(predicate, "and"))


def _rules_null_out(condition: str, column: str) -> bool:
    return condition.startswith((f"{column} > ", f"{column} >= ", f"{column} = "))


def _loose(operator: str, kind: pa.DataType) -> str:
    """Dates are compared by whole days, which are rounded outwards."""
    return operator if not pa.types.is_date(kind) else {"<": "<=", ">": ">="}.get(operator, operator)


def _writer(kind: pa.DataType) -> Callable[[Value, str], str | None] | None:
    """How a constant is written that such a column is compared with; None: such columns are not pushed."""
    types = pa.types
    for is_kind, write in (
        (types.is_string, _text),
        (types.is_boolean, _boolean),
        (types.is_integer, _whole),
        (types.is_float64, _real),
        (types.is_date, _date),
    ):
        if is_kind(kind):
            return write
    if types.is_timestamp(kind):
        return _instant if kind.tz is not None else _clock
    return None


def _text(value: Value, _: str) -> str | None:
    return text_literal(value) if isinstance(value, str) and "\0" not in value else None


def _boolean(value: Value, operator: str) -> str | None:
    return str(value).lower() if isinstance(value, bool) and operator == "==" else None


def _whole(value: Value, operator: str) -> str | None:
    """A whole number; one with a fraction is rounded outwards."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    if isinstance(value, float) and operator == "==" and value != math.floor(value):
        return None
    if isinstance(value, float) and abs(value) >= _EXACT_DOUBLES:
        return None
    number = math.floor(value) if operator in (">", ">=", "==") else math.ceil(value)
    return str(number) if -_LONG <= number < _LONG else None


def _real(value: Value, _: str) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > _EXACT_DOUBLES:
        return None
    return f"{float(value)!r}::double" if math.isfinite(value) else None


def _instant(value: Value, _: str) -> str | None:
    return f"timestamptz '{value.isoformat(' ')}+00'" if isinstance(value, dt.datetime) else None


def _clock(value: Value, _: str) -> str | None:
    return f"timestamp '{value.isoformat(' ')}'" if isinstance(value, dt.datetime) else None


def _date(value: Value, operator: str) -> str | None:
    if not isinstance(value, dt.datetime):
        return None
    day = dt.datetime(value.year, value.month, value.day)  # noqa: DTZ001  # UTC
    if operator == "==" and day != value:
        return None
    return f"date '{day.date().isoformat()}'"


def _after(prefix: str) -> str | None:
    """The first text after all that begin so, by code points as by bytes; None: there is none."""
    last = ord(prefix[-1]) + 1
    last = _SURROGATES[1] if last == _SURROGATES[0] else last
    return prefix[:-1] + chr(last) if last <= sys.maxunicode else None


def _flat(node: Node, operator: str) -> Iterator[Node]:
    """The parts of `a and b and c`, which are nested."""
    from duckdb_kql import ir

    waiting = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, ir.BinaryOp) and part.op == operator:
            waiting += [part.right, part.left]
        else:
            yield part
