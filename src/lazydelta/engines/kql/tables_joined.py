"""Joins, look-ups and unions, where the translation library knows no types of columns.

Text is never null in Kusto: where a row has no partner, a text of the other side is empty. Columns of one
name and two types are two columns in Kusto's union; they are an error here, when the query runs.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from duckdb_kql import ir, translate
from duckdb_kql.schema import _no_case_collision, output_columns, surviving_branches
from duckdb_kql.translate import quote_ident, quote_string

from lazydelta.engines.kql.operators import NamedRows

_OUTER = ("leftouter", "rightouter", "fullouter")


def apart(names: list[str], operator: str) -> list[str]:
    """The columns of a result, none of which DuckDB takes for another: it does not tell cases apart.

    The library asks this of what the next operator reads, and so not of the last one.
    """
    checked: list[str] = _no_case_collision(names, operator)
    return checked


def without_null_texts(sql: str, names: list[str], kind: str) -> str:
    """What an outer join gives, with its texts empty instead of null."""
    if kind not in _OUTER:
        return sql
    columns = ", ".join(f"kql__text_or({quote_ident(name)}) AS {quote_ident(name)}" for name in names)
    return f"SELECT {columns} FROM ({sql})"


def checked_union(
    sql: str,
    op: ir.Union,
    prev: str,
    left_cols: list[str],
    schema: Any,  # Any: the library's names of columns by table
) -> str:
    """A union that tells columns of several types apart, and fills texts that a table lacks."""
    sides = [(f"SELECT * FROM {prev}", left_cols)]
    sides += [
        (str(translate.to_sql(branch, schema)), output_columns(branch, schema))
        for branch in surviving_branches(op, schema)
        if not isinstance(branch.source, ir.WildcardTableRef)
    ]
    checks = [check for name in _shared([cols for _, cols in sides]) for check in _checks(name, sides)]
    names = apart(_output(op, left_cols, schema), "union")
    filled = ", ".join(f"kql__text_or({quote_ident(name)}) AS {quote_ident(name)}" for name in names)
    where = f" WHERE {' AND '.join(checks)}" if checks else ""
    return f"SELECT {filled} FROM ({sql}){where}"


def label(query: ir.Query) -> str | None:
    """The name that `as` gave to the rows of a branch."""
    last = query.operators[-1] if query.operators else None
    return last.name if isinstance(last, NamedRows) else None


def view_label(source: ir.Source) -> str | None:
    """The name of a view, whose rows stand under a name made for the call."""
    found = re.fullmatch(r"(.+)\(\)#+\d+", source.name) if isinstance(source, ir.TableRef) else None
    return found[1] if found else None


def _shared(sides: list[list[str]]) -> list[str]:
    """Names that more than one side has."""
    counted = Counter(name for cols in sides for name in cols)
    return [name for name, count in counted.items() if count > 1]


def _output(op: ir.Union, cols: list[str], schema: Any) -> list[str]:
    from duckdb_kql.schema import union_output_columns

    return union_output_columns(op, cols, schema)


def _checks(name: str, sides: list[tuple[str, list[str]]]) -> list[str]:
    """Types are known when the query is bound: of no rows at all."""
    types = [
        f"typeof((SELECT {quote_ident(name)} FROM ({sql}) LIMIT 0))" for sql, cols in sides if name in cols
    ]
    told = quote_string(f"union: the column {name} has several types")
    return [f"CASE WHEN {types[0]} = {other} THEN true ELSE error({told}) END" for other in types[1:]]
