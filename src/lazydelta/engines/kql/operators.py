"""Operators that the translation library lacks: in its tree, the columns they give, and their SQL.

Contract: an operator here is a dataclass of the library's kind, so that what walks its trees walks these.
`columns` tells the names that come out, `rendered` the SELECT over what came before.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import singledispatch

from duckdb_kql import ir
from duckdb_kql.errors import KqlSchemaError, KqlUnsupportedError
from duckdb_kql.translate import quote_ident, render_expr

# The number of a row, for what must be read in order; no column of a table is called so.
ROW_COLUMN = "kql row"


class AddedOperator(ir.Operator):
    """An operator of ours."""


@dataclass(frozen=True)
class KeepColumns(AddedOperator):
    """`project-keep`, and with `is_away` `project-away`: names, or patterns with stars."""

    patterns: tuple[str, ...]
    is_away: bool = False


@dataclass(frozen=True)
class ReorderColumns(AddedOperator):
    """`project-reorder`: patterns, each with how the columns it means are sorted by name."""

    patterns: tuple[tuple[str, str | None], ...]


@dataclass(frozen=True)
class DistinctRows(AddedOperator):
    """`distinct *`."""


@dataclass(frozen=True)
class TakeSome(AddedOperator):
    """`take` of a number that an expression tells."""

    count: ir.Expr


@dataclass(frozen=True)
class Sample(AddedOperator):
    """`sample`: rows by chance; with `of`, `sample-distinct`: some of the distinct values."""

    count: ir.Expr
    of: ir.NamedExpr | None = None


@dataclass(frozen=True)
class Serialized(AddedOperator):
    """`serialize`: the order that the rows have is one to be relied on."""


@dataclass(frozen=True)
class Numbered(AddedOperator):
    """Rows with their numbers, as they come, in `ROW_COLUMN`."""


@dataclass(frozen=True)
class NamedRows(AddedOperator):
    """`as`: the rows as they are, under a name that a union tells."""

    name: str


@singledispatch
def columns(_: ir.Operator, cols: list[str]) -> list[str]:
    """The names that come out of an operator of ours."""
    return cols


@columns.register
def _(_: Numbered, cols: list[str]) -> list[str]:
    return [*cols, ROW_COLUMN]


@columns.register
def _(op: KeepColumns, cols: list[str]) -> list[str]:
    meant = {name for pattern in op.patterns for name in _matching(pattern, cols)}
    return [name for name in cols if (name in meant) != op.is_away]


@columns.register
def _(op: ReorderColumns, cols: list[str]) -> list[str]:
    listed = {pattern for pattern, _ in op.patterns if "*" not in pattern}
    first: list[str] = []
    for pattern, order in op.patterns:
        names = [name for name in _matching(pattern, cols) if name not in first]
        if "*" in pattern:
            names = [name for name in names if name not in listed]
        if order is not None:
            names = _by_name(names, order)
        first += names
    return first + [name for name in cols if name not in first]


@columns.register
def _(op: Sample, cols: list[str]) -> list[str]:
    return cols if op.of is None else [_sampled_name(op.of)]


@singledispatch
def rendered(op: ir.Operator, _prev: str, _cols: list[str] | None) -> str:
    """The SELECT of an operator of ours."""
    raise KqlUnsupportedError(type(op).__name__)


@rendered.register(KeepColumns)
@rendered.register(ReorderColumns)
def _(op: ir.Operator, prev: str, cols: list[str] | None) -> str:
    if cols is None:
        raise KqlUnsupportedError("project", hint="the columns before it are not known")
    kept = columns(op, cols)
    if not kept:
        name = "project-away" if isinstance(op, KeepColumns) and op.is_away else "project-keep"
        raise KqlSchemaError(name, hint="no column would be left")
    return f"SELECT {', '.join(map(quote_ident, kept))} FROM {prev}"


@rendered.register(NamedRows)
@rendered.register(Serialized)
def _(_: ir.Operator, prev: str, _cols: list[str] | None) -> str:
    return f"SELECT * FROM {prev}"


@rendered.register
def _(_: Numbered, prev: str, _cols: list[str] | None) -> str:
    return f"SELECT *, row_number() OVER () AS {quote_ident(ROW_COLUMN)} FROM {prev}"


@rendered.register
def _(_: DistinctRows, prev: str, _cols: list[str] | None) -> str:
    return f"SELECT DISTINCT * FROM {prev}"


@rendered.register
def _(op: TakeSome, prev: str, _cols: list[str] | None) -> str:
    return f"SELECT * FROM {prev} LIMIT {render_expr(op.count)}"


@rendered.register
def _(op: Sample, prev: str, _cols: list[str] | None) -> str:
    if not isinstance(op.count, ir.Literal) or not isinstance(op.count.value, int):
        raise KqlUnsupportedError("sample", hint="takes a literal number")
    count = max(0, int(op.count.value))
    if op.of is None:
        return f"SELECT * FROM {prev} USING SAMPLE reservoir({count} ROWS)"
    column = f"{render_expr(op.of.expr)} AS {quote_ident(_sampled_name(op.of))}"
    return f"SELECT DISTINCT {column} FROM {prev} LIMIT {count}"


def _matching(pattern: str, cols: list[str]) -> list[str]:
    if "*" not in pattern:
        if pattern not in cols:
            raise KqlSchemaError(pattern, hint="there is no such column")
        return [pattern]
    written = ".*".join(map(re.escape, pattern.split("*")))
    return [name for name in cols if re.fullmatch(written, name)]


def _by_name(names: list[str], order: str) -> list[str]:
    if order.startswith("granny"):
        names = sorted(
            names,
            key=lambda name: [
                (not part.isdigit(), int(part) if part.isdigit() else 0, part)
                for part in re.findall(r"\d+|\D+", name)
            ],
        )
    else:
        names = sorted(names)
    return names[::-1] if order.endswith("desc") else names


def _sampled_name(named: ir.NamedExpr) -> str:
    from duckdb_kql.translate.naming import distinct_names

    return distinct_names((named,))[0]
