"""`search`: rows of tables in which terms are found, in any column or in one; and `where * has "term"`.

Contract: a term without stars is a whole word, with stars as Kusto documents them; every column is read
as text. The rows come with the name of their table in `$table`.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any

from duckdb_kql import ir, lower
from duckdb_kql.errors import KqlUnsupportedError
from duckdb_kql.translate import render_expr

from lazydelta.engines.kql.operators import AddedOperator, rendered
from lazydelta.engines.kql.regexes import as_re2
from lazydelta.engines.kql.trees import with_parts

TABLE_COLUMN = "$table"
Node = Any  # Any: ANTLR's trees have no types


@dataclasses.dataclass(frozen=True)
class Searched(AddedOperator):
    """Rows that a predicate of terms finds."""

    predicate: ir.Expr
    is_case_sensitive: bool = False


def piped(node: Node) -> list[ir.Operator]:
    """`T | search …`."""
    tables, searched = _read(node)
    if tables:
        raise KqlUnsupportedError("search in", span=lower._span(node), hint="after a table")
    return [ir.Union((), with_source=TABLE_COLUMN), searched]


def leading(node: Node, rest: list[ir.Operator]) -> ir.Query:
    """`search in (T, U) …`, or in every table."""
    tables, searched = _read(node)
    first, *others = [_table(table) for table in tables] or [ir.WildcardTableRef("*")]
    union = ir.Union(tuple(ir.Query(source) for source in others), with_source=TABLE_COLUMN)
    return ir.Query(first, [union, searched, *rest])


def star(node: Node) -> ir.Expr:
    """`* has "term"`: of any column."""
    kids = lower._rule_children(node)
    if len(kids) != 2:
        raise KqlUnsupportedError("*", span=lower._span(node))
    return ir.BinaryOp(lower._op_text(kids[0]), ir.Wildcard(), lower._lower_expr(kids[1]))


def colon(node: Node) -> ir.Expr | None:
    """`column:"term"`, which the library reads nowhere."""
    kids = lower._rule_children(node)
    if len(kids) != 2 or not kids[1].getText().startswith(":"):
        return None
    return ir.BinaryOp(":", lower._lower_expr(kids[0]), lower._lower_expr(lower._rule_children(kids[1])[-1]))


@rendered.register
def _(op: Searched, prev: str, cols: list[str] | None) -> str:
    if cols is None:
        raise KqlUnsupportedError("search", hint="the columns before it are not known")
    read = [name for name in cols if name != TABLE_COLUMN]
    predicate = _boolean(op.predicate, "_cs" if op.is_case_sensitive else "")
    return f"SELECT * FROM {prev} WHERE {render_expr(over_columns(predicate, read))}"


def over_columns(node: Any, cols: list[str]) -> Any:  # Any: any part of a tree
    """The tree with `* operator value` as that of one column or another."""
    if isinstance(node, ir.Query):
        return node
    node = with_parts(node, lambda part: over_columns(part, cols))
    if not isinstance(node, ir.BinaryOp) or not isinstance(node.left, ir.Wildcard):
        return node
    tests = [
        dataclasses.replace(node, left=ir.FunctionCall("tostring", (ir.ColumnRef(name),))) for name in cols
    ]
    found: ir.Expr = ir.Literal(False, "bool")
    for test in tests:
        found = ir.BinaryOp("or", found, test)
    return found


def _table(node: Node) -> ir.Source:
    text = node.getText()
    return ir.WildcardTableRef(text) if "*" in text else lower._lower_source(node)


def _read(node: Node) -> tuple[list[Node], Searched]:
    kids = lower._rule_children(node)
    tables: list[Node] = []
    is_case_sensitive = False
    for kid in kids[:-1]:
        if lower._cls(kid) == "SearchOperatorInClause":
            tables = lower._rule_children(kid)
        elif "case_sensitive" in kid.getText():
            is_case_sensitive = True
    if lower._cls(lower._collapse(kids[-1])) == "StarExpression":
        return tables, Searched(ir.Literal(True, "bool"))
    return tables, Searched(lower._lower_expr(kids[-1]), is_case_sensitive)


def _boolean(node: ir.Expr, case: str) -> ir.Expr:
    """A predicate, in which a text alone is a term to be found in any column."""
    if isinstance(node, ir.LetRef):
        return _boolean(node.value, case)
    if isinstance(node, ir.Literal) and node.kind == "string":
        return _found(ir.Wildcard(), str(node.value), case)
    if isinstance(node, ir.BinaryOp):
        if node.op in ("and", "or"):
            return ir.BinaryOp(node.op, _boolean(node.left, case), _boolean(node.right, case))
        if node.op == ":":
            if not isinstance(node.right, ir.Literal):
                raise KqlUnsupportedError("search", hint="a column takes a literal term")
            return _found(node.left, str(node.right.value), case)
    if isinstance(node, ir.FunctionCall) and node.name.lower() == "not":
        return ir.UnaryOp("not", _boolean(node.args[0], case))
    return node


def _found(where: ir.Expr, term: str, case: str) -> ir.Expr:
    inner = term.strip("*")
    text = ir.Literal(inner, "string")
    if "*" in inner:
        pattern = ".*".join(map(re.escape, inner.split("*")))
        flags = "" if case else "(?i)"
        made, _ = as_re2(f"{flags}\\b{pattern}\\b", is_consumed=True)
        return ir.BinaryOp("matches regex", where, ir.Literal(made, "string"))
    stars = (term.startswith("*"), term.endswith("*"))
    operator = {
        (False, False): "has",
        (True, False): "hassuffix",
        (False, True): "hasprefix",
        (True, True): "contains",
    }
    return ir.BinaryOp(f"{operator[stars]}{case}", where, text)


def is_search(node: Node) -> bool:
    """Whether a pipeline begins with it."""
    return bool(lower._cls(node) == "SearchOperator")
