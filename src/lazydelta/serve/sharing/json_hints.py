"""`jsonPredicateHints`: a tree of operations as an expression.

Contract: what does not fit (an unknown operation, a cast to another type than the column's) is an
`InvalidRequestError`. Negation is read so that rows without a value are kept: clients write `<=>` with it,
which is two-valued, and SQL's `not` of null is null. Whether the client keeps such rows nobody knows here.
Spec: PROTOCOL.md of Delta Sharing, "JSON predicates for Filtering".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec

from lazydelta.errors import InvalidRequestError
from lazydelta.predicate.expression import (
    And,
    ColumnPath,
    Comparison,
    Constant,
    Expression,
    IsNull,
    Not,
    Operator,
    Or,
    all_of,
    any_of,
)
from lazydelta.predicate.literal import literal

# The type of a column by its name; raises where there is none.
TypeOf = Callable[[str], str]
_DEPTH_MAX = 64
_OPERATORS: dict[str, Operator] = {
    "equal": "=",
    "lessThan": "<",
    "lessThanOrEqual": "<=",
    "greaterThan": ">",
    "greaterThanOrEqual": ">=",
}
_MIRRORED: dict[Operator, Operator] = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
# Types of the protocol, and which of Delta's they compare as they are.
_TYPES = {
    "bool": {"boolean"},
    "int": {"byte", "short", "integer"},
    "long": {"byte", "short", "integer", "long"},
    "string": {"string"},
    "date": {"date"},
    "float": {"float"},
    "double": {"float", "double"},
    "timestamp": {"timestamp"},
}


class Op(msgspec.Struct, rename="camel"):
    """One operation."""

    op: str
    children: list[Op] = []
    name: str | None = None
    value: str | None = None
    value_type: str | None = None


def json_expression(text: str, type_of: TypeOf) -> tuple[Expression, bool]:
    """The condition that the tree states, and whether every reader keeps the same rows by it."""
    tree = msgspec.json.decode(text, type=Op)
    return _condition(tree, type_of, 0), not _is_negation_within(tree)


def _condition(op: Op, type_of: TypeOf, depth: int) -> Expression:
    if depth > _DEPTH_MAX:
        raise _unknown("it nests too deeply")
    if op.op in {"and", "or"} and op.children:
        parts = [_condition(child, type_of, depth + 1) for child in op.children]
        return all_of(*parts) if op.op == "and" else any_of(*parts)
    if op.op == "not" and len(op.children) == 1:
        part = _condition(op.children[0], type_of, depth + 1)
        nulls = dict.fromkeys(_compared(part))
        return any_of(Not(part), *(IsNull(path) for path in nulls))
    if op.op == "isNull" and len(op.children) == 1:
        child = op.children[0]
        return Constant(child.value is None) if child.op == "literal" else IsNull(_path(child, type_of))
    if op.op in _OPERATORS and len(op.children) == 2:
        return _comparison(op, _OPERATORS[op.op], type_of)
    raise _unknown(f"{op.op[:100]!r} with {len(op.children)} children")


def _is_negation_within(op: Op) -> bool:
    """Whether something is negated that may be null."""
    if op.op == "not" and op.children[0].op != "isNull":
        return True
    return any(_is_negation_within(child) for child in op.children)


def _comparison(op: Op, operator: Operator, type_of: TypeOf) -> Expression:
    left, right = op.children
    if left.op == "literal":
        left, right, operator = right, left, _MIRRORED[operator]
    if right.op != "literal" or right.value_type != left.value_type or right.value is None:
        raise _unknown("a comparison that is not of a column and a value of one type")
    return Comparison(_path(left, type_of), operator, literal(_value(right)))


def _path(op: Op, type_of: TypeOf) -> ColumnPath:
    if op.op != "column" or op.name is None:
        raise _unknown(f"{op.op[:100]!r} where a column must stand")
    if type_of(op.name) not in _TYPES.get(op.value_type or "", set()):
        raise _unknown(f"the column {op.name[:100]!r} as {op.value_type}")
    return (op.name,)


def _value(op: Op) -> Any:  # Any: as the type has it
    assert op.value is not None
    text = op.value.strip()
    if op.value_type == "bool":
        if text.lower() not in {"true", "false"}:
            raise _unknown("a value that is no truth")
        return text.lower() == "true"
    if op.value_type in {"int", "long"}:
        return int(text)
    if op.value_type in {"float", "double"}:
        try:
            number = Decimal(text)
        except InvalidOperation:
            raise _unknown("a value that is no number") from None
        if not number.is_finite():
            raise _unknown("a value that is no number")
        return number
    return op.value


def _compared(expression: Expression) -> Iterator[ColumnPath]:
    """Columns whose nulls decide nothing in SQL."""
    match expression:
        case And(parts) | Or(parts):
            for part in parts:
                yield from _compared(part)
        case Not(part):
            yield from _compared(part)
        case Comparison(path, _, _):
            yield path


def _unknown(what: str) -> InvalidRequestError:
    return InvalidRequestError(f"the hint has {what}", "jsonPredicateHints", "the hint is passed over")
