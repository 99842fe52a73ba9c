"""Rows that have an order, Kusto's serialized row sets: what reads their neighbours, or lists them.

Contract: where they have none, a function of neighbours is refused, as in Kusto: its answer would be by
chance. Where they have one, a list has it, too, which DuckDB does not promise of an aggregate.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from duckdb_kql import ir
from duckdb_kql.errors import KqlUnsupportedError

from lazydelta.engines.kql import operators, windows
from lazydelta.engines.kql.added import LISTS
from lazydelta.engines.kql.trees import nodes_of, with_parts

Node = Any  # Any: of the library's tree, or a part of it
_BEGIN_IT = (ir.Sort, ir.Top, ir.GetSchema, operators.Serialized)
_KEEP_IT = (
    ir.Where,
    ir.Project,
    ir.Extend,
    ir.Take,
    ir.ProjectAway,
    ir.ProjectRename,
    ir.MvExpand,
    ir.Parse,
    operators.KeepColumns,
    operators.ReorderColumns,
    operators.TakeSome,
    operators.NamedRows,
)
_ORDERED_SOURCES = (ir.RangeSource, ir.DataTable, ir.PrintSource)


def in_order(query: Node, known: Mapping[str, bool] | None = None) -> Node:
    """The query with the rows numbered that a list is made of in their order."""
    return _in_order(query, known or {})[0]


def _in_order(query: Node, known: Mapping[str, bool]) -> tuple[Node, bool]:
    """The query, and whether the rows that it gives have an order."""
    bound = dict(known)
    lets = []
    for name, value in query.lets:
        made_of_it, is_ordered = _in_order(value, bound) if isinstance(value, ir.Query) else (value, False)
        bound[name] = is_ordered
        lets.append((name, made_of_it))
    source = with_parts(query.source, lambda part: _within(part, bound))
    is_ordered = isinstance(source, _ORDERED_SOURCES)
    if isinstance(source, ir.TableRef):
        is_ordered = bound.get(source.name, False)
    made: list[ir.Operator] = []
    for op in query.operators:
        if not is_ordered and windows.is_windowed(op):
            hint = "the rows before it have no order; sort or serialize them"
            raise KqlUnsupportedError(f"function:{windows.first_name(op)}", hint=hint)
        if is_ordered and isinstance(op, ir.Summarize) and _makes_a_list(op):
            made.append(operators.Numbered())
        made.append(with_parts(op, lambda part: _within(part, bound)))
        is_ordered = isinstance(op, _BEGIN_IT) or (is_ordered and isinstance(op, _KEEP_IT))
    return ir.Query(source, made, lets, list(query.parameters)), is_ordered


def _within(node: Node, bound: Mapping[str, bool]) -> Node:
    if isinstance(node, ir.Query):
        return _in_order(node, bound)[0]
    return with_parts(node, lambda part: _within(part, bound))


def _makes_a_list(op: ir.Summarize) -> bool:
    calls = [node for node in nodes_of(op.aggregates) if isinstance(node, ir.FunctionCall)]
    return any(call.name.lower() in LISTS for call in calls)
