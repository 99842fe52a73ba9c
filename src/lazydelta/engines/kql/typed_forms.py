"""Operators whose meaning hangs on Kusto's types, written as the calls that have it.

Contract: called with typed parts; what DuckDB does as Kusto does stays as it is. Calls of ours have names
that no query can write.
"""

from __future__ import annotations

import dataclasses
import re
from decimal import Decimal
from functools import reduce

from duckdb_kql import ir
from duckdb_kql.errors import KqlUnsupportedError

from lazydelta.engines.kql.kinds import COMPARISONS, HELD_KINDS, NUMBERS, Kind, kind_of
from lazydelta.engines.kql.memberships import listed, with_words
from lazydelta.engines.kql.regexes import with_kustos_patterns

_FORMS: dict[tuple[str, Kind], str] = {
    **{(name, "timespan"): f"timespan {name}" for name in ("sum", "sumif", "avg", "avgif")},
    **{(name, "datetime"): f"datetime {name}" for name in ("avg", "avgif")},
    ("abs", "timespan"): "timespan abs",
    ("bin", "decimal"): "decimal bin",
    ("floor", "decimal"): "decimal bin",
}
_TURNED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
_NUMBERS_MAX = 100
# Against a moment between two microseconds, which no column holds: as against the one before it.
_AFTER_CUT = {"<": "<=", "<=": "<=", ">": ">", ">=": ">"}
_SEVENTH_DIGIT = re.compile(r":\d{2}\.\d{6}[1-9]")


def typed_form(node: ir.Expr) -> ir.Expr:  # noqa: PLR0911  # one case per node
    """The expression as SQL shall have it."""
    node = with_kustos_patterns(node)
    if isinstance(node, ir.BinaryOp):
        return _operator(node)
    if isinstance(node, ir.InList) and node.items:
        return _listed(node)
    if isinstance(node, ir.HasList):
        return with_words(node)
    if isinstance(node, ir.Between) and kind_of(node.low) == "datetime" and _is_finer(node.low):
        return _from_between_microseconds(node)
    if isinstance(node, ir.FunctionCall) and node.args:
        name = _FORMS.get((node.name.lower(), kind_of(node.args[0])))
        if name is not None:
            return ir.FunctionCall(name, node.args)
        if node.name.lower() == "percentile" and kind_of(node.args[0]) == "decimal":
            return ir.FunctionCall(node.name, (ir.FunctionCall("toreal", node.args[:1]), *node.args[1:]))
    return node


def _operator(node: ir.BinaryOp) -> ir.Expr:  # noqa: PLR0911  # one case per pair of types
    left, right = kind_of(node.left), kind_of(node.right)
    if {left, right} == {"decimal", "real"}:
        return ir.BinaryOp(node.op, _as_decimal(node.left), _as_decimal(node.right))
    if left == right == "datetime":
        return _between_microseconds(node)
    if node.op in COMPARISONS and "dynamic" in (left, right) and {left, right} & NUMBERS:
        return _with_a_number(node)
    if node.op in COMPARISONS and "dynamic" in (left, right) and {left, right} & HELD_KINDS:
        kind = right if left == "dynamic" else left
        return _operator(ir.BinaryOp(node.op, _held(node.left, kind), _held(node.right, kind)))
    pair = (node.left, node.right)
    if node.op == "/" and left == "timespan":
        if right == "timespan":
            return ir.FunctionCall("timespan ratio", pair)
        if right in NUMBERS:
            return ir.FunctionCall("timespan divided", pair)
    if node.op == "%" and left == right == "timespan":
        return ir.FunctionCall("timespan modulo", pair)
    return node


def _with_a_number(node: ir.BinaryOp) -> ir.Expr:
    """A dynamic beside a number: DuckDB would round what the dynamic holds to a long."""
    if kind_of(node.right) == "dynamic":
        node = ir.BinaryOp(_TURNED.get(node.op, node.op), node.right, node.left)
    operator = "!=" if node.op == "<>" else node.op
    return ir.FunctionCall(f"dynamic {operator}", (node.left, node.right))


def _held(node: ir.Expr, kind: Kind) -> ir.Expr:
    """What a dynamic holds of that type."""
    return ir.FunctionCall(f"dynamic {kind}", (node,)) if kind_of(node) == "dynamic" else node


def _listed(node: ir.InList) -> ir.Expr:
    """`in` where a dynamic is the value, or one of those that it is compared with."""
    kinds = {kind_of(item) for item in node.items}
    if kind_of(node.value) != "dynamic" or "dynamic" in kinds:
        return listed(node)
    if kinds <= NUMBERS:
        return _among_numbers(node)
    if len(kinds) == 1 and kinds <= HELD_KINDS:
        return dataclasses.replace(node, value=_held(node.value, next(iter(kinds))))
    return node


def _among_numbers(node: ir.InList) -> ir.Expr:
    """`in` of a dynamic and numbers, as comparisons with each."""
    if len(node.items) > _NUMBERS_MAX:
        raise KqlUnsupportedError("in", hint="of a dynamic and so many numbers; write tolong(…) or toreal(…)")
    found: list[ir.Expr] = [ir.FunctionCall("dynamic ==", (node.value, item)) for item in node.items]
    inside = reduce(lambda left, right: ir.BinaryOp("or", left, right), found)
    return ir.FunctionCall("not", (inside,)) if node.negated else inside


def _between_microseconds(node: ir.BinaryOp) -> ir.Expr:
    """A comparison with a moment that is finer than a microsecond, which is cut when it is written."""
    if node.op not in (*_TURNED, "==", "!=", "<>"):
        return node
    if not _is_finer(node.right):
        if not _is_finer(node.left):
            return node
        node = ir.BinaryOp(_TURNED.get(node.op, node.op), node.right, node.left)
    if _is_finer(node.left):
        return node
    if node.op not in _AFTER_CUT:
        return ir.Literal(node.op != "==", "bool")
    return ir.BinaryOp(_AFTER_CUT[node.op], node.left, node.right)


def _from_between_microseconds(node: ir.Between) -> ir.Expr:
    """A range that begins with such a moment."""
    is_for = kind_of(node.high) == "timespan"
    high = ir.BinaryOp("+", node.low, node.high) if is_for else node.high
    parts = [_operator(ir.BinaryOp(">=", node.value, node.low)), ir.BinaryOp("<=", node.value, high)]
    inside = ir.BinaryOp("and", *parts)
    return ir.UnaryOp("not", inside) if node.negated else inside


def _is_finer(node: ir.Expr) -> bool:
    if isinstance(node, ir.Literal):
        return _SEVENTH_DIGIT.search(str(node.value)) is not None
    return isinstance(node, ir.FunctionCall) and node.name.lower().startswith("endof") and len(node.args) < 3


def _as_decimal(node: ir.Expr) -> ir.Expr:
    """A literal beside a decimal has the digits that were written."""
    if isinstance(node, ir.Literal) and node.kind == "real" and isinstance(node.value, float):
        return ir.Literal(format(Decimal(repr(node.value)), "f"), "decimal")
    return node
