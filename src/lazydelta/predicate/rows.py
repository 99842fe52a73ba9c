"""A bound condition over rows, exactly: true, false or null for each.

Why: files are dropped one-sidedly; which rows match is decided here. Contract: the batch has the filter's
columns under their logical names. NaN equals itself and is greatest, −0.0 equals 0.0, as in Spark and DuckDB;
text compares by UTF-8 bytes.
"""

from __future__ import annotations

import functools
import math

import pyarrow as pa
import pyarrow.compute as pc

from lazydelta.errors import UnsupportedTableError
from lazydelta.predicate.bound import BoundPredicate
from lazydelta.predicate.expression import Operator, column_sql
from lazydelta.predicate.nodes import (
    All,
    BoundColumn,
    Compare,
    Fixed,
    FixedUnlessNull,
    Member,
    Negation,
    Node,
    NullTest,
    Pattern,
    Some,
)
from lazydelta.protocol.schema import PrimitiveType, arrow_type

_RELATIONS: dict[Operator, pc.Function] = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def matches(predicate: BoundPredicate, batch: pa.RecordBatch) -> pa.BooleanArray:
    """For each row whether it matches; null where SQL says unknown, which a filter treats as no."""
    return _judge(predicate.root, batch)


def _judge(node: Node, batch: pa.RecordBatch) -> pa.BooleanArray:  # noqa: PLR0911  # one case per node
    match node:
        case All(parts):
            return functools.reduce(pc.and_kleene, (_judge(part, batch) for part in parts))
        case Some(parts):
            return functools.reduce(pc.or_kleene, (_judge(part, batch) for part in parts))
        case Negation(part):
            return pc.invert(_judge(part, batch))
        case Fixed(value):
            return pa.repeat(pa.scalar(value, pa.bool_()), batch.num_rows)
        case NullTest(column):
            return _values(column, batch).is_null()
        case FixedUnlessNull(column, value):
            return _unless_null(_values(column, batch), pa.scalar(value))
        case Compare():
            return _compare(_comparable(node.column, batch), node)
        case Member():
            return _member(_comparable(node.column, batch), node)
        case Pattern():
            return pc.match_like(_comparable(node.column, batch), node.pattern)
    raise AssertionError(f"no evaluation of {type(node).__name__}")


def _compare(values: pa.Array, node: Compare) -> pa.BooleanArray:
    if not pa.types.is_floating(values.type):
        return _RELATIONS[node.operator](values, node.value)
    is_nan = pc.is_nan(values)
    if math.isnan(node.value.as_py()):
        # The literal is greatest: 1 stands for NaN, 0 for every number.
        return _RELATIONS[node.operator](is_nan.cast(pa.int8()), pa.scalar(1, pa.int8()))
    related = _RELATIONS[node.operator](values, node.value)
    return pc.or_(related, is_nan) if node.operator in (">", ">=", "<>") else related


def _member(values: pa.Array, node: Member) -> pa.BooleanArray:
    wanted = node.values
    if pa.types.is_floating(values.type):
        # Hashed look-ups tell −0.0 from 0.0; adding 0.0 makes them one.
        values, wanted = (pc.add(array, pa.scalar(0.0, array.type)) for array in (values, wanted))
    is_member = _unless_null(values, pc.is_in(values, value_set=wanted))
    if not node.has_null:
        return is_member
    return pc.if_else(is_member, is_member, pa.scalar(None, pa.bool_()))


def _unless_null(values: pa.Array, answer: pa.Array | pa.Scalar) -> pa.BooleanArray:
    return pc.if_else(values.is_valid(), answer, pa.scalar(None, pa.bool_()))


def _comparable(column: BoundColumn, batch: pa.RecordBatch) -> pa.Array:
    if column.is_collated:
        raise UnsupportedTableError(
            f"the column {column_sql(column.path)} is compared by a collation",
            "the filter",
            "compare columns without a collation, or filter the rows after reading them",
        )
    values = _values(column, batch)
    wanted = arrow_type(PrimitiveType(column.type_name))
    return values if values.type.equals(wanted) else values.cast(wanted)


def _values(column: BoundColumn, batch: pa.RecordBatch) -> pa.Array:
    outer, *inner = column.path
    values = batch.column(outer)
    return pc.struct_field(values, inner) if inner else values
