"""Values of dynamics: JSON that is none, the null of JSON, and numbers that JSON has no word for.

Contract: a member that is JSON's null is null, as one that is not there; NaN and the infinities are the
strings `NaN`, `Infinity` and `-Infinity` inside a dynamic, as Kusto's answers have them; text that is not
JSON by its standard (DuckDB takes trailing commas and NaN) stays text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from duckdb_kql import ir
from duckdb_kql.errors import KqlUnsupportedError
from duckdb_kql.translate import _dynamic_element as _librarys_element
from duckdb_kql.translate import quote_string, render_expr
from duckdb_kql.translate import render_path as _librarys_path

from lazydelta.engines.kql.kinds import HELD_KINDS, kind_of

_NOT_STANDARD = r",\s*[\]}]|(?i:nan|inf)"
_PLAIN = frozenset({"bool", "dynamic", "guid", "int", "long", "string"})

MACROS: dict[str, tuple[str, ...]] = {
    "_not_null": ("(j) AS nullif(j, CAST('null' AS JSON))",),
    # A pointer, since a path takes some names for patterns and cannot say others; of digits a pointer would
    # say places of an array, too.
    "_name_path": (
        "(name) AS CASE WHEN regexp_full_match(name, '[0-9]+') THEN '$.\"' || name || '\"' "
        "ELSE '/' || replace(replace(name, '~', '~0'), '/', '~1') END",
    ),
    "_is_standard_json": (
        f"(s) AS json_valid(s) AND NOT (regexp_matches(s, '{_NOT_STANDARD}') AND regexp_matches("
        f"""regexp_replace(s, '"(?:[^"\\\\]|\\\\.)*"', '""', 'g'), '{_NOT_STANDARD}'))""",
    ),
    # Whether a truth, or a number in a text, equals a number is not documented.
    "_no_number": (
        "(j) AS CASE WHEN json_type(j) = 'BOOLEAN' OR (json_type(j) = 'VARCHAR' AND "
        "TRY_CAST(j ->> '$' AS DOUBLE) IS NOT NULL) THEN error('a dynamic that holds a text or a truth is "
        "compared with a number: convert it with tolong() or toreal()') END",
    ),
    "_parsed_text": (
        "(s) AS CASE WHEN s = '' THEN NULL WHEN kql__is_standard_json(s) THEN kql__not_null(TRY_CAST(s AS "
        "JSON)) ELSE to_json(s) END",
    ),
}


def parsed(node: ir.FunctionCall) -> str | None:
    """`parse_json`: of text that is no JSON, that text; of another value, that value as a dynamic."""
    if len(node.args) != 1:
        return None
    (argument,) = node.args
    kind, value = kind_of(argument), render_expr(argument)
    if kind == "string":
        return f"kql__parsed_text({value})"
    if kind == "dynamic":
        return f"to_json({value})"
    if kind is not None:
        return element(argument)
    return (
        f"CASE typeof({value}) WHEN 'VARCHAR' THEN kql__parsed_text(CAST({value} AS VARCHAR)) "
        f"ELSE kql__element({value}) END"
    )


def member(node: ir.PathAccess) -> str:
    """A member of a dynamic, by its name or its place, or by a text or a number that tells them."""
    sql: ir.Expr = node.base
    plain: list[ir.PathStep] = []
    for step in node.steps:
        told = _told_path(step)
        if told is None:
            plain.append(step)
            continue
        sql, plain = ir.RenderedAggregate(f"json_extract({_librarys_member(sql, plain)}, {told})"), []
    return f"kql__not_null({_librarys_member(sql, plain)})"


def _librarys_member(base: ir.Expr, steps: Sequence[ir.PathStep]) -> str:
    sql: str = _librarys_path(ir.PathAccess(base, tuple(steps))) if steps else render_expr(base)
    return sql


def _told_path(step: ir.PathStep) -> str | None:
    """The path of a member that the library has no right one for; None: it has."""
    name = step.name
    if name is not None:
        pointer = "/" + name.replace("~", "~0").replace("/", "~1")
        return None if name.isidentifier() or name.isdecimal() else str(quote_string(pointer))
    if step.index is None:
        return None
    kind = kind_of(step.index)
    if kind == "dynamic":
        hint = "convert it, as in d[tostring(x)] or d[tolong(x)]"
        raise KqlUnsupportedError("an index that is a dynamic", hint=hint)
    return f"kql__name_path({render_expr(step.index)})" if kind == "string" else None


def element(node: ir.Expr) -> str:
    """A value as it is inside a dynamic."""
    kind, value = kind_of(node), render_expr(node)
    if kind in _PLAIN:
        return f"to_json({value})"
    if kind in ("datetime", "timespan"):
        sql: str = _librarys_element(node)
        return sql
    return f"kql__element({value})"


def comparison(operator: str) -> Callable[[ir.FunctionCall], str]:
    """A dynamic beside a number, by the number that it holds; what holds none equals none."""
    sign = {"==": "=", "!=": "<>"}.get(operator, operator)

    def written(node: ir.FunctionCall) -> str:
        held, number = f"to_json({render_expr(node.args[0])})", render_expr(node.args[1])
        sql = (
            f"CASE WHEN json_type({held}) IN ('BIGINT', 'UBIGINT') "
            f"THEN TRY_CAST({held} AS HUGEINT) {sign} {number} "
            f"WHEN json_type({held}) = 'DOUBLE' THEN TRY_CAST({held} AS DOUBLE) {sign} {number} "
            f"ELSE kql__no_number({held}) END"
        )
        return f"coalesce({sql}, {'FALSE' if sign == '=' else 'TRUE'})" if sign in ("=", "<>") else f"({sql})"

    return written


def held(kind: str) -> Callable[[ir.FunctionCall], str]:
    """What a dynamic holds of such a type, which is a text that reads so; null: it holds none."""

    def written(node: ir.FunctionCall) -> str:
        value = f"to_json({render_expr(node.args[0])})"
        if kind != "bool":
            read = render_expr(ir.FunctionCall(f"to{kind}", node.args))
            return f"CASE json_type({value}) WHEN 'VARCHAR' THEN {read} END"
        return (
            f"CASE WHEN json_type({value}) = 'BOOLEAN' THEN CAST({value} AS BOOLEAN) "
            f"WHEN json_type({value}) IN ('BIGINT', 'UBIGINT') THEN TRY_CAST({value} AS HUGEINT) <> 0 END"
        )

    return written


HELD = {f"dynamic {kind}": held(kind) for kind in HELD_KINDS}
COMPARISONS = {f"dynamic {one}": comparison(one) for one in ("==", "!=", "<", "<=", ">", ">=")}
