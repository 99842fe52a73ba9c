"""Hints of clients as a filter that never drops a file which a client still needs.

Why: hints are best effort: a client filters the rows again, by its own rules. A file may be left out only
where every reading of the hint says that it has no row, so whatever two engines may read differently is
passed over, a conjunct at a time: text with a backslash or in double quotes, times without a zone (Spark
takes its session's), timestamps of partitions (written without a zone), columns or types that do not fit,
numbers of more digits than a double tells apart, where it may be by doubles that they are compared.
Contract: `read_hints` never raises, and its work is bounded: what is more than the limits is passed over.
`is_whole` says that the filter is all that the client goes by.
Spec: PROTOCOL.md of Delta Sharing, "SQL Expressions for Filtering", "JSON predicates for Filtering".
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any

import msgspec

from lazydelta import limits
from lazydelta.errors import InvalidRequestError
from lazydelta.log.snapshot import Snapshot
from lazydelta.predicate import BoundColumn, Expression, bind, parse_where
from lazydelta.predicate.columns import resolve_column
from lazydelta.predicate.expression import (
    And,
    Comparison,
    Constant,
    In,
    IsNull,
    Like,
    Not,
    Or,
    all_of,
)
from lazydelta.predicate.literal import Literal
from lazydelta.predicate.moments import read_moment
from lazydelta.serve.sharing.json_hints import json_expression

_DIGITS_MAX = 15  # of a decimal: a double tells any two apart
_INTEGERS = frozenset({"byte", "short", "integer", "long"})
_EXACT_MAX = 1 << 53  # of integers as doubles
_NUMBERS = _INTEGERS | {"float", "double"}
_PARSE_TROUBLES = (InvalidRequestError, RecursionError, ValueError, TypeError, ArithmeticError)


class Hints(msgspec.Struct, frozen=True, kw_only=True):
    """What is left of a client's hints."""

    predicate: Expression | None  # None: all files
    is_whole: bool  # nothing was passed over


def read_hints(snapshot: Snapshot, sql: Sequence[str] | None, json: str | None) -> Hints:
    """The filter that all of them allow."""
    given: list[Expression | None] = []
    is_exact = len(sql or ()) <= limits.SERVE_HINTS_MAX
    characters = limits.SERVE_HINT_CHARACTERS_MAX
    if json and len(json) <= characters:
        characters -= len(json)
        found, is_exact_tree = _json_expression(json, snapshot)
        given.append(found)
        is_exact = is_exact and is_exact_tree
    elif json:
        given.append(None)
    for text in (sql or ())[: limits.SERVE_HINTS_MAX]:
        is_short = len(text) <= characters
        characters -= len(text) if is_short else 0
        given.append(_sql_expression(text) if is_short else None)
    parts = [part for hint in _few(given) for part in (hint.parts if isinstance(hint, And) else (hint,))]
    kept = [part for part in parts if part is not None and _is_safe(part, snapshot)]
    is_whole = is_exact and len(kept) == len(parts)
    return Hints(predicate=all_of(*kept) if kept else None, is_whole=is_whole)


def _few(given: Iterable[Expression | None]) -> Iterator[Expression | None]:
    """The same, but None for what is too much."""
    left = limits.SERVE_HINT_LEAVES_MAX
    for hint in given:
        count = 0 if hint is None else sum(1 for _ in _leaves(hint))
        is_within = count <= left
        left -= count if is_within else 0
        yield hint if is_within else None


def _sql_expression(text: str) -> Expression | None:
    if "\\" in text or '"' in text or text.lstrip().startswith(("{", "[")):
        return None
    try:
        return parse_where(text)
    except _PARSE_TROUBLES:
        return None


def _json_expression(text: str, snapshot: Snapshot) -> tuple[Expression | None, bool]:
    try:
        return json_expression(text, lambda name: _column((name,), snapshot).type_name)
    except _PARSE_TROUBLES:
        return None, False


def _is_safe(part: Expression, snapshot: Snapshot) -> bool:
    """Whether it fits the table, and every engine reads it alike."""
    metadata = snapshot.state.metadata
    try:
        bind(part, snapshot.schema, metadata.partition_columns, where="hints")
        return all(_is_plain(leaf, snapshot) for leaf in _leaves(part))
    except _PARSE_TROUBLES:
        return False


def _is_plain(leaf: Expression, snapshot: Snapshot) -> bool:
    match leaf:
        case Constant() | IsNull():
            return True
        case Comparison(path, _, literal):
            return _is_plain_value(_column(path, snapshot), [literal])
        case In(path, literals):
            return _is_plain_value(_column(path, snapshot), literals)
        case Like(path, _):
            return _column(path, snapshot).type_name == "string"
    return False


def _is_plain_value(column: BoundColumn, literals: Iterable[Literal]) -> bool:
    if column.is_collated or (column.is_partition and column.type_name == "timestamp"):
        return False
    return all(_is_value_of(column.type_name, literal.value) for literal in literals)


def _is_value_of(type_name: str, value: Any) -> bool:  # noqa: PLR0911  # one case per type; Any: a literal's
    if value is None:
        return False  # never true in SQL, and engines fold it each their own way
    if isinstance(value, bool) or type_name == "boolean":
        return isinstance(value, bool) and type_name == "boolean"
    if type_name in _NUMBERS or type_name.startswith("decimal"):
        return isinstance(value, int | float | Decimal) and _is_same_by_doubles(type_name, value)
    if type_name == "string":
        return isinstance(value, str)
    moment = read_moment(value) if isinstance(value, str) else value
    if type_name == "date":
        return isinstance(moment, dt.date) and not isinstance(moment, dt.datetime)
    if type_name == "timestamp":
        return isinstance(moment, dt.datetime) and moment.tzinfo is not None
    if type_name == "timestamp_ntz":
        return isinstance(moment, dt.datetime) and moment.tzinfo is None
    return False


def _is_same_by_doubles(type_name: str, value: int | float | Decimal) -> bool:
    """Whether engines that compare such a number by doubles, and those that do not, agree."""
    if type_name in {"float", "double"} or isinstance(value, int):
        return True
    if isinstance(value, float) or len(value.as_tuple().digits) > _DIGITS_MAX:
        return False
    if type_name in _INTEGERS:
        return abs(value) <= _EXACT_MAX
    precision = re.match(r"decimal\((\d+)", type_name)
    return precision is not None and int(precision[1]) <= _DIGITS_MAX


def _column(path: tuple[str, ...], snapshot: Snapshot) -> BoundColumn:
    partitions = frozenset(snapshot.state.metadata.partition_columns)
    return resolve_column(path, snapshot.schema, partitions, "hints")


def _leaves(expression: Expression) -> Iterator[Expression]:
    match expression:
        case And(parts) | Or(parts):
            for part in parts:
                yield from _leaves(part)
        case Not(part):
            yield from _leaves(part)
        case _:
            yield expression
