"""A Polars expression as the tree that `arrow_filter` reads.

Why: Polars hands its filter to a source as one expression, which serializes to JSON. Parts without a column
are values, and Polars itself works them out. Contract: what has no counterpart here becomes a call of an
unknown function, from which nothing is concluded; what cannot be read at all is None. The tree is true
wherever the filter is: Polars counts NaN as greatest, Arrow as nothing, and `arrow_filter` keeps both.
"""

from __future__ import annotations

import io
from typing import Any

import msgspec
import polars as pl
import pyarrow as pa

from lazydelta.engines.arrow_expression import ArrowNode, Call, Constant, FieldReference

_BINARY = {
    "Eq": "equal",
    "NotEq": "not_equal",
    "Lt": "less",
    "LtEq": "less_equal",
    "Gt": "greater",
    "GtEq": "greater_equal",
    "And": "and_kleene",
    "LogicalAnd": "and_kleene",
    "Or": "or_kleene",
    "LogicalOr": "or_kleene",
}
_BOUNDS = {"Both": (True, True), "Left": (True, False), "Right": (False, True), "None": (False, False)}
_UNKNOWN = Call("unknown", ())

Json = dict[str, Any]  # Any: as Polars writes it


def read_polars(expression: pl.Expr) -> ArrowNode | None:
    """The tree of the expression; None where it cannot be told."""
    try:
        return _node(msgspec.json.decode(expression.meta.serialize(format="json")))
    except (
        pl.exceptions.PolarsError,
        msgspec.DecodeError,
        ValueError,
        TypeError,
        LookupError,
        RecursionError,
    ):
        return None


def _node(raw: Any) -> ArrowNode:  # Any: JSON
    match raw:
        case {"Column": str(name)}:
            return FieldReference((name,))
        case {"BinaryExpr": {"left": left, "op": str(op), "right": right}} if op in _BINARY:
            return Call(_BINARY[op], (_node(left), _node(right)))
        case {"Function": {"input": list(inputs), "function": function}}:
            return _function(function, inputs)
        case {"Alias": [inner, _]}:
            return _node(inner)
    return _UNKNOWN if _names_column(raw) else _constant(raw)


def _function(function: Any, inputs: list[Any]) -> ArrowNode:  # noqa: PLR0911  # Any: JSON; one case each
    match function, inputs:
        case {"Boolean": "Not"}, [part]:
            return Call("invert", (_node(part),))
        case {"Boolean": "IsNull"}, [part]:
            return Call("is_null", (_node(part),), pa.scalar({"nan_is_null": False}))
        case {"Boolean": "IsNotNull"}, [part]:
            return Call("is_valid", (_node(part),))
        case {"Boolean": {"IsIn": {"nulls_equal": nulls}}}, [part, members] if not _names_column(members):
            return _membership(_node(part), _value(members), are_nulls_equal=bool(nulls))
        case {"Boolean": {"IsBetween": {"closed": str(closed)}}}, [part, low, high]:
            return _between(_node(part), _node(low), _node(high), closed)
        case {"StringExpr": "StartsWith"}, [part, prefix] if not _names_column(prefix):
            options = pa.scalar({"pattern": _value(prefix).as_py(), "ignore_case": False})
            return Call("starts_with", (_node(part),), options)
        case {"StructExpr": {"FieldByName": str(name)}}, [part]:
            outer = _node(part)
            return FieldReference((*outer.path, name)) if isinstance(outer, FieldReference) else _UNKNOWN
    return _UNKNOWN


def _membership(part: ArrowNode, members: pa.Scalar, *, are_nulls_equal: bool) -> ArrowNode:
    if not isinstance(members, pa.ListScalar | pa.LargeListScalar) or members.values is None:
        return _UNKNOWN
    kind = pa.struct([("value_set", pa.list_(members.values.type)), ("null_matching_behavior", pa.uint32())])
    values = pa.array([members.values.to_pylist()], pa.list_(members.values.type))
    behaviour = pa.array([0 if are_nulls_equal else 1], pa.uint32())
    options = pa.StructArray.from_arrays([values, behaviour], fields=list(kind))[0]
    return Call("is_in", (part,), options)


def _between(part: ArrowNode, low: ArrowNode, high: ArrowNode, closed: str) -> ArrowNode:
    has_low, has_high = _BOUNDS[closed]
    lower = Call("greater_equal" if has_low else "greater", (part, low))
    upper = Call("less_equal" if has_high else "less", (part, high))
    return Call("and_kleene", (lower, upper))


def _constant(raw: Any) -> ArrowNode:  # Any: JSON
    try:
        return Constant(_value(raw))
    except (pl.exceptions.PolarsError, ValueError):  # NaN and the infinities are null in JSON
        return _UNKNOWN


def _value(raw: Any) -> pa.Scalar:  # Any: JSON
    """What an expression without columns comes to.

    Polars writes floats to JSON exactly, and reads one in five back as its neighbour: they are read here.
    """
    match raw:
        case {"Literal": {"Dyn": {"Float": float(number)}} | {"Scalar": {"Float64": float(number)}}}:
            return pa.scalar(number, pa.float64())
        case {"Literal": {"Scalar": {"Float32": float(number)}}}:
            return pa.scalar(number, pa.float32())
    if _holds_float(raw):
        raise ValueError("a float that Polars would read back")
    expression = pl.Expr.deserialize(io.BytesIO(msgspec.json.encode(raw)), format="json")
    series = pl.select(expression).to_series()
    if len(series) != 1:
        raise ValueError("not one value")
    return series.to_arrow()[0]


def _holds_float(raw: Any) -> bool:  # Any: JSON
    match raw:
        case dict():
            return any(map(_holds_float, raw.values()))
        case list():
            return any(map(_holds_float, raw))
    return isinstance(raw, float)


def _names_column(raw: Any) -> bool:  # Any: JSON
    """Whether a value depends on rows; what is not known is taken to."""
    match raw:
        case {"Literal": _}:
            return False
        case {"Cast": {"expr": inner}}:
            return _names_column(inner)
    return True
