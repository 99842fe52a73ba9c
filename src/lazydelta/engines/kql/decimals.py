"""Kusto's decimals, which are exact here or refused: literals of their own digits, lossless conversions.

Why: DuckDB's decimals have a fixed number of digits after the point, which is part of the type. Contract: a
value that does not fit is an error, never another value and never null.
"""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import Any

from duckdb_kql import ir, lower
from duckdb_kql.errors import KqlUnsupportedError
from duckdb_kql.translate import render_expr, render_kql_tostring

from lazydelta.engines.kql.kinds import WHOLE, kind_of

DIGITS_MAX = 38
# Columns of `datatable` have as many digits after the point as their values.
TYPES = {f"decimal {scale}": f"DECIMAL({DIGITS_MAX}, {scale})" for scale in range(DIGITS_MAX + 1)}
# Of what is converted while the query runs: before the point any whole number fits.
_SCALE = 17
_INSIDE = re.compile(r"^\s*decimal\s*\((.*)\)\s*$", re.DOTALL | re.IGNORECASE)
_NUMBER = r"^\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*$"


def literal(node: Any) -> ir.Literal:  # Any: ANTLR's trees have no types
    """`decimal(1.5)` with the digits that it has."""
    text = lower._literal_text(node)
    inside = _INSIDE.match(text)
    digits = (inside[1] if inside else text).strip().strip("'\"")
    if digits.lower() in ("null", ""):
        return ir.Literal(None, "decimal")
    try:
        value = Decimal(digits)
    except InvalidOperation:
        value = Decimal("NaN")
    if not value.is_finite():
        hint = f"{digits!r} could not be parsed as a literal of type 'decimal'"
        raise KqlUnsupportedError("literal:decimal", span=lower._span(node), hint=hint)
    return ir.Literal(format(value, "f"), "decimal")


def rendered(node: ir.Literal) -> str:
    """The SQL of a literal, with as many digits as it needs."""
    if node.value is None:
        return f"CAST(NULL AS DECIMAL({DIGITS_MAX}, {_SCALE}))"
    text = format(Decimal(repr(node.value) if isinstance(node.value, float) else str(node.value)), "f")
    whole, _, fraction = text.lstrip("+-").partition(".")
    width = max(1, len(whole.lstrip("0")) + len(fraction))
    if width > DIGITS_MAX:
        raise KqlUnsupportedError("literal:decimal", hint=f"{text} has more than {DIGITS_MAX} digits")
    return f"CAST('{text}' AS DECIMAL({width}, {len(fraction)}))"


def with_own_digits(table: ir.DataTable) -> ir.DataTable:
    """The table with types for its decimals that hold all their digits."""
    made = []
    for at, (name, kind) in enumerate(table.columns):
        scale = max(map(_scale, table.values[at :: len(table.columns)]), default=0)
        made.append((name, f"decimal {scale}" if kind == "decimal" else kind))
    return ir.DataTable(tuple(made), table.values)


def _scale(node: ir.Expr) -> int:
    """Digits after the point of a literal."""
    if isinstance(node, ir.UnaryOp):
        return _scale(node.operand)
    if not isinstance(node, ir.Literal) or node.value is None:
        return 0
    value = repr(node.value) if isinstance(node.value, float) else str(node.value)
    return len(format(Decimal(value), "f").partition(".")[2]) if re.match(_NUMBER, value) else 0


def converted(node: ir.FunctionCall) -> str:
    """`todecimal(…)`: null of what is no number, an error of one that does not fit."""
    if len(node.args) != 1:
        raise KqlUnsupportedError("function:todecimal", hint="takes 1 argument")
    value = node.args[0]
    if kind_of(value) == "decimal":
        return render_expr(value)
    if isinstance(value, ir.Literal) and value.kind == "string" and re.match(_NUMBER, str(value.value)):
        return rendered(ir.Literal(format(Decimal(str(value.value).strip()), "f"), "decimal"))
    if kind_of(value) in WHOLE:
        return f"CAST({render_expr(value)} AS DECIMAL({DIGITS_MAX}, {_SCALE}))"
    return f"kql__decimal({render_kql_tostring(value)})"


MACROS: dict[str, tuple[str, ...]] = {
    # What is cut or does not fit would be another value, or null.
    "_decimal": (
        f"(s) AS CASE WHEN NOT regexp_matches(s, '{_NUMBER}') THEN NULL "
        f"WHEN regexp_matches(s, '\\.[0-9]{{{_SCALE},}}[1-9]') "
        f"OR TRY_CAST(s AS DECIMAL({DIGITS_MAX}, {_SCALE})) IS NULL "
        f"THEN error('todecimal: more digits than fit: ' || s) "
        f"ELSE TRY_CAST(s AS DECIMAL({DIGITS_MAX}, {_SCALE})) END",
    ),
}
