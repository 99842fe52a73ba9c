"""The filter language: one small tree of frozen nodes, printable as SQL that parses back to the same tree.

Why: every form a filter comes in (SQL text, JSON, lists, Python operators) becomes this tree, and everything
after it, from pruning to `explain`, works on this tree alone. Contract: nodes are immutable, hashable and
compare by content; they know no schema. Names are logical paths. Three-valued logic, as in SQL.
"""

from __future__ import annotations

import re
from typing import Literal as OneOf
from typing import NoReturn

import msgspec

from lazydelta.predicate.literal import Literal, literal_sql, text_sql

ColumnPath = tuple[str, ...]
Operator = OneOf["=", "<>", "<", "<=", ">", ">="]

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
# Words that SQL reads as something else than a column where a column may stand.
_RESERVED = frozenset(
    """
    all alter and any as asc between by call case cast collate connect_by_root create cross
    current_date current_datetime current_role current_schema current_time current_timestamp
    current_user default delete desc describe distinct drop else end escape except execute exists
    explain false fetch for from full glob grant group having if ilike in inner insert intersect
    interval into is isnull join lateral left like limit localtime localtimestamp natural not
    notnull null offset on optimize or order outer over partitioned_by prepare qualify regexp rename
    replace returning revoke right rlike rollback select session_user set show some table
    tablesample then true uncache union unique update using vacuum values when where window with xor
    """.split()  # noqa: SIM905  # a hundred words read better as text
)


class Expression(msgspec.Struct, frozen=True):
    """A condition on rows. Combine with `&`, `|` and `~`; `str()` gives SQL."""

    def __and__(self, other: Expression) -> Expression:
        return all_of(self, _condition(other))

    def __or__(self, other: Expression) -> Expression:
        return any_of(self, _condition(other))

    def __rand__(self, other: Expression) -> Expression:
        return all_of(_condition(other), self)

    def __ror__(self, other: Expression) -> Expression:
        return any_of(_condition(other), self)

    def __invert__(self) -> Expression:
        return Not(self)

    def __bool__(self) -> NoReturn:
        raise TypeError(
            f"the filter {self} is neither true nor false before it meets rows: "
            "combine filters with &, | and ~ instead of and, or and not, put each comparison in "
            "parentheses, and write .between(a, b) instead of a < column < b"
        )

    def __str__(self) -> str:
        return to_sql(self)


class Constant(Expression, frozen=True):
    """`TRUE`, `FALSE` or `NULL`, whatever the row."""

    value: bool | None


class Comparison(Expression, frozen=True):
    """`column operator literal`; null where the column or the literal is."""

    column: ColumnPath
    operator: Operator
    literal: Literal


class In(Expression, frozen=True):
    """`column IN (…)`; null where the column is, or where no value equals and one of them is null."""

    column: ColumnPath
    literals: tuple[Literal, ...]


class Like(Expression, frozen=True):
    r"""`column LIKE pattern`: `%` any text, `_` one character; after `\` either, or `\`, is itself."""

    column: ColumnPath
    pattern: str


class IsNull(Expression, frozen=True):
    """`column IS NULL`."""

    column: ColumnPath


class And(Expression, frozen=True):
    """All parts hold. Two or more, none of them an `And`: built by `all_of`."""

    parts: tuple[Expression, ...]


class Or(Expression, frozen=True):
    """Some part holds. Two or more, none of them an `Or`: built by `any_of`."""

    parts: tuple[Expression, ...]


class Not(Expression, frozen=True):
    """The part does not hold; null stays null."""

    part: Expression


def all_of(*parts: Expression) -> Expression:
    """The conjunction, flat; of nothing: true."""
    flat = [inner for part in parts for inner in (part.parts if isinstance(part, And) else (part,))]
    if not flat:
        return Constant(True)
    return flat[0] if len(flat) == 1 else And(tuple(flat))


def any_of(*parts: Expression) -> Expression:
    """The disjunction, flat; of nothing: false."""
    flat = [inner for part in parts for inner in (part.parts if isinstance(part, Or) else (part,))]
    if not flat:
        return Constant(False)
    return flat[0] if len(flat) == 1 else Or(tuple(flat))


def to_sql(expression: Expression) -> str:  # noqa: PLR0911  # one case per node
    """SQL text of the expression; `parse_where` reads it back to an equal tree."""
    match expression:
        case Constant(value):
            return literal_sql(Literal(value))
        case Comparison(column, operator, literal):
            return f"{column_sql(column)} {operator} {literal_sql(literal)}"
        case In(column, literals):
            return f"{column_sql(column)} IN ({', '.join(map(literal_sql, literals))})"
        case Like(column, pattern):
            return f"{column_sql(column)} LIKE {text_sql(pattern)}"
        case IsNull(column):
            return f"{column_sql(column)} IS NULL"
        case Not(IsNull(column)):
            return f"{column_sql(column)} IS NOT NULL"
        case Not(part):
            return f"NOT ({to_sql(part)})"
        case And(parts):
            return " AND ".join(
                f"({to_sql(part)})" if isinstance(part, Or) else to_sql(part) for part in parts
            )
        case Or(parts):
            return " OR ".join(
                f"({to_sql(part)})" if isinstance(part, And) else to_sql(part) for part in parts
            )
    raise AssertionError(f"no SQL for {type(expression).__name__}")


def column_sql(path: ColumnPath) -> str:
    """The column as SQL: dotted, each name quoted where it must be."""
    return ".".join(_name_sql(name) for name in path)


def _condition(other: object) -> Expression:
    if isinstance(other, Expression):
        return other
    as_condition = getattr(other, "as_condition", None)
    if as_condition is None:
        raise TypeError(
            f"{other!r} is not a filter: put each comparison in parentheses, as in (a > 1) & (b < 2)"
        )
    condition: Expression = as_condition()
    return condition


def _name_sql(name: str) -> str:
    if _PLAIN_NAME.match(name) and name.lower() not in _RESERVED:
        return name
    escaped = name.replace('"', '""')
    return f'"{escaped}"'
