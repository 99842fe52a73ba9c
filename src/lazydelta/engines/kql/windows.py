"""Functions of a row's neighbours: prev, next, row_number, row_cumsum, row_rank_dense, row_rank_min.

Why: Kusto reads them over rows in order; SQL has windows, which may not be nested and need an order. So
the rows are numbered as they come, each call becomes a column beside them, inner calls before outer ones,
and the operator reads those columns. Contract: rows leave in the order in which they came.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from duckdb_kql import ir
from duckdb_kql.errors import KqlUnsupportedError
from duckdb_kql.translate import quote_ident, render_expr

from lazydelta.engines.kql.operators import ROW_COLUMN
from lazydelta.engines.kql.trees import nodes_of, with_parts

NAMES = frozenset(
    {
        "prev",
        "next",
        "row_number",
        "row_cumsum",
        "row_rank_dense",
        "row_rank_min",
        "row_window_session",
    }
)
_ORDERED = f'ORDER BY "{ROW_COLUMN}"'
_SO_FAR = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"


def is_windowed(op: ir.Operator) -> bool:
    """Whether an operator reads neighbours of its rows."""
    return any(isinstance(node, ir.FunctionCall) and node.name.lower() in NAMES for node in _own_nodes(op))


def rendered(
    op: ir.Operator,
    prev: str,
    cols: list[str] | None,
    render: Callable[[ir.Operator, str, list[str] | None], str],
) -> str:
    """The operator over rows that carry the columns of its calls."""
    if not isinstance(op, ir.Where | ir.Project | ir.Extend) or cols is None:
        raise KqlUnsupportedError(
            f"function:{first_name(op)}", hint="only in extend, project, where and serialize"
        )
    layers = _Layers(prev)
    read = layers.read(op)
    hidden = [ROW_COLUMN, *layers.names]
    if isinstance(read, ir.Project):
        kept = ir.NamedExpr(ir.ColumnRef(ROW_COLUMN), ROW_COLUMN)
        sql = render(ir.Project((*read.expressions, kept)), layers.source, [*cols, *hidden])
        hidden = [ROW_COLUMN]
    else:
        sql = render(read, layers.source, [*cols, *hidden])
    without = ", ".join(map(quote_ident, hidden))
    return f"SELECT * EXCLUDE ({without}) FROM ({sql}) {_ORDERED}"


class _Layers:
    """Selects around one another, each with one more column."""

    def __init__(self, prev: str) -> None:
        self.source = f'(SELECT *, row_number() OVER () AS "{ROW_COLUMN}" FROM {prev})'
        self.names: list[str] = []

    def read(self, node: Any) -> Any:  # Any: a node of the tree, or a part of one
        """The node with its calls read from columns."""
        if isinstance(node, ir.Query):
            return node
        inner = with_parts(node, self.read)
        if isinstance(inner, ir.FunctionCall) and inner.name.lower() in NAMES:
            return ir.ColumnRef(self._column(inner))
        return inner

    def _column(self, call: ir.FunctionCall) -> str:
        name = call.name.lower()
        args = list(call.args)
        if name in ("prev", "next"):
            return self._add(_neighbour(name, args))
        if name == "row_number":
            start = render_expr(args[0]) if args else "1"
            within = self._restarted(args[1:2])
            return self._add(f"CAST({start} AS BIGINT) - 1 + row_number() OVER ({within} {_ORDERED})")
        if name == "row_window_session":
            hint = "windows of SQL cannot tell the distance from the first row of a session"
            raise KqlUnsupportedError(f"function:{call.name}", hint=hint)
        if not args:
            raise KqlUnsupportedError(f"function:{call.name}", hint="takes an argument")
        value = self._add(render_expr(args[0]))
        if name == "row_cumsum":
            return self._add(_running_sum(quote_ident(value), self._restarted(args[1:2])))
        within = self._restarted(args[1:2])
        changes = self._add(
            f"CASE WHEN lag({quote_ident(value)}) OVER ({within} {_ORDERED}) "
            f"IS DISTINCT FROM {quote_ident(value)} "
            f"OR row_number() OVER ({within} {_ORDERED}) = 1 THEN 1 ELSE 0 END"
        )
        if name == "row_rank_dense":
            return self._add(_running_sum(quote_ident(changes), within))
        place = self._add(f"row_number() OVER ({within} {_ORDERED})")
        begun = f"CASE WHEN {quote_ident(changes)} = 1 THEN {quote_ident(place)} END"
        return self._add(f"max({begun}) OVER ({within} {_ORDERED} {_SO_FAR})")

    def _restarted(self, restart: Sequence[ir.Expr]) -> str:
        """The PARTITION BY of rows since the last restart, or nothing."""
        if not restart:
            return ""
        is_begun = f"CASE WHEN {render_expr(restart[0])} THEN 1 ELSE 0 END"
        begun = self._add(is_begun)
        part = self._add(f"sum({quote_ident(begun)}) OVER ({_ORDERED} {_SO_FAR})")
        return f"PARTITION BY {quote_ident(part)}"

    def _add(self, sql: str) -> str:
        name = f"kql window {len(self.names)}"
        self.names.append(name)
        self.source = f"(SELECT *, {sql} AS {quote_ident(name)} FROM {self.source})"
        return name


def _neighbour(name: str, args: Sequence[ir.Expr]) -> str:
    if not 1 <= len(args) <= 3:
        raise KqlUnsupportedError(f"function:{name}", hint="takes 1 to 3 arguments")
    offset = args[1] if len(args) > 1 else ir.Literal(1, "long")
    if not isinstance(offset, ir.Literal) or not isinstance(offset.value, int):
        raise KqlUnsupportedError(f"function:{name}", hint="takes a literal offset")
    window = "lag" if name == "prev" else "lead"
    default = f", {render_expr(args[2])}" if len(args) > 2 else ""
    return f"{window}({render_expr(args[0])}, {int(offset.value)}{default}) OVER ({_ORDERED})"


def _running_sum(value: str, within: str) -> str:
    return f"sum({value}) OVER ({within} {_ORDERED} {_SO_FAR})"


def _own_nodes(op: ir.Operator) -> list[ir.Node]:
    return [node for part in _parts(op) for node in nodes_of(part)]


def _parts(op: Any) -> list[object]:  # Any: an operator, each of which is a dataclass
    values = [getattr(op, field.name) for field in dataclasses.fields(op)]
    return [value for value in values if not isinstance(value, ir.Query)]


def first_name(op: ir.Operator) -> str:
    """The function of neighbours that an operator calls first."""
    return next(
        (
            node.name
            for node in _own_nodes(op)
            if isinstance(node, ir.FunctionCall) and node.name.lower() in NAMES
        ),
        "",
    )
