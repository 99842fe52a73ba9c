"""A pyarrow filter as a condition of ours that is true wherever the filter is.

Why: files and row groups are skipped by our conditions, while the filter speaks Arrow's dialect: NaN is
neither greater nor less than anything, `isin` is false for null. Contract: one-sided; what has no counterpart
is left out. `is_exact` says that both choose the very same rows, so that nothing is left to be done.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lazydelta.engines.arrow_expression import ArrowNode, Call, Constant, FieldReference, read_expression
from lazydelta.predicate import Expression
from lazydelta.predicate import expression as ours
from lazydelta.predicate.expression import ColumnPath, Operator, all_of, any_of
from lazydelta.predicate.literal import Literal, literal
from lazydelta.protocol.schema import Field, PrimitiveType, StructType, arrow_type

_OPERATORS: dict[str, Operator] = {
    "equal": "=",
    "not_equal": "<>",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
}
_OPPOSITE: dict[Operator, Operator] = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_TURNED: dict[Operator, Operator] = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
_JUNCTIONS = {"and_kleene": True, "and": True, "or_kleene": False, "or": False}
_NULLS_MATCH, _NULLS_SKIPPED = 0, 1  # of `SetLookupOptions`; others say null, which is not told apart here
_MEMBERS_MAX = 10_000  # of a list: further ones are looked up by Arrow alone
_EXACT_DOUBLES = 2**53  # whole numbers up to here are doubles
_EXACT_FLOATS = 2**24


class Pushed(msgspec.Struct, frozen=True):
    """A condition that holds wherever the filter does; None: any row may match."""

    condition: Expression | None = None
    is_exact: bool = False


_ANYTHING = Pushed()


def pushed_filter(expression: pc.Expression, schema: StructType) -> Pushed:
    """What of the filter can be told to a scan of a table of this schema."""
    node = read_expression(expression)
    return _ANYTHING if node is None else pushed_tree(node, schema)


def pushed_tree(node: ArrowNode, schema: StructType) -> Pushed:
    """The same for a filter that was read already."""
    try:
        return _Reading(schema).judged(node, wanted=True)
    except (RecursionError, LookupError):  # too deep, or options that another pyarrow spells otherwise
        return _ANYTHING


class _Reading(msgspec.Struct, frozen=True):
    """The columns that a filter is read against."""

    schema: StructType

    def judged(self, node: ArrowNode, *, wanted: bool) -> Pushed:  # noqa: PLR0911  # one case per node
        """Where the node is true, or where it is false."""
        match node:
            case Constant(value):
                return Pushed(ours.Constant(value.as_py() is wanted), is_exact=True)
            case FieldReference(path):
                return self.truth(path, wanted=wanted)
            case Call("invert", (part,)):
                return self.judged(part, wanted=not wanted)
            case Call(function) if function in _JUNCTIONS:
                return self.junction(node, wanted=wanted)
            case Call(function, (left, right)) if function in _OPERATORS:
                return self.comparison(_OPERATORS[function], left, right, wanted=wanted)
            case Call("if_else", (condition, chosen, Constant(value))) if not value.is_valid:
                sides = (self.judged(condition, wanted=True), self.judged(chosen, wanted=wanted))
                return _joined(sides, is_and=True)
            case Call("is_null" | "is_valid", (FieldReference(path),)):
                return self.null_test(path, node, wanted=wanted)
            case Call("is_in", (FieldReference(path),)):
                return self.membership(path, node.options, wanted=wanted)
            case Call("starts_with", (FieldReference(path),)):
                return self.prefix(path, node.options, wanted=wanted)
        return _ANYTHING

    def junction(self, node: Call, *, wanted: bool) -> Pushed:
        parts = [self.judged(part, wanted=wanted) for part in _flat(node)]
        joined = _joined(parts, is_and=_JUNCTIONS[node.function] == wanted)
        # Without Kleene a null on one side is null, even beside a false in `and` or a true in `or`.
        is_kleene = node.function.endswith("kleene")
        return joined if is_kleene else msgspec.structs.replace(joined, is_exact=False)

    def truth(self, path: ColumnPath, *, wanted: bool) -> Pushed:
        if self.kind(path) != pa.bool_():
            return _ANYTHING
        return Pushed(ours.Comparison(path, "=", Literal(wanted)), is_exact=True)

    def null_test(self, path: ColumnPath, node: Call, *, wanted: bool) -> Pushed:
        field = self.field(path)
        if field is None:
            return _ANYTHING
        is_null = ours.IsNull(path)
        if node.function == "is_null" and (node.options is None or node.options["nan_is_null"].as_py()):
            kind = self.kind(path)
            if kind is None or pa.types.is_floating(kind):
                return _ANYTHING
        return Pushed(is_null if (node.function == "is_null") == wanted else ours.Not(is_null), is_exact=True)

    def comparison(self, operator: Operator, left: ArrowNode, right: ArrowNode, *, wanted: bool) -> Pushed:
        if isinstance(left, Constant):
            left, right, operator = right, left, _TURNED[operator]
        kind = self.kind(left.path) if isinstance(left, FieldReference) else None
        if not isinstance(left, FieldReference) or not isinstance(right, Constant) or kind is None:
            return _ANYTHING
        if not right.value.is_valid:
            return Pushed(ours.Constant(False), is_exact=True)
        value = _literal(right.value, kind)
        if value is None or (pa.types.is_boolean(kind) and operator not in ("=", "<>")):
            return _ANYTHING
        if not pa.types.is_floating(kind):
            chosen = operator if wanted else _OPPOSITE[operator]
            return Pushed(ours.Comparison(left.path, chosen, value), is_exact=True)
        if not wanted:  # NaN is not greater than 1, so that it is among the rows
            return _ANYTHING
        return Pushed(ours.Comparison(left.path, operator, value), is_exact=operator not in (">", ">="))

    def membership(self, path: ColumnPath, options: pa.StructScalar | None, *, wanted: bool) -> Pushed:
        kind = self.kind(path)
        if kind is None or options is None:
            return _ANYTHING
        nulls = options["null_matching_behavior"].as_py()
        values = options["value_set"].values
        is_float = pa.types.is_floating(kind)
        if nulls not in (_NULLS_MATCH, _NULLS_SKIPPED) or len(values) > _MEMBERS_MAX:
            return _ANYTHING
        if is_float and not wanted:  # NaN, and a zero of the other sign
            return _ANYTHING
        literals = [_literal(value, kind) for value in values.drop_null()]
        members = tuple(one for one in literals if one is not None)
        if len(members) < len(literals):
            return _ANYTHING
        has_null = nulls == _NULLS_MATCH and values.null_count > 0
        found = ours.In(path, members)
        if wanted:
            condition = found | ours.IsNull(path) if has_null else found
        else:
            condition = ours.Not(found) if has_null else ours.Not(found) | ours.IsNull(path)
        return Pushed(condition, is_exact=not is_float)

    def prefix(self, path: ColumnPath, options: pa.StructScalar | None, *, wanted: bool) -> Pushed:
        if self.kind(path) != pa.string() or options is None or options["ignore_case"].as_py():
            return _ANYTHING
        text = options["pattern"].as_py()
        for wild in ("\\", "%", "_"):
            text = text.replace(wild, f"\\{wild}")
        like = ours.Like(path, f"{text}%")
        return Pushed(like if wanted else ours.Not(like), is_exact=True)

    def field(self, path: ColumnPath) -> Field | None:
        """The column, where it is one of the table, spelled as the table does."""
        inside: Any = self.schema  # Any: of the types, structs alone have fields
        field = None
        for name in path:
            if not isinstance(inside, StructType):
                return None
            field = next((each for each in inside.fields if each.name == name), None)
            if field is None:
                return None
            inside = field.type
        return field

    def kind(self, path: ColumnPath) -> pa.DataType | None:
        """The type of a column whose values can be compared."""
        field = self.field(path)
        if field is None or field.is_collated or not isinstance(field.type, PrimitiveType):
            return None
        return arrow_type(field.type)


def _joined(parts: Sequence[Pushed], *, is_and: bool) -> Pushed:
    is_exact = all(part.is_exact for part in parts)
    conditions = [part.condition for part in parts if part.condition is not None]
    if is_and:
        return Pushed(all_of(*conditions) if conditions else None, is_exact)
    return Pushed(any_of(*conditions), is_exact) if len(conditions) == len(parts) else _ANYTHING


def _flat(node: Call) -> Iterator[ArrowNode]:
    """The parts of a chain of one junction: writers nest them by the thousand."""
    waiting: list[ArrowNode] = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Call) and part.function == node.function:
            waiting.extend(reversed(part.arguments))
        else:
            yield part


def _literal(value: pa.Scalar, kind: pa.DataType) -> Literal | None:
    """The value, where Arrow compares it with such a column without rounding either; else None."""
    try:
        plain = _plain(value, kind)
        return None if plain is None else literal(plain)
    except (pa.ArrowException, ValueError, OverflowError, ArithmeticError):  # beyond what Python can say
        return None


def _plain(value: pa.Scalar, kind: pa.DataType) -> Any:  # noqa: PLR0911  # Any, and one case per type
    types, given = pa.types, value.type
    if types.is_dictionary(given):
        return None
    if types.is_string(kind):
        is_text = types.is_string(given) or types.is_large_string(given) or types.is_string_view(given)
        return value.as_py() if is_text else None
    if types.is_binary(kind):
        is_bytes = types.is_binary(given) or types.is_large_binary(given) or types.is_binary_view(given)
        return value.as_py() if is_bytes else None
    if types.is_integer(kind) or types.is_decimal(kind):
        return value.as_py() if types.is_integer(given) or types.is_decimal(given) else None
    if types.is_floating(kind):
        return _number(value.as_py(), kind) if types.is_integer(given) or types.is_floating(given) else None
    if types.is_boolean(kind) or types.is_date(kind):
        return value.as_py() if given == kind else None
    if types.is_timestamp(kind) and types.is_timestamp(given) and (kind.tz is None) == (given.tz is None):
        return value.cast(kind).as_py()
    return None


def _number(value: float, kind: pa.DataType) -> float | None:
    """A number that the column's type has, so that no reading of the comparison rounds it."""
    if isinstance(value, int):
        return value if abs(value) <= (_EXACT_DOUBLES if kind == pa.float64() else _EXACT_FLOATS) else None
    if math.isnan(value):
        return None
    with np.errstate(over="ignore"):
        return value if kind == pa.float64() or float(np.float32(value)) == value else None
