"""`mv-expand`: members of arrays and bags as rows.

Contract: as the library has it, which measured Kusto's emulator, but for three things: whole numbers do not
pass through a double, any name of a member can be read, and columns come in the order they are written in.
"""

from __future__ import annotations

import dataclasses

from duckdb_kql import ir
from duckdb_kql.translate import _mv_expand_convert as _librarys_conversion
from duckdb_kql.translate import quote_ident

_WHOLE = {"long": "BIGINT", "int": "INTEGER"}


def lowered(calculated: ir.Extend, expand: ir.MvExpand) -> list[ir.Operator]:
    """Where one of several is calculated, all are columns before any is expanded."""
    made = {one.name: one for one in calculated.expressions}
    columns, targets = [], []
    for target in expand.targets:
        name = target.name or target.column
        if target.name is not None:
            columns.append(ir.NamedExpr(ir.ColumnRef(target.column), name))
        elif name in made:
            columns.append(made[name])
        targets.append(ir.MvExpandTarget(name, None, target.to_type))
    return [ir.Extend(tuple(columns)), dataclasses.replace(expand, targets=tuple(targets))]


def elements(op: ir.MvExpand, target: ir.MvExpandTarget) -> str:
    """The list of what a column holds."""
    column = quote_ident(target.column)
    pair = "json_array" if op.array_expansion else "json_object"
    bag = (
        f"list_transform(json_keys({column}), "
        f"lambda name: {pair}(name, json_extract({column}, kql__name_path(name))))"
    )
    found = (
        f"CAST(CASE json_type({column}) WHEN 'ARRAY' THEN json_extract({column}, '$[*]') "
        f"WHEN 'OBJECT' THEN {bag} ELSE json_array({column}) END AS JSON[])"
    )
    return found if op.limit is None else f"list_slice({found}, 1, {max(op.limit, 0)})"


def converted(value: str, to_type: str) -> str:
    """`to typeof(…)`: a number with a fraction is cut, and what is no number is null."""
    kind = _WHOLE.get(to_type)
    if kind is None:
        sql: str = _librarys_conversion(value, to_type)
        return sql
    return (
        f"CASE WHEN json_type({value}) IN ('BIGINT', 'UBIGINT') THEN TRY_CAST({value} AS {kind}) "
        f"WHEN json_type({value}) = 'DOUBLE' "
        f"THEN TRY_CAST(trunc(TRY_CAST({value} AS DOUBLE)) AS {kind}) END"
    )
