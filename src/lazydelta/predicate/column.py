"""Filters in Python: `col("value") > 3`.

Contract: a `Column` makes expressions and is none itself: its `==` builds a comparison. Where a condition is
expected, a bare column means "is true".
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NoReturn

from lazydelta.errors import InvalidRequestError
from lazydelta.predicate.expression import (
    ColumnPath,
    Comparison,
    Expression,
    In,
    IsNull,
    Like,
    Not,
    Operator,
    all_of,
    column_sql,
)
from lazydelta.predicate.literal import checked_text, literal

# A part of a dotted name: quoted by backticks or double quotes, or plain.
_NAME_PART = re.compile(r'`((?:[^`]|``)+)`|"((?:[^"]|"")+)"|([^.`"]+)')
_LIKE_SPECIAL = re.compile(r"([\\%_])")


def col(*names: str) -> Column:
    """A column: `col("value")`, nested `col("a.b")` or `col("a", "b")`, with a dot in it ``col("`a.b`")``."""
    if len(names) == 1:
        return Column(column_path(names[0]))
    if not names or not all(names):
        raise InvalidRequestError("a column needs a name", "col()", 'write col("value")')
    return Column(tuple(map(checked_text, names)))


class Column:
    """A column in a filter under construction."""

    __slots__ = ("path",)
    __hash__ = None  # type: ignore[assignment]  # `==` builds a filter, so sets of columns would lie

    def __init__(self, path: ColumnPath) -> None:
        self.path = path

    def __eq__(self, other: object) -> Expression:  # type: ignore[override]  # the point of this class
        return self._compare("=", other)

    def __ne__(self, other: object) -> Expression:  # type: ignore[override]  # the point of this class
        return self._compare("<>", other)

    def __lt__(self, other: object) -> Expression:
        return self._compare("<", other)

    def __le__(self, other: object) -> Expression:
        return self._compare("<=", other)

    def __gt__(self, other: object) -> Expression:
        return self._compare(">", other)

    def __ge__(self, other: object) -> Expression:
        return self._compare(">=", other)

    def is_in(self, values: Iterable[object]) -> Expression:
        """The column equals one of the values."""
        return In(self.path, tuple(literal(value) for value in values))

    def between(self, low: object, high: object) -> Expression:
        """The column lies between the two values, both included."""
        return all_of(self >= low, self <= high)

    def is_null(self) -> Expression:
        """The column has no value."""
        return IsNull(self.path)

    def is_not_null(self) -> Expression:
        """The column has a value."""
        return Not(IsNull(self.path))

    def starts_with(self, prefix: str) -> Expression:
        """The text begins with `prefix`, taken literally."""
        return Like(self.path, _LIKE_SPECIAL.sub(r"\\\1", checked_text(prefix)) + "%")

    def like(self, pattern: str) -> Expression:
        r"""The text matches an SQL pattern: `%` any text, `_` one character, `\` escapes."""
        return Like(self.path, checked_text(pattern))

    def as_condition(self) -> Expression:
        """The column as a condition of its own: is it true?"""
        return self == True  # noqa: E712  # builds a comparison

    def __and__(self, other: Expression) -> Expression:
        return self.as_condition() & other

    def __or__(self, other: Expression) -> Expression:
        return self.as_condition() | other

    def __invert__(self) -> Expression:
        return Not(self.as_condition())

    def __bool__(self) -> NoReturn:
        raise TypeError(
            f"the column {self} is neither true nor false before it meets rows: combine filters with &, | "
            "and ~, and write .is_in([…]) instead of in"
        )

    def __repr__(self) -> str:
        return f"col({', '.join(map(repr, self.path))})"

    def __str__(self) -> str:
        return column_sql(self.path)

    def _compare(self, operator: Operator, other: object) -> Expression:
        if other is None:
            raise InvalidRequestError(
                f"{self} {operator} None is never true", "the filter", "use .is_null() or .is_not_null()"
            )
        return Comparison(self.path, operator, literal(other))


def column_path(dotted: str) -> ColumnPath:
    """The path that a dotted name means; quoted parts keep their dots."""
    checked_text(dotted)
    names: list[str] = []
    at = 0
    while at <= len(dotted):
        part = _NAME_PART.match(dotted, at)
        if part is None or (part.end() < len(dotted) and dotted[part.end()] != "."):
            raise InvalidRequestError(
                f"{dotted!r} is not a column name",
                "the filter",
                'write "a", "a.b", or "`a.b`" for a dot in a name',
            )
        backticked, quoted, plain = part.groups()
        names.append(
            backticked.replace("``", "`") if backticked else quoted.replace('""', '"') if quoted else plain
        )
        at = part.end() + 1
    return tuple(names)
