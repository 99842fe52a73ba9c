"""`make-series`: aggregates by equal steps of an axis, as arrays with defaults where nothing is.

Contract: the axis begins at `from`, or at the first step of its series that has a row; it ends before `to`,
or with the last step of its series that has one. A series longer than Kusto's arrays is an error, never cut.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from duckdb_kql import ir, lower
from duckdb_kql.errors import KqlUnsupportedError
from duckdb_kql.parser import parse
from duckdb_kql.translate import (
    naming,
    quote_ident,
    render_aggregate,
    render_expr,
)
from duckdb_kql.translate.functions import lookup_aggregate

from lazydelta.engines.kql.kinds import is_timespan
from lazydelta.engines.kql.mends import bins_from
from lazydelta.engines.kql.operators import AddedOperator, columns, rendered
from lazydelta.engines.kql.trees import nodes_of

STEPS_MAX = 1_048_576
_KIND_OF_AXIS = "(SELECT max(kql_kind) FROM kql_steps)"
_DEFAULT = re.compile(r"\bdefault\s*=", re.IGNORECASE)
_KIND = re.compile(r"^\s*make-series\s*(?:kind\s*=\s*(\w+)\s*)?", re.IGNORECASE)


@dataclass(frozen=True)
class MakeSeries(AddedOperator):
    """The operator, read."""

    aggregates: tuple[ir.NamedExpr, ...]
    defaults: tuple[ir.Expr, ...]
    axis: ir.NamedExpr
    start: ir.Expr | None
    stop: ir.Expr | None
    step: ir.Expr
    by: tuple[ir.NamedExpr, ...] = ()
    is_nonempty: bool = False


def read(node: Any, text_of: Callable[[Any], str]) -> MakeSeries:  # Any: ANTLR's trees have no types
    """The operator at a node. The grammar takes `name = f(x)` for an option: these are read from the text."""
    text = text_of(node)
    kids = lower._rule_children(node)
    clauses = {lower._cls(kid): kid for kid in kids}
    on = clauses.get("MakeSeriesOperatorOnClause")
    steps = clauses.get("MakeSeriesOperatorFromToStepClause")
    if "MakeSeriesOperatorInRangeClause" in clauses:
        raise KqlUnsupportedError(
            "make-series … in range(…)", span=lower._span(node), hint="write from … to … step …"
        )
    if on is None or steps is None:
        raise KqlUnsupportedError("make-series", span=lower._span(node), hint="it needs `on` and `step`")
    kind = _KIND.match(text)
    head = text[kind.end() if kind else 0 : on.start.start - node.start.start]
    aggregates, defaults = [], []
    for part in _parted(head):
        found = _DEFAULT.search(part)
        aggregates.append(_expression(part[: found.start()] if found else part))
        defaults.append(_expression(part[found.end() :]).expr if found else ir.Literal(0, "long"))
    by = clauses.get("MakeSeriesOperatorByClause")
    bounds = _bounds(text_of(steps))
    return MakeSeries(
        tuple(aggregates),
        tuple(defaults),
        lower._lower_named(lower._rule_children(on)[0]),
        _scalar(bounds.get("from")),
        _scalar(bounds.get("to")),
        _expression(bounds["step"]).expr,
        tuple(lower._lower_named(kid) for kid in lower._rule_children(by)) if by is not None else (),
        is_nonempty=bool(kind and (kind[1] or "").lower() == "nonempty"),
    )


def _parted(text: str) -> Iterator[str]:
    """The parts between commas that stand in no bracket and no text."""
    depth, quote, begun = 0, "", 0
    for at, character in enumerate(text):
        if quote:
            quote = "" if character == quote and text[at - 1] != "\\" else quote
        elif character in "'\"":
            quote = character
        elif character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif character == "," and not depth:
            yield text[begun:at]
            begun = at + 1
    if text[begun:].strip():
        yield text[begun:]


def _bounds(text: str) -> dict[str, str]:
    """`from a to b step c` by its words."""
    found = re.match(
        r"(?:from\s+(?P<from>.+?)\s+)?(?:to\s+(?P<to>.+?)\s+)?step\s+(?P<step>.+)$", text.strip(), re.DOTALL
    )
    if found is None:
        raise KqlUnsupportedError("make-series", hint="from … to … step … is expected")
    return {name: part for name, part in found.groupdict().items() if part}


def _expression(text: str) -> ir.NamedExpr:
    tree = parse(f"print {text.strip()}").tree
    found = lower._find_all(tree, "PrintOperator")
    return lower._lower_named(lower._rule_children(found[0])[0])


def _scalar(text: str | None) -> ir.Expr | None:
    return _expression(text).expr if text is not None else None


@columns.register
def _(op: MakeSeries, _cols: list[str]) -> list[str]:
    return [*_names(op.by), *_names(op.aggregates), *_names((op.axis,))]


@rendered.register
def _(op: MakeSeries, prev: str, _cols: list[str] | None) -> str:
    keys = [quote_ident(name) for name in _names(op.by)]
    totals = [quote_ident(name) for name in _names(op.aggregates)]
    (axis,) = (quote_ident(name) for name in _names((op.axis,)))
    matched = [f"kql_steps.{key} IS NOT DISTINCT FROM kql_places.{key}" for key in keys]
    selected = [
        *(f"kql_places.{key} AS {key}" for key in keys),
        *(f"{_list(total, default)} AS {total}" for total, default in zip(totals, op.defaults, strict=True)),
        f"to_json(list({_shown(op)} ORDER BY kql_place)) AS {axis}",
    ]
    grouped = f"GROUP BY {', '.join(f'kql_places.{key}' for key in keys)}" if keys else "HAVING count(*) > 0"
    return (
        f"WITH kql_steps AS ({_steps(op, prev, keys, totals)}), kql_series AS ({_series(op, keys)}), "
        f"kql_places AS ({_places(op, keys)}) SELECT {', '.join(selected)} FROM kql_places "
        f"LEFT JOIN kql_steps ON {' AND '.join(['kql_steps.kql_at = kql_place', *matched])} {grouped}"
    )


def _steps(op: MakeSeries, prev: str, keys: list[str], totals: list[str]) -> str:
    """The aggregates of each step that has rows, by its number from the beginning of the axis."""
    number, size, start, stop = (
        _number(op, op.axis.expr),
        _size(op),
        _bound(op, op.start),
        _bound(op, op.stop),
    )
    from_start = f"({number} - {start or _origin(op, f'typeof({render_expr(op.axis.expr)})')})"
    at = f"({from_start} - ({from_start} % {size} + {size}) % {size}) / {size}"
    within = [f"({size} > 0 OR error('make-series: its step is not greater than 0'))"]
    within += [f"{number} IS NOT NULL"]
    within += [f"{number} >= {start}"] if start else []
    within += [f"{number} < {stop}"] if stop else []
    selected = [
        *(f"{render_expr(key.expr)} AS {name}" for key, name in zip(op.by, keys, strict=True)),
        f"CAST({at} AS BIGINT) AS kql_at",
        f"any_value(typeof({render_expr(op.axis.expr)})) AS kql_kind",
        *(f"{_total(one)} AS {name}" for one, name in zip(op.aggregates, totals, strict=True)),
    ]
    groups = ", ".join(str(number) for number in range(1, len(keys) + 2))
    return f"SELECT {', '.join(selected)} FROM {prev} WHERE {' AND '.join(within)} GROUP BY {groups}"


def _series(op: MakeSeries, keys: list[str]) -> str:
    """The series that there are, with their first and last steps. Without keys there is one, or none when no
    row is there and none is asked for."""
    ends = "min(kql_at) AS kql_first, max(kql_at) AS kql_last"
    if keys:
        return f"SELECT {', '.join(keys)}, {ends} FROM kql_steps GROUP BY {', '.join(keys)}"
    return f"SELECT {ends} FROM kql_steps" + ("" if op.is_nonempty else " HAVING count(*) > 0")


def _places(op: MakeSeries, keys: list[str]) -> str:
    """The numbers of all steps of each series, or an error when there are too many."""
    size, start, stop = _size(op), _bound(op, op.start), _bound(op, op.stop)
    first = "0" if start else "kql_first"
    last = "kql_last"
    if stop:
        width = f"({stop} - {start or _origin(op, _KIND_OF_AXIS)})"
        last = f"CAST(ceil({width} / CAST({size} AS DOUBLE)) AS BIGINT) - 1"
    told = f"error('make-series: more than {STEPS_MAX} steps')"
    series = (
        f"CASE WHEN {last} - {first} >= {STEPS_MAX} THEN {told} "
        f"ELSE generate_series({first}, least({last}, {first} + {STEPS_MAX})) END"  # both may be worked out
    )
    return f"SELECT {', '.join([*keys, f'unnest({series}) AS kql_place'])} FROM kql_series"


def _list(total: str, default: ir.Expr) -> str:
    filled = f"kql__element({render_expr(default)})"
    if isinstance(default, ir.Literal) and isinstance(default.value, int):  # in a series of reals it is one
        filled = (
            f"CASE typeof({total}) WHEN 'DOUBLE' THEN to_json({default.value}.0::DOUBLE) ELSE {filled} END"
        )
    value = f"coalesce(kql__element({total}), {filled})"
    return f"to_json(list({value} ORDER BY kql_place))"


def _total(one: ir.NamedExpr) -> str:
    """What has no aggregate in it is the same for every row that a step has."""
    return render_aggregate(one) if has_aggregate(one.expr) else f"any_value({render_expr(one.expr)})"


def has_aggregate(expr: ir.Expr) -> bool:
    """Whether an aggregate stands anywhere in it."""
    return any(isinstance(node, ir.FunctionCall) and lookup_aggregate(node.name) for node in nodes_of(expr))


def _is_timed(op: MakeSeries) -> bool:
    return is_timespan(op.step)


def _number(op: MakeSeries, value: ir.Expr) -> str:
    """A place on the axis as a number: of microseconds, where it is one of times."""
    return f"epoch_us({render_expr(value)})" if _is_timed(op) else f"({render_expr(value)})"


def _size(op: MakeSeries) -> str:
    return _number(op, op.step)


def _bound(op: MakeSeries, bound: ir.Expr | None) -> str | None:
    return None if bound is None else _number(op, bound)


def _shown(op: MakeSeries) -> str:
    """A step of the axis as an element: text for times."""
    place = f"({_bound(op, op.start) or _origin(op, _KIND_OF_AXIS)} + kql_place * {_size(op)})"
    if not _is_timed(op):
        return f"to_json({place})"
    bound = op.start or op.stop
    moment, span = f"kql__element(make_timestamp({place}))", f"kql__element(to_microseconds({place}))"
    if bound is not None:
        return span if is_timespan(bound) else moment
    return f"CASE WHEN {_KIND_OF_AXIS} = 'INTERVAL' THEN {span} ELSE {moment} END"


def _origin(op: MakeSeries, kind: str) -> str:
    """Where steps are counted from without `from`: as `bin` does."""
    return bins_from(kind) if _is_timed(op) else "0"


def _names(named: tuple[ir.NamedExpr, ...]) -> list[str]:
    namer = naming.Namer()
    return [namer.name(one) for one in named]
