"""SQL text to an expression: the part of SQL after `WHERE` that files can be judged by.

Contract: what the language cannot express (functions, subqueries, arithmetic, comparing two columns) is an
`InvalidRequestError` that shows the offending text; nothing is silently dropped. Backticks and double quotes
quote names, single quotes quote text; a backslash is special only in `LIKE`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any

import sqlglot
from sqlglot import exp

from lazydelta.errors import InvalidRequestError
from lazydelta.predicate.expression import (
    ColumnPath,
    Comparison,
    Constant,
    Expression,
    In,
    IsNull,
    Like,
    Not,
    Operator,
    all_of,
    any_of,
)
from lazydelta.predicate.literal import Literal
from lazydelta.predicate.moments import read_moment

SqlNode = Any  # Any: sqlglot's trees carry no types that would say more

# Of sqlglot's dialects the one that reads both kinds of quoted names, keeps backslashes and knows no
# comments or functions that would change what a plain condition means.
_DIALECT = sqlglot.Dialect.get_or_raise("sqlite")
_SUPPORTED = (
    "use =, <>, <, <=, >, >=, between, in, like and is null between a column and a value, "
    "joined by and, or, not and parentheses"
)
_OPERATORS: dict[type, Operator] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_MIRRORED: dict[Operator, Operator] = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_INTEGER_CHARACTERS_MAX = 1000
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_HEXADECIMAL = re.compile("([0-9A-Fa-f]{2})*")
_DATE_TYPES = ("DATE", "DATE32")
_NUMBER_TYPES = ("DOUBLE", "FLOAT", "DECIMAL", "BIGINT", "INT", "SMALLINT", "TINYINT")
_TEXT_TYPES = ("TEXT", "VARCHAR", "CHAR")


def parse_sql(text: str) -> Expression:
    """The condition that `text` states."""
    try:
        tree = sqlglot.parse_one(text, into=exp.Condition, dialect=_DIALECT)
    except sqlglot.errors.SqlglotError as error:
        raise InvalidRequestError(
            f"the filter does not parse{_spot(error)}", f"filter: {text}", _SUPPORTED
        ) from error
    return _Reader(text).condition(tree)


class _Reader:
    """Reads one parsed filter; `text` is for errors."""

    def __init__(self, text: str) -> None:
        self.text = text

    def condition(self, node: SqlNode) -> Expression:
        """The condition a node states."""
        read = _CONDITIONS.get(type(node))
        if read is not None:
            return read(self, node)
        if type(node) in _OPERATORS:
            return self.comparison(node, _OPERATORS[type(node)])
        if isinstance(node, (exp.Column, exp.Dot)):
            return Comparison(self.column(node), "=", Literal(True))
        if isinstance(node, (exp.Boolean, exp.Null)):
            value = self.value(node).value
            assert value is None or isinstance(value, bool)
            return Constant(value)
        raise self.refusal(node)

    def all(self, node: SqlNode) -> Expression:
        return all_of(*map(self.condition, _chain(node)))

    def any(self, node: SqlNode) -> Expression:
        return any_of(*map(self.condition, _chain(node)))

    def negation(self, node: SqlNode) -> Expression:
        return Not(self.condition(node.this))

    def comparison(self, node: SqlNode, operator: Operator) -> Expression:
        left, right = node.this.unnest(), node.expression.unnest()
        if self.is_value(left) and self.is_value(right):
            return self.fold(node, operator)
        if self.is_value(left):
            left, right, operator = right, left, _MIRRORED[operator]
        return Comparison(self.column(left), operator, self.value(right))

    def fold(self, node: SqlNode, operator: Operator) -> Expression:
        """`1 = 1` and its kind, which tools put in front of generated filters."""
        left, right = self.value(node.this.unnest()).value, self.value(node.expression.unnest()).value
        if left is None or right is None:
            return Constant(None)
        if operator not in ("=", "<>") or isinstance(left, str) != isinstance(right, str):
            raise self.refusal(node)
        return Constant((Literal(left) == Literal(right)) == (operator == "="))

    def between(self, node: SqlNode) -> Expression:
        column = self.column(node.this)
        low, high = self.value(node.args["low"]), self.value(node.args["high"])
        return all_of(Comparison(column, ">=", low), Comparison(column, "<=", high))

    def membership(self, node: SqlNode) -> Expression:
        if set(node.args) - {"this", "expressions"} and any(
            value for name, value in node.args.items() if name not in ("this", "expressions")
        ):
            raise self.refusal(node)
        return In(self.column(node.this), tuple(self.value(value) for value in node.expressions))

    def null_test(self, node: SqlNode) -> Expression:
        if not isinstance(node.expression, exp.Null):
            raise self.refusal(node)
        return IsNull(self.column(node.this))

    def like(self, node: SqlNode, escape: str = "\\") -> Expression:
        pattern = self.value(node.expression).value
        if not isinstance(pattern, str):
            raise self.refusal(node)
        matched: Expression = Like(self.column(node.this), _with_backslash(pattern, escape))
        return Not(matched) if node.args.get("negate") else matched

    def escaped_like(self, node: SqlNode) -> Expression:
        escape = self.value(node.expression).value
        inner = node.this
        if not isinstance(escape, str) or len(escape) != 1 or escape in "%_":
            raise self.refusal(node)
        if isinstance(inner, exp.Not):
            return Not(self.like(inner.this, escape))
        if not isinstance(inner, exp.Like):
            raise self.refusal(node)
        return self.like(inner, escape)

    def column(self, node: SqlNode) -> ColumnPath:
        node = node.unnest()
        if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
            return (*self.column(node.this), node.expression.name)
        if isinstance(node, exp.Column) and isinstance(node.this, exp.Identifier):
            return tuple(part.name for part in node.parts)
        raise self.refusal(node)

    def is_value(self, node: SqlNode) -> bool:
        return node.find(exp.Column) is None and not isinstance(node, exp.Dot)

    def value(self, node: SqlNode) -> Literal:  # noqa: PLR0911  # one case per kind of literal
        node = node.unnest()
        match node:
            case exp.Null():
                return Literal(None)
            case exp.Boolean():
                return Literal(bool(node.this))
            case exp.HexString() if _HEXADECIMAL.fullmatch(str(node.this)):
                return Literal(bytes.fromhex(str(node.this)))
            case exp.Literal() if node.is_string:
                return Literal(str(node.this))
            case exp.Literal() if _NUMBER.fullmatch(str(node.this)):
                return Literal(_number(str(node.this)))
            case exp.Neg() if _is_number(node.this):
                return Literal(_number("-" + str(node.this.this)))
            case exp.Cast() if type(node) is exp.Cast:
                return self.cast(node)
        if isinstance(node, exp.Column):
            raise InvalidRequestError(
                f"a filter compares a column with a value, and {_written(node)} is a column",
                f"filter: {self.text}",
                "put text in single quotes; two columns cannot be compared",
            )
        raise self.refusal(node)

    def cast(self, node: SqlNode) -> Literal:
        inner, type_name = self.value(node.this).value, node.to.this.name
        if inner is None:
            return Literal(None)
        if type_name in _TEXT_TYPES and isinstance(inner, str):
            return Literal(inner)
        if type_name in _NUMBER_TYPES and isinstance(inner, (int, Decimal, str)) and not node.to.expressions:
            return self.number(node, str(inner), type_name)
        moment = read_moment(inner) if isinstance(inner, str) else None
        if moment is None:
            raise self.refusal(node)
        if type_name in _DATE_TYPES:
            return Literal(moment.date() if isinstance(moment, datetime) else moment)
        if type_name.startswith(("TIMESTAMP", "DATETIME")):
            midnight = datetime(moment.year, moment.month, moment.day)  # noqa: DTZ001  # the zone is bind's
            return Literal(moment if isinstance(moment, datetime) else midnight)
        raise self.refusal(node)

    def number(self, node: SqlNode, text: str, type_name: str) -> Literal:
        words = {"nan": "nan", "inf": "inf", "infinity": "inf", "-inf": "-inf", "-infinity": "-inf"}
        if type_name in ("DOUBLE", "FLOAT") and text.lower() in words:
            return Literal(float(words[text.lower()]))
        if not _NUMBER.fullmatch(text):
            raise self.refusal(node)
        return Literal(_number(text))

    def refusal(self, node: SqlNode) -> InvalidRequestError:
        return InvalidRequestError(
            f"a filter cannot contain {_written(node)}", f"filter: {self.text}", _SUPPORTED
        )


_CONDITIONS: dict[type, Callable[[_Reader, SqlNode], Expression]] = {
    exp.Paren: lambda reader, node: reader.condition(node.this),
    exp.And: _Reader.all,
    exp.Or: _Reader.any,
    exp.Not: _Reader.negation,
    exp.Between: _Reader.between,
    exp.In: _Reader.membership,
    exp.Is: _Reader.null_test,
    exp.Like: _Reader.like,
    exp.Escape: _Reader.escaped_like,
}


def _chain(node: SqlNode) -> list[SqlNode]:
    """The operands of `a and b and c …`, which the parser nests to the left, one level for each."""
    kind, operands = type(node), []
    while type(node) is kind:
        operands.append(node.expression)
        node = node.this
    return [node, *reversed(operands)]


def _spot(error: Any) -> str:
    """Where a parse failed, as far as the parser knows."""
    errors: list[dict[str, Any]] = getattr(error.__cause__ or error, "errors", [])
    near = errors[0].get("highlight") if errors else None
    return f" at {near!r}" if near else ""


def _is_number(node: SqlNode) -> bool:
    is_plain = isinstance(node, exp.Literal) and not node.is_string
    return is_plain and _NUMBER.fullmatch(str(node.this)) is not None


def _number(text: str) -> int | Decimal:
    # Python refuses to read integers of thousands of digits, and no column holds one.
    is_whole = len(text) <= _INTEGER_CHARACTERS_MAX and re.fullmatch(r"[+-]?\d+", text)
    try:
        found = int(text) if is_whole else Decimal(text)
        return 0 if str(found) == "-0" else found  # as it is read where it was written
    except InvalidOperation as beyond:
        raise InvalidRequestError(
            "a number is out of every range", "the filter", "write it with a smaller exponent"
        ) from beyond


def _with_backslash(pattern: str, escape: str) -> str:
    r"""The same pattern with `\` as its escape character."""
    if escape == "\\":
        return pattern
    rewritten, characters = [], iter(pattern)
    for character in characters:
        if character == escape:
            rewritten.append("\\" + next(characters, ""))
        else:
            rewritten.append("\\\\" if character == "\\" else character)
    return "".join(rewritten)


def _written(node: SqlNode) -> str:
    """As SQL; bytes in hexadecimal are a number there, and Python writes none of thousands of digits."""
    try:
        return str(node.sql())
    except ValueError:
        return "a literal of so many digits"
