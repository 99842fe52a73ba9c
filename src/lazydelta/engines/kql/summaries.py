"""Aggregates that give several columns, or read several: percentiles, weighted ones, take_any of a row.

Contract: `spread` turns such an aggregate into those of the library's kind, one a column, before names
are given.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping

from duckdb_kql import ir
from duckdb_kql.errors import KqlUnsupportedError
from duckdb_kql.translate import quote_ident
from duckdb_kql.translate.functions import AggregateSpec
from duckdb_kql.translate.naming import expression_name

from lazydelta.engines.kql.kinds import Kind, kind_of

WEIGHTED_ROWS_MAX = 10_000
_ROWS_VALUE = "kql any of row"
_WEIGHTED = "kql weighted percentile"
_ANY = ("any", "take_any")


def aggregates() -> dict[str, AggregateSpec]:
    """Rows for the library's table of aggregates."""
    rows = [
        _AnyOfRow(_ROWS_VALUE, ""),
        _Weighted(_WEIGHTED, ""),
        AggregateSpec("percentiles", ""),
        AggregateSpec("percentilesw", ""),
        AggregateSpec("percentilew", ""),
        _PercentilesArray("percentiles_array", "", name_prefix="percentiles"),
        _PercentilesArray("percentilesw_array", "", name_prefix="percentiles"),
    ]
    return {row.name: row for row in rows}


def spread(op: ir.Summarize, cols: list[str] | None) -> ir.Summarize:
    """The operator with one aggregate a column."""
    made = [one for aggregate in op.aggregates for one in _spread(aggregate, op, cols)]
    return dataclasses.replace(op, aggregates=tuple(made))


def _spread(named: ir.NamedExpr, op: ir.Summarize, cols: list[str] | None) -> list[ir.NamedExpr]:
    call = named.expr
    if not isinstance(call, ir.FunctionCall):
        return [named]
    name = call.name.lower()
    if name in ("percentile", "percentiles", "percentilesw", "percentilew"):
        return _percentiles(named, call, is_weighted=name.endswith("w"))
    is_star = any(isinstance(arg, ir.Wildcard) for arg in call.args)
    if name in _ANY and (len(call.args) > 1 or is_star):
        return _any_of_row(named, call, op, cols)
    return [named]


def kind_of_aggregate(expr: ir.Expr, columns: Mapping[str, Kind]) -> Kind:
    """The type of what `spread` made of an aggregate; `columns` are those before it."""
    if not isinstance(expr, ir.FunctionCall):
        return kind_of(expr)
    if expr.name == _ROWS_VALUE:
        at = expr.args[0]
        value = expr.args[1 + int(at.value or 0)] if isinstance(at, ir.Literal) else at
        return kind_of(value) or columns.get(getattr(value, "name", ""))
    if expr.name in ("percentile", _WEIGHTED):
        kind = kind_of(expr.args[0])
        return None if kind == "decimal" else kind
    return kind_of(expr)


def _percentiles(named: ir.NamedExpr, call: ir.FunctionCall, *, is_weighted: bool) -> list[ir.NamedExpr]:
    given = 2 if is_weighted else 1
    if len(call.args) <= given:
        raise KqlUnsupportedError(f"aggregate:{call.name}", hint="it needs a percentile")
    value = call.args[0]
    made = []
    for at, percentile in enumerate(call.args[given:]):
        one = ir.FunctionCall(_WEIGHTED if is_weighted else "percentile", (*call.args[:given], percentile))
        own = named.name if at == 0 and named.name else _percentile_name(value, percentile)
        made.append(ir.NamedExpr(one, own))
    return made


def _percentile_name(value: ir.Expr, percentile: ir.Expr) -> str:
    number = percentile.value if isinstance(percentile, ir.Literal) else ""
    text = str(int(number)) if isinstance(number, float) and number.is_integer() else str(number)
    return f"percentile_{expression_name(value) or ''}_{text.replace('.', '_')}"


def _any_of_row(
    named: ir.NamedExpr, call: ir.FunctionCall, op: ir.Summarize, cols: list[str] | None
) -> list[ir.NamedExpr]:
    """Values of one and the same row."""
    if len(call.args) == 1:
        if cols is None:
            raise KqlUnsupportedError(f"aggregate:{call.name}", hint="the columns before it are not known")
        keys = {key.expr.name for key in op.by if isinstance(key.expr, ir.ColumnRef)}
        values: tuple[ir.Expr, ...] = tuple(ir.ColumnRef(name) for name in cols if name not in keys)
    else:
        values = call.args
    prefix = "any_" if call.name.lower() == "any" else ""
    made = []
    for at, value in enumerate(values):
        own = f"{prefix}{expression_name(value) or ''}" or None
        name = named.name if at == 0 and named.name else own
        made.append(ir.NamedExpr(ir.FunctionCall(_ROWS_VALUE, (ir.Literal(at, "long"), *values)), name))
    return made


class _AnyOfRow(AggregateSpec):
    def render(self, args: list[str]) -> str:
        at = int(re.sub(r"\D", "", args[0].split(" ")[0]))
        row = ", ".join(f"{quote_ident(f'v{number}')} := {value}" for number, value in enumerate(args[1:]))
        return f"kql__text_or((any_value(struct_pack({row}))).v{at})"


class _Weighted(AggregateSpec):
    """The least value that has the share of all weights at or below it."""

    def render(self, args: list[str]) -> str:
        value, weight, percentile = args
        rows = f"list({{'v': {value}, 'w': {weight}}}) FILTER (WHERE {value} IS NOT NULL AND {weight} > 0)"
        told = "error('weighted percentiles of too many rows')"
        guard = f"CASE WHEN count(*) > {WEIGHTED_ROWS_MAX} THEN {told} END"
        return f"kql__weighted(list_sort({rows}), {percentile} / 100.0, {guard})"


class _PercentilesArray(AggregateSpec):
    def render(self, args: list[str]) -> str:
        is_weighted = self.name.startswith("percentilesw")
        given = args[: 2 if is_weighted else 1]
        numbers = [number for arg in args[len(given) :] for number in _numbers(arg)]
        if not numbers:
            raise ValueError(f"{self.name}() needs percentiles")
        if is_weighted:
            one = _Weighted(_WEIGHTED, "")
            values = ", ".join(one.render([*given, number]) for number in numbers)
            return f"to_json([{values}])"
        values = ", ".join(f"{number} / 100.0" for number in numbers)
        quantiles = f"quantile_disc({given[0]}, [{values}])"
        return f"to_json(list_transform({quantiles}, lambda _q: kql__element(_q)))"


def _numbers(sql: str) -> list[str]:
    found = re.fullmatch(r"CAST\('(\[.*\])' AS JSON\)", sql)
    return [str(number) for number in json.loads(found[1])] if found else [sql]
