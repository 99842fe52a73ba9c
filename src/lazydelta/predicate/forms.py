"""A filter in any of its forms, as an expression.

    SQL text   "date = '2026-02-08' and value between 1 and 9"
    JSON       {"date": "2026-02-08", "value": {"gte": 1, "lt": 9}}, as a mapping or as text
    lists      [("date", "=", "2026-02-08"), ("value", ">", 1)]; a list of such lists is an `or` of `and`s
    Python     col("value") > 1

Contract: a form that is off is an `InvalidRequestError` that shows the part that is off.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from lazydelta.errors import InvalidRequestError
from lazydelta.predicate.column import Column, column_path
from lazydelta.predicate.expression import (
    Comparison,
    Expression,
    In,
    IsNull,
    Not,
    Operator,
    all_of,
    any_of,
)
from lazydelta.predicate.literal import checked_text, literal
from lazydelta.predicate.nesting import check_depth, too_deep

_JSON_OPERATORS: dict[str, Operator] = {"eq": "=", "ne": "<>", "gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
_LIST_OPERATORS: dict[str, Operator] = {
    "=": "=",
    "==": "=",
    "!=": "<>",
    "<>": "<>",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
}
_JSON_HELP = (
    'write {"column": value} or {"column": {"gte": 1, "lt": 9}} with eq, ne, gt, gte, lt, lte, in, not_in, '
    "like, is_null"
)
_LIST_HELP = (
    'write [("column", ">=", value), …] with =, !=, <, <=, >, >=, in, not in, like, not like, is, is not; '
    "a list of such lists for or"
)


def parse_where(where: str | Mapping[str, Any] | Sequence[Any] | Expression | Column) -> Expression:
    """The expression that `where` means."""
    try:
        expression = _parse(where)
    except RecursionError as error:
        # No more of it than its kind, where showing it would recurse again.
        shown = where if isinstance(where, str) else f"a {type(where).__name__}"
        raise too_deep(f"filter: {shown}") from error
    check_depth(expression, "the filter")
    return expression


def _parse(where: Any) -> Expression:  # Any: whatever the caller has at hand
    match where:
        case Expression():
            return where
        case Column():
            return where.as_condition()
        case str():
            return _parse_text(where)
        case Mapping():
            return _parse_mapping(where)
        case Sequence() if not isinstance(where, (bytes, bytearray)):
            return _parse_list(where)
    raise InvalidRequestError(
        f"a filter cannot be a {type(where).__name__}",
        f"filter: {where!r}"[:300],
        "pass SQL text, a mapping, a list or col(…)",
    )


def _parse_text(text: str) -> Expression:
    checked_text(text)
    if not text.lstrip().startswith(("{", "[")):
        from lazydelta.predicate.sql import parse_sql  # a parser of all of SQL is slow to load

        return parse_sql(text)
    try:
        parsed = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise InvalidRequestError(
            f"the filter is not JSON: {error}", f"filter: {text}", _JSON_HELP
        ) from error
    _check_keys(text)
    return _parse(parsed)


def _check_keys(text: str) -> None:
    """Refuse JSON that says one thing twice: of two values only the last would hold."""

    def checked(pairs: list[tuple[str, object]]) -> None:
        twice = [name for name, count in Counter(name for name, _ in pairs).items() if count > 1]
        if twice:
            raise InvalidRequestError(
                f"{twice[0]!r} stands twice in one object of the filter",
                f"filter: {text}"[:300],
                'write all conditions of a column together: {"value": {"gte": 1, "lt": 9}}',
            )

    json.loads(text, object_pairs_hook=checked, parse_int=str, parse_float=str)  # numbers do not matter


# --- JSON (Any: what a caller or a JSON document holds, checked here) ----------


def _parse_mapping(where: Mapping[str, Any]) -> Expression:
    return all_of(*(_json_condition(name, wanted) for name, wanted in where.items()))


def _json_condition(name: Any, wanted: Any) -> Expression:
    if not isinstance(name, str):
        raise _refusal(f"{name!r} is not a column name", {name: wanted}, _JSON_HELP)
    column = Column(column_path(name))
    if wanted is None:
        return column.is_null()
    if isinstance(wanted, Mapping):
        if not wanted:
            raise _refusal(f"the column {name!r} has no condition", {name: wanted}, _JSON_HELP)
        return all_of(*(_json_operator(column, word, value) for word, value in wanted.items()))
    if _is_list(wanted):
        return column.is_in(wanted)
    return Comparison(column.path, "=", literal(wanted))


def _json_operator(column: Column, word: Any, value: Any) -> Expression:
    shown = {str(column): {word: value}}
    if word in ("eq", "ne") and value is None:
        return column.is_null() if word == "eq" else column.is_not_null()
    if word in _JSON_OPERATORS:
        if value is None or _is_list(value):
            raise _refusal(f"{word} needs a value", shown, _JSON_HELP)
        return Comparison(column.path, _JSON_OPERATORS[word], literal(value))
    if word == "is_null" and isinstance(value, bool):
        return column.is_null() if value else column.is_not_null()
    if word in ("in", "not_in") and _is_list(value):
        return column.is_in(value) if word == "in" else Not(column.is_in(value))
    if word == "like" and isinstance(value, str):
        return column.like(value)
    raise _refusal(f"{word!r} with {value!r} is no condition", shown, _JSON_HELP)


# --- lists ---------------------------------------------------------------------


def _parse_list(where: Sequence[Any]) -> Expression:
    if where and isinstance(where[0], str):
        return _list_condition(where)
    if where and all(_is_list(item) and item and not isinstance(item[0], str) for item in where):
        return any_of(*(all_of(*map(_list_condition, item)) for item in where))
    return all_of(*map(_list_condition, where))


def _list_condition(item: Any) -> Expression:
    if isinstance(item, Expression):
        return item
    if not _is_list(item) or len(item) != 3 or not isinstance(item[0], str) or not isinstance(item[1], str):
        raise _refusal(f"{item!r} is not a (column, operator, value)", item, _LIST_HELP)
    name, word, value = item
    column = Column(column_path(name))
    word = " ".join(word.lower().split())
    if word in _LIST_OPERATORS:
        if value is None or _is_list(value):
            fix = 'use ("column", "is", None)' if value is None else 'use ("column", "in", [...])'
            raise _refusal(f"{word} cannot compare with {value!r}", item, fix)
        return Comparison(column.path, _LIST_OPERATORS[word], literal(value))
    build = _LIST_WORDS.get(word)
    condition = build(column, value) if build else None
    if condition is None:
        raise _refusal(f"{word!r} with {value!r} is no condition", item, _LIST_HELP)
    return Not(condition) if " not" in f" {word}" else condition


def _membership(column: Column, value: Any) -> Expression | None:
    is_many = _is_list(value) or isinstance(value, (set, frozenset))
    return In(column.path, tuple(map(literal, value))) if is_many else None


def _pattern(column: Column, value: Any) -> Expression | None:
    return column.like(value) if isinstance(value, str) else None


def _null_test(column: Column, value: Any) -> Expression | None:
    return IsNull(column.path) if value is None or str(value).lower() == "null" else None


_LIST_WORDS: dict[str, Callable[[Column, Any], Expression | None]] = {
    "in": _membership,
    "not in": _membership,
    "like": _pattern,
    "not like": _pattern,
    "is": _null_test,
    "is not": _null_test,
}


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray))


def _refusal(what: str, shown: Any, fix: str) -> InvalidRequestError:
    return InvalidRequestError(what, f"filter: {shown!r}"[:300], fix)
