"""Random predicates that can be written as SQL and judged row by row, in three-valued logic.

The judge is as dumb as it can be: it is what the reader's file skipping is held against. A file may be
dropped only if no row of it makes the predicate true. Comparison follows Spark: NaN is the greatest
value and equals itself, -0.0 equals 0.0, strings compare by their UTF-8 bytes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any

import msgspec
from hypothesis import strategies as st

Row = Mapping[str, Any]
Truth = bool | None

_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda left, right: left == right,
    "<>": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}


class Compare(msgspec.Struct, frozen=True):
    """`column operator literal`"""

    column: str
    operator: str
    literal: Any


class IsIn(msgspec.Struct, frozen=True):
    """`column in (literals)`"""

    column: str
    literals: tuple[Any, ...]


class IsNull(msgspec.Struct, frozen=True):
    """`column is null`"""

    column: str


class StartsWith(msgspec.Struct, frozen=True):
    """`column like 'prefix%'`"""

    column: str
    prefix: str


class Not(msgspec.Struct, frozen=True):
    """`not (inner)`"""

    inner: Predicate


class Both(msgspec.Struct, frozen=True):
    """`(left) and (right)`, or with `or`."""

    operator: str
    left: Predicate
    right: Predicate


Predicate = Compare | IsIn | IsNull | StartsWith | Not | Both


def to_sql(predicate: Predicate) -> str:
    """The predicate as a user would type it."""
    match predicate:
        case Compare(column, operator, literal):
            return f"{column} {operator} {_sql_literal(literal)}"
        case IsIn(column, literals):
            return f"{column} in ({', '.join(_sql_literal(literal) for literal in literals)})"
        case IsNull(column):
            return f"{column} is null"
        case StartsWith(column, prefix):
            return f"{column} like {_sql_literal(prefix + '%')}"
        case Not(inner):
            return f"not ({to_sql(inner)})"
        case Both(operator, left, right):
            return f"({to_sql(left)}) {operator} ({to_sql(right)})"


def judge(predicate: Predicate, row: Row) -> Truth:
    """True, false or unknown for one row."""
    match predicate:
        case Compare(column, operator, literal):
            return _compare(row[column], operator, literal)
        case IsIn(column, literals):
            return _any([_compare(row[column], "=", literal) for literal in literals])
        case IsNull(column):
            return row[column] is None
        case StartsWith(column, prefix):
            return None if row[column] is None else str(row[column]).startswith(prefix)
        case Not(inner):
            answer = judge(inner, row)
            return None if answer is None else not answer
        case Both(operator, left, right):
            answers = [judge(left, row), judge(right, row)]
            return _any(answers) if operator == "or" else _all(answers)


def predicates(columns: Mapping[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[Predicate]:
    """Predicates over these columns; each column brings literals of its type."""
    leaves = st.one_of([_leaf(name, literals) for name, literals in columns.items()])
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.builds(Not, inner), st.builds(Both, st.sampled_from(["and", "or"]), inner, inner)
        ),
        max_leaves=4,
    )


def _leaf(column: str, literals: st.SearchStrategy[Any]) -> st.SearchStrategy[Predicate]:
    name = st.just(column)
    leaves: list[st.SearchStrategy[Predicate]] = [
        st.builds(Compare, name, st.sampled_from(sorted(_COMPARISONS)), literals),
        st.builds(IsIn, name, st.lists(literals, min_size=1, max_size=3).map(tuple)),
        st.builds(IsNull, name),
    ]
    if column in ("region", "device_id"):
        leaves.append(st.builds(StartsWith, name, st.sampled_from(["a", "d", "ü", "10"])))
    return st.one_of(leaves)


def _compare(value: Any, operator: str, literal: Any) -> Truth:
    if value is None:
        return None
    return _COMPARISONS[operator](_order(value), _order(literal))


def _order(value: Any) -> Any:
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    if isinstance(value, str):
        return value.encode()
    return (0, float(value)) if isinstance(value, int) else value


def _any(answers: Sequence[Truth]) -> Truth:
    if True in answers:
        return True
    return None if None in answers else False


def _all(answers: Sequence[Truth]) -> Truth:
    if False in answers:
        return False
    return None if None in answers else True


def _sql_literal(value: Any) -> str:
    if isinstance(value, date):
        return f"'{value.isoformat()}'"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return repr(value)
