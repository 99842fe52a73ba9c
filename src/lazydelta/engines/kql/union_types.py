"""Unions of tables whose columns have one name and several types: Kusto makes a column of each type.

Contract: `x` of a long and of a string become `x_long` and `x_string`, where `x` first stood. Where the types
of a side are not known the union is checked when it runs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence, Set

from duckdb_kql import ir
from duckdb_kql.errors import KqlUnsupportedError

from lazydelta.engines.kql.kinds import Kind
from lazydelta.engines.kql.operator_columns import Columns
from lazydelta.engines.kql.operators import NamedRows

Sides = Sequence[Columns | None]


def told_apart(op: ir.Union, sides: Sides, bound: Set[str]) -> tuple[list[ir.Operator], Columns | None]:
    """The operators that make the union, and the columns that it gives; `bound`: names that are no tables."""
    known = [side for side in sides if side is not None]
    if len(known) < len(sides):
        return [op], None
    several = _several(known)
    if any(side[name] is None for name in several for side in known if name in side):
        return [op], None
    if not several:
        return [op], _with_source(op, _merged(op, known))
    if op.kind == "inner":
        raise KqlUnsupportedError("union", hint=f"kind=inner, the column {several[0]!r} has several types")
    renamed = [_renames(side, several) for side in known]
    branches = tuple(
        _renamed(branch, renames, op, bound) for branch, renames in zip(op.branches, renamed[1:], strict=True)
    )
    columns = _ordered(known, several)
    before: list[ir.Operator] = [ir.ProjectRename(renamed[0])] if renamed[0] else []
    order = ir.Project(tuple(ir.NamedExpr(ir.ColumnRef(name)) for name in _with_source(op, columns)))
    if before and op.with_source:
        raise KqlUnsupportedError("union withsource", hint=f"the column {several[0]!r} has several types")
    return [*before, dataclasses.replace(op, branches=branches), order], _with_source(op, columns)


def _several(sides: Sequence[Columns]) -> list[str]:
    """Names of several types."""
    names = dict.fromkeys(name for side in sides for name in side)
    return [name for name in names if len(_kinds(name, sides)) > 1]


def _kinds(name: str, sides: Sequence[Columns]) -> set[Kind]:
    return {side[name] for side in sides if name in side} - {None}


def _merged(op: ir.Union, sides: Sequence[Columns]) -> Columns:
    """One column a name; of a type that one side does not know it is the other's."""
    found: Columns = {}
    for side in sides:
        for name, kind in side.items():
            found[name] = found.get(name) or kind
    if op.kind == "inner":
        return {name: kind for name, kind in found.items() if all(name in side for side in sides)}
    return found


def _renames(side: Columns, several: Sequence[str]) -> tuple[tuple[str, str], ...]:
    return tuple((name, f"{name}_{side[name]}") for name in several if name in side)


def _renamed(
    branch: ir.Query, renames: tuple[tuple[str, str], ...], op: ir.Union, bound: Set[str]
) -> ir.Query:
    if not renames:
        return branch
    label: list[ir.Operator] = []
    if op.with_source:
        if branch.operators or not isinstance(branch.source, ir.TableRef) or branch.source.name in bound:
            raise KqlUnsupportedError("union withsource", hint="of queries whose columns have several types")
        label = [NamedRows(branch.source.name)]
    return dataclasses.replace(branch, operators=[*branch.operators, ir.ProjectRename(renames), *label])


def _ordered(sides: Sequence[Columns], several: Sequence[str]) -> Columns:
    found: Columns = {}
    for name in dict.fromkeys(name for side in sides for name in side):
        for side in sides:
            if name in side:
                kind = side[name]
                found[f"{name}_{kind}" if name in several else name] = kind
    return found


def _with_source(op: ir.Union, columns: Columns) -> Columns:
    return {op.with_source: "string", **columns} if op.with_source else columns
