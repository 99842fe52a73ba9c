"""NaN and null as Kusto has them, where SQL differs: written into the tree last, before SQL is made of it.

Kusto: NaN is less than, greater than and equal to nothing, itself included; in an order it stands beside
null; `and` and `or` of null are false unless the other side decides. DuckDB: NaN is the greatest number and
equals itself. Contract: only what may be a real is touched; the conditions that are pushed into scans were
read before.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from duckdb_kql import ir, translate
from duckdb_kql.translate import render_expr
from duckdb_kql.translate.functions import AggregateSpec, BinarySpec

from lazydelta.engines.kql.kinds import kind_of
from lazydelta.engines.kql.search import Searched
from lazydelta.engines.kql.trees import changed

Node = Any  # Any: of the library's tree
UNLESS_NAN = "unless nan"
_NEVER_NAN = frozenset(
    {"bool", "datetime", "decimal", "dynamic", "guid", "int", "long", "string", "timespan"}
)
# Which side a comparison is true for by mistake, when that is NaN.
_GUARDED = {">": (0,), ">=": (0,), "<": (1,), "<=": (1,), "==": (0, 1), "!=": (0, 1), "<>": (0, 1)}
_TESTS = {"real": "isnan({})", "any": "kql__is_nan({})"}
_TOTAL = {"and": "and, total", "or": "or, total"}
_PLAIN = {total: plain for plain, total in _TOTAL.items()}


def with_special_values(query: ir.Query) -> ir.Query:
    """The query with Kusto's rules for NaN and null."""
    made: ir.Query = changed(query, _special)
    return made


def operators() -> dict[str, BinarySpec]:
    """Rows for the library's table of operators."""
    rows = {
        "and, total": BinarySpec("and, total", "coalesce({0} AND {1}, FALSE)"),
        "or, total": BinarySpec("or, total", "coalesce({0} OR {1}, FALSE)"),
    }
    for operator, (side, *_) in _GUARDED.items():
        for kind, test in _TESTS.items():
            sql = {"==": "=", "!=": "<>"}.get(operator, operator)
            is_nan = test.format(f"{{{side}}}")
            name = f"{operator}, {kind}"
            if operator in ("!=", "<>"):
                rows[name] = BinarySpec(name, f"({{0}} {sql} {{1}} OR {is_nan})", null_result="TRUE")
            else:
                null = "FALSE" if operator == "==" else None
                rows[name] = BinarySpec(name, f"({{0}} {sql} {{1}} AND NOT {is_nan})", null_result=null)
    return rows


def aggregates() -> dict[str, AggregateSpec]:
    """`max` passes over NaN, unless there is nothing else."""
    rows = [
        AggregateSpec(
            "max, real", "coalesce(max({0}) FILTER (WHERE NOT isnan({0})), max({0}))", (1,), name_prefix="max"
        ),
        AggregateSpec(
            "max, any",
            "kql__text_or(coalesce(max(kql__unless_nan({0})), max({0})))",
            (1,),
            name_prefix="max",
        ),
        AggregateSpec(
            "maxif, real",
            "coalesce(max({0}) FILTER (WHERE ({1}) AND NOT isnan({0})), max({0}) FILTER (WHERE {1}))",
            (2,),
            name_prefix="maxif",
        ),
        AggregateSpec(
            "maxif, any",
            "kql__text_or(coalesce(max(kql__unless_nan({0})) FILTER (WHERE {1}), "
            "max({0}) FILTER (WHERE {1})))",
            (2,),
            name_prefix="maxif",
        ),
    ]
    return {row.name: row for row in rows}


def arg_extremes(agg: ir.NamedExpr, keys: list[str], cols: list[str] | None) -> list[tuple[str, str]] | None:
    """`arg_max` and `arg_min`: values of the row where a column is extreme, null included."""
    targets = translate.arg_max_targets(agg, keys, cols)
    names = translate.arg_max_names(agg, keys, cols)
    if targets is None or names is None:
        return None
    extreme, ordered, picked = targets
    raw = render_expr(ordered)
    order = unless_nan(ordered) if extreme == "max" and may_be_nan(ordered) else raw
    found = f"kql__text_or({extreme}({raw}))" if order == raw else f"coalesce(max({order}), max({raw}))"
    made = [(names[0], found)]
    for name, column in zip(names[1:], picked, strict=True):
        boxed = f"{{'v': {render_expr(column)}}}"  # so that a null is found, too
        made.append((name, f"coalesce(arg_{extreme}({boxed}, {order}), any_value({boxed}))['v']"))
    return made


def may_be_nan(node: Node) -> bool:
    """Whether an expression can be NaN."""
    if isinstance(node, ir.Literal):
        return isinstance(node.value, float) and math.isnan(node.value)
    return kind_of(node) not in _NEVER_NAN


def unless_nan(node: Node) -> str:
    """The SQL of a number, null instead of NaN."""
    sql = render_expr(node)
    return (
        f"CASE WHEN isnan({sql}) THEN NULL ELSE {sql} END"
        if kind_of(node) == "real"
        else (f"kql__unless_nan({sql})")
    )


def _special(node: Node) -> Node:  # noqa: PLR0911  # one case per node
    if isinstance(node, ir.BinaryOp):
        return _operator(node)
    if isinstance(node, ir.Where):
        return ir.Where(_filtering(node.predicate))
    if isinstance(node, Searched):  # which reads its terms itself
        return dataclasses.replace(node, predicate=changed(node.predicate, _plain))
    if isinstance(node, ir.Sort | ir.Top):
        return dataclasses.replace(node, keys=tuple(part for key in node.keys for part in _keys(key)))
    if isinstance(node, ir.Between) and may_be_nan(node.high):
        inside = ir.BinaryOp(
            "and",
            _operator(ir.BinaryOp(">=", node.value, node.low)),
            _operator(ir.BinaryOp("<=", node.value, node.high)),
        )
        return ir.UnaryOp("not", inside) if node.negated else inside
    if isinstance(node, ir.InList) and kind_of(node.value) == "real":
        return dataclasses.replace(node, value=ir.FunctionCall(UNLESS_NAN, (node.value,)))
    is_max = isinstance(node, ir.FunctionCall) and node.name.lower() in ("max", "maxif") and node.args
    if is_max and may_be_nan(node.args[0]):
        return ir.FunctionCall(f"{node.name.lower()}, {_variant(node.args[0])}", node.args)
    return node


def _operator(node: ir.BinaryOp) -> ir.BinaryOp:
    if node.op in _TOTAL:
        return dataclasses.replace(node, op=_TOTAL[node.op])
    sides = [(node.left, node.right)[side] for side in _GUARDED.get(node.op, ())]
    if not sides or not all(map(may_be_nan, sides)):
        return node
    return dataclasses.replace(node, op=f"{node.op}, {_variant(sides[0])}")


def _variant(node: Node) -> str:
    return "real" if kind_of(node) == "real" else "any"


def _plain(node: Node) -> Node:
    is_total = isinstance(node, ir.BinaryOp) and node.op in _PLAIN
    return ir.BinaryOp(_PLAIN[node.op], node.left, node.right) if is_total else node


def _filtering(node: Node) -> Node:
    """What a row is kept by: false and null are the same there, and DuckDB reads plain ones better."""
    if isinstance(node, ir.BinaryOp) and node.op in _PLAIN:
        return ir.BinaryOp(_PLAIN[node.op], _filtering(node.left), _filtering(node.right))
    return node


def _keys(key: ir.SortKey) -> list[ir.SortKey]:
    """NaN stands beside null, after it where nulls come first, before it where they come last."""
    if not may_be_nan(key.expr):
        return [key]
    return [dataclasses.replace(key, expr=ir.FunctionCall(UNLESS_NAN, (key.expr,))), key]
