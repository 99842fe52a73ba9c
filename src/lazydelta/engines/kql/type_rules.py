"""What Kusto refuses about types, and DuckDB would answer by rules of its own.

Contract: what is refused is refused by Kusto, too, or could not be exact here; where a type is not known
nothing is said. Errors are in Kusto's words, with the place.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any

from duckdb_kql import ir
from duckdb_kql.translate.functions import lookup_aggregate

from lazydelta.engines.kql.argument_types import (
    ARGUMENTS,
    FEWEST,
    PERCENTAGES,
    SERIES_PAIRS,
    SIZES,
    TEXTS,
    TIMED,
    TRUTH,
)
from lazydelta.engines.kql.errors import MISMATCH, UNSUPPORTED, KqlError, Place, kql_error, unsupported
from lazydelta.engines.kql.kinds import (
    ARITHMETIC,
    COMPARISONS,
    HELD_KINDS,
    NUMBERS,
    Kind,
    arithmetic_kind,
    common_kind,
    kind_of,
)
from lazydelta.engines.kql.make_series import MakeSeries, has_aggregate
from lazydelta.engines.kql.places import Places
from lazydelta.engines.kql.problems import place_of_name
from lazydelta.engines.kql.trees import nodes_of, parts_of

Node = Any  # Any: of the library's tree
_DYNAMIC = "dynamic"
_CASTS = {
    "datetime": "todatetime",
    "timespan": "totimespan",
    "real": "toreal",
    "bool": "tobool",
    "guid": "toguid",
}
_UNORDERED = HELD_KINDS | {"guid"}  # of a dynamic beside them
_TEXT_OPERATORS = frozenset(
    {"=~", "!~", "matches regex"}
    | {
        f"{negated}{name}{case}"
        for name in ("contains", "has", "hasprefix", "hassuffix", "startswith", "endswith")
        for negated in ("", "!")
        for case in ("", "_cs")
    }
)


class TypeRules:
    """Judges expressions whose columns have their types."""

    def __init__(self, text: str, places: Places) -> None:
        self._text = text
        self._places = places

    def check(self, node: Node) -> None:
        """Raise where the types of a node's own parts do not go together; those inside were looked at."""
        rule = _RULES.get(type(node))
        if rule is not None:
            rule(self, node)

    def check_operator(self, op: ir.Operator) -> None:
        """Raise where an operator cannot work on what it is given."""
        if isinstance(op, ir.Where):
            self._demand(op.predicate, TRUTH, "The expression must have the type bool.")
        elif isinstance(op, ir.Summarize):
            for key in op.by:
                self._groups_by(key, "Summarize group key")
        elif isinstance(op, ir.Distinct):
            for key in op.expressions:
                self._groups_by(key, "Distinct key")
        elif isinstance(op, MakeSeries):
            self._series(op)
        elif isinstance(op, ir.Sort | ir.Top):
            for one in op.keys:
                if kind_of(one.expr) == _DYNAMIC:
                    what = "Order by clause: the sort key is of a 'dynamic' type. Please use an explicit cast"
                    raise self._error(what, one.expr, "cast it, as in tolong(x) or tostring(x)")

    def check_by_row(self, tree: Node) -> None:
        """Raise at an aggregate where values of single rows are meant; DuckDB would make one row of all."""
        for part in parts_of(tree):
            if isinstance(part, ir.Query):
                continue  # it is looked at by itself
            if isinstance(part, ir.FunctionCall) and lookup_aggregate(part.name) is not None:
                what = f"{part.name}() is an aggregate, and stands where values of single rows are meant"
                at, fix = self._places.of(part), f"aggregate before, as in … | summarize x = {part.name}(…)"
                raise kql_error(what, self._text, at, fix, UNSUPPORTED)
            self.check_by_row(part)

    def check_expanded(self, op: ir.MvExpand, columns: dict[str, Kind]) -> None:
        """Raise where `mv-expand` is given what has no members."""
        for target in op.targets:
            kind = columns.get(target.column)
            if kind not in (None, _DYNAMIC):
                what = f"mv-expand: the column {target.column!r} must have the type dynamic. It is {kind}."
                at = place_of_name(self._text, target.column)
                raise kql_error(what, self._text, at, "use parse_json(…)", MISMATCH)

    def _series(self, op: MakeSeries) -> None:
        axis, step = kind_of(op.axis.expr), kind_of(op.step)
        if axis is not None and step is not None and not _goes_by(axis, step):
            what = f"make-series: the axis is of the type {axis}, its step of the type {step}"
            raise self._error(
                what, op.axis.expr, "give a step of the axis's own type, or a timespan for times"
            )
        for one in op.aggregates:
            has_columns = any(isinstance(part, ir.ColumnRef) for part in nodes_of(one.expr))
            if has_columns and not has_aggregate(one.expr):
                what = "make-series: an aggregate is expected, as count() or avg(x)"
                raise self._error(what, one.expr, "aggregate the values of a step")
        for bound in (op.start, op.stop):
            if bound is not None and _are_unlike(axis, kind_of(bound)):
                what = f"make-series: the axis is of the type {axis}, its end of the type {kind_of(bound)}"
                raise self._error(what, op.axis.expr, "give ends of the axis's own type")

    def check_keys(
        self, op: Any, left: dict[str, Kind], right: dict[str, Kind]
    ) -> None:  # Any: a join or a lookup
        """Raise where the two sides of a join have keys of unlike types."""
        for key in op.keys:
            kinds = (left.get(key.left), right.get(key.right))
            if _are_unlike(*kinds):
                what = f"join key {key.left!r} and {key.right!r}: types {kinds[0]} and {kinds[1]} don't match"
                raise self._error(what, op, "convert one of them before the join")

    def check_members(self, value: Node, kind: Kind) -> None:
        """Raise where a value cannot be among those of a query."""
        if _are_unlike(kind_of(value), kind):
            what = f"Cannot compare values of types {kind_of(value)} and {kind}. Try adding explicit casts"
            raise self._error(what, value, _conversion(kind_of(value), kind))

    def _operator(self, node: ir.BinaryOp) -> None:
        left, right = kind_of(node.left), kind_of(node.right)
        if node.op in COMPARISONS:
            self._compared(node, left, right)
        elif node.op in ARITHMETIC:
            self._calculated(node, left, right)
        elif node.op in ("and", "or"):
            for side in (node.left, node.right):
                if kind_of(side) not in (None, "bool"):
                    raise self._undefined(node, left, right, "convert it with tobool(…), or compare it")
        elif node.op in _TEXT_OPERATORS and not {left, right} <= {None, *TEXTS}:
            raise self._undefined(node, left, right, "convert it with tostring(…)")

    def _compared(self, node: ir.BinaryOp, left: Kind, right: Kind) -> None:
        if left == right == _DYNAMIC:
            what = "Cannot compare dynamic values without explicit cast"
            raise self._error(what, node, "cast both sides, as in tostring(x) or tolong(x)")
        is_order = node.op not in ("==", "!=", "<>")
        if is_order and _DYNAMIC in (left, right) and {left, right} & _UNORDERED:
            cast = _CASTS[str(right if left == _DYNAMIC else left)]
            raise self._undefined(node, left, right, f"convert the dynamic, as in {cast}(…)")
        is_untold = is_order and {left, right} == {"string", _DYNAMIC}
        if is_untold or _are_unlike(left, right):
            what = f"Cannot compare values of types {left} and {right}. Try adding explicit casts"
            raise self._error(what, node, _conversion(left, right))
        self._decimals(node, left, right)

    def _calculated(self, node: ir.BinaryOp, left: Kind, right: Kind) -> None:
        if left is None or right is None:
            return
        if arithmetic_kind(node.op, left, right) is None:
            fix = (
                "convert it, as in tolong(x) or toreal(x)"
                if _DYNAMIC in (left, right)
                else (_conversion(left, right))
            )
            raise self._undefined(node, left, right, fix)
        if "decimal" in (left, right) and "timespan" in (left, right):
            raise self._inexact(node, "a timespan by a decimal", "use toreal(…)")
        self._decimals(node, left, right)
        if node.op == "/" and "decimal" in (left, right):
            raise self._inexact(node, "the quotient of decimals", "divide toreal(…) by toreal(…)")

    def _decimals(self, node: ir.BinaryOp, left: Kind, right: Kind) -> None:
        """A real beside a decimal becomes one in Kusto; here only a literal can."""
        if {left, right} != {"decimal", "real"}:
            return
        real = node.left if left == "real" else node.right
        if not isinstance(real, ir.Literal):
            raise self._inexact(node, "a decimal with a real", "convert one with toreal(…) or todecimal(…)")

    def _between(self, node: ir.Between) -> None:
        value, low, high = (kind_of(part) for part in (node.value, node.low, node.high))
        if value == low == "datetime" and high == "timespan":
            return
        if _are_unlike(value, low) or _are_unlike(value, high) or _DYNAMIC in (value, low, high):
            kinds = f"{value or 'unknown'}, {low or 'unknown'} and {high or 'unknown'}"
            what = f"The operator 'between' is not defined for the operand types {kinds}."
            raise self._error(what, node, _conversion(value, low))

    def _listed(self, node: ir.InList) -> None:
        value = kind_of(node.value)
        for item in node.items:
            if _are_unlike(value, kind_of(item)):
                what = (
                    f"Cannot compare values of types {value} and {kind_of(item)}. Try adding explicit casts"
                )
                raise self._error(what, item, _conversion(value, kind_of(item)))

    def _negated(self, node: ir.UnaryOp) -> None:
        kind = kind_of(node.operand)
        if node.op == "-" and kind not in (None, *NUMBERS, "timespan"):
            what = f"The operator '-' is not defined for the operand type {kind}."
            raise self._error(what, node, "convert it, as in tolong(x) or toreal(x)")
        if node.op != "-":
            self._demand(node.operand, TRUTH, "A value of type bool expected.")

    def _called(self, node: ir.FunctionCall) -> None:
        name = node.name.lower()
        fewest = FEWEST.get(name, 0)
        if len(node.args) < fewest:
            what = f"{node.name}() expects {fewest} arguments at least; it has {len(node.args)}"
            raise self._error(what, node, "give the others")
        for place, kinds in ARGUMENTS.get(name, {}).items():
            if place < len(node.args):
                words = f"A value of type {' or '.join(sorted(kinds))} expected by {node.name}()."
                self._demand(node.args[place], kinds, words)
        self._ranged(node, name)
        if name in ("bin", "floor") and len(node.args) == 2:
            self._binned(node)
        elif name in ("iff", "iif"):
            self._branches(node, node.args[1:])
        elif name == "case":
            for condition in node.args[:-1:2]:
                self._demand(condition, TRUTH, "A value of type bool expected by case().")
            self._branches(node, [*node.args[1::2], node.args[-1]])
        elif name in SERIES_PAIRS and all(kind_of(one) in NUMBERS for one in node.args):
            raise self._error(f"{node.name}() expects an array among its arguments.", node, "give one")
        elif name in ("coalesce", "max_of", "min_of"):
            self._branches(node, node.args)
        elif name in ("avg", "avgif", "round") and node.args and kind_of(node.args[0]) == "decimal":
            raise self._inexact(node, f"{name} of decimals", f"use {name}(toreal(…))")

    def _ranged(self, node: ir.FunctionCall, name: str) -> None:
        """Percentiles and sizes that there are none of: DuckDB counts them from the other end."""
        if name in PERCENTAGES:
            first, least, most = PERCENTAGES[name], 0.0, 100.0
        elif name in SIZES:
            first, least, most = SIZES[name], 0.0, math.inf
        else:
            return
        for argument in node.args[first:]:
            if not all(least <= number <= most for number in _numbers(argument)):
                what = f"{node.name}() expects a number " + (
                    "from 0 to 100" if most < math.inf else "from 0 on"
                )
                raise self._error(f"{what}.", argument, "give such a number")

    def _reached(self, node: ir.PathAccess) -> None:
        kind = kind_of(node.base)
        if kind not in (None, _DYNAMIC):
            what = f"Path expression source must be of type dynamic. Received a source of type {kind} instead"
            raise self._error(what, node, "use parse_json(…)" if kind == "string" else "leave the path out")

    def _binned(self, node: ir.FunctionCall) -> None:
        value, size = (kind_of(part) for part in node.args)
        if value is None or size is None:
            return
        if _goes_by(value, size):
            return
        what = f"The function '{node.name}' is not compatible with arguments ({value}, {size})"
        raise self._error(what, node, "give a size of the value's own type, or a timespan for times")

    def _branches(self, node: ir.FunctionCall, branches: Sequence[ir.Expr]) -> None:
        kinds = [kind_of(branch) for branch in branches]
        if None in kinds or common_kind(kinds) is not None:
            return
        told = ", ".join(dict.fromkeys(str(kind) for kind in kinds))
        what = f"No common type can be determined from the arguments of {node.name}(): {told}"
        raise self._error(what, node, "convert them to one type, as in tostring(x)")

    def _groups_by(self, key: ir.NamedExpr, what: str) -> None:
        if kind_of(key.expr) == _DYNAMIC:
            name = key.name or getattr(key.expr, "name", "")
            cast = f"tostring({name or '…'})"
            raise self._error(
                f"{what} {name!r} is of a 'dynamic' type. Please use an explicit cast (for example, "
                f"{cast!r}) as grouping by a 'dynamic' type is not supported.",
                key.expr,
                f"write {cast}",
            )

    def _demand(self, node: Node, kinds: frozenset[str], what: str) -> None:
        kind = kind_of(node)
        if kind is not None and kind not in kinds:
            raise self._error(f"{what} It is {kind}.", node, _conversion(next(iter(sorted(kinds))), kind))

    def _undefined(self, node: ir.BinaryOp, left: Kind, right: Kind, fix: str) -> KqlError:
        kinds = f"{left or 'unknown'} and {right or 'unknown'}"
        return self._error(
            f"The operator '{node.op}' is not defined for the operand types {kinds}.", node, fix
        )

    def _inexact(self, node: Node, what: str, fix: str) -> KqlError:
        at = self._places.of(node)
        return unsupported(what, self._text, at, why="it could not be exact here", fix=fix)

    def _error(self, what: str, node: Node, fix: str) -> KqlError:
        at: Place = self._places.of(node)
        return kql_error(what, self._text, at, fix, MISMATCH)


def _numbers(node: Node) -> list[float]:
    """The numbers that a literal is, or an array of them holds."""
    if isinstance(node, ir.LetRef):
        return _numbers(node.value)
    if isinstance(node, ir.UnaryOp) and node.op == "-":
        return [-number for number in _numbers(node.operand)]
    if not isinstance(node, ir.Literal):
        return []
    told = json.loads(node.value) if node.kind == _DYNAMIC and isinstance(node.value, str) else node.value
    members = told if isinstance(told, list) else [told]
    return [one for one in members if isinstance(one, int | float) and not isinstance(one, bool)]


def _goes_by(value: Kind, size: Kind) -> bool:
    """Whether values are counted by such steps."""
    return (value in NUMBERS and size in NUMBERS) or (value in TIMED and size == "timespan")


def _are_unlike(left: Kind, right: Kind) -> bool:
    """Whether two types cannot be compared; a dynamic goes with everything."""
    if left is None or right is None or _DYNAMIC in (left, right):
        return False
    return left != right and not {left, right} <= NUMBERS


def _conversion(left: Kind, right: Kind) -> str:
    kind = right if left == "string" else left
    return f"convert one side, as in {_CASTS.get(str(kind), f'to{kind}')}(…) or tostring(…)"


_RULES: dict[type, Callable[[TypeRules, Any], None]] = {
    ir.BinaryOp: TypeRules._operator,
    ir.UnaryOp: TypeRules._negated,
    ir.Between: TypeRules._between,
    ir.InList: TypeRules._listed,
    ir.FunctionCall: TypeRules._called,
    ir.PathAccess: TypeRules._reached,
}
