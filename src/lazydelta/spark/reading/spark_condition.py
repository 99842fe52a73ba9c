"""A bound filter as a condition of Spark, for rows that Spark's own reader gives.

Contract: the same rows match as in `predicate.rows`. Literals are in the columns' own types already, so that
Spark neither casts a column nor reads a text in its own way. A collated column, which we do not compare
either, has none.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lazydelta.predicate.expression import ColumnPath, Operator
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
    columns_of,
)
from lazydelta.spark.quoting import quoted_path

if TYPE_CHECKING:
    from pyspark.sql import Column

_RELATIONS: dict[Operator, Callable[[Any, Any], Any]] = {  # Any: columns of Spark
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

_FLOATS = frozenset({"float", "double"})


def is_comparable(node: Node) -> bool:
    """Whether Spark compares every column of the filter as we do."""
    return not any(column.is_collated for column in columns_of(node))


def spark_condition(node: Node) -> Column:  # noqa: PLR0911  # one case per node
    """The condition; null where SQL says unknown."""
    from pyspark.sql import functions as fn

    match node:
        case All(parts):
            return functools.reduce(operator.and_, map(spark_condition, parts))
        case Some(parts):
            return functools.reduce(operator.or_, map(spark_condition, parts))
        case Negation(part):
            return ~spark_condition(part)
        case Fixed(value):
            return fn.lit(value).cast("boolean")
        case NullTest(column):
            return _column(column.path).isNull()
        case FixedUnlessNull(column, value):
            return _unless_null(_column(column.path), value)
        case Compare():
            wanted = _literal(node.value, node.column.type_name)
            found: Column = _RELATIONS[node.operator](_comparable(node.column), wanted)
            return found
        case Member():
            return _member(node)
        case Pattern():
            return _column(node.column.path).like(node.pattern)
    raise AssertionError(f"no condition of Spark for {type(node).__name__}")


def _member(node: Member) -> Column:
    from pyspark.sql import functions as fn

    column = _comparable(node.column)
    wanted = [_literal(value, node.column.type_name) for value in node.values]
    # Of nothing at all Spark says false, even where the column is null.
    found = column.isin(wanted) if wanted else _unless_null(column, False)
    return found | fn.lit(None).cast("boolean") if node.has_null else found


def _unless_null(column: Column, value: bool) -> Column:
    from pyspark.sql import functions as fn

    return fn.when(column.isNotNull(), fn.lit(value))


def _column(path: ColumnPath) -> Column:
    from pyspark.sql import functions as fn

    return fn.col(quoted_path(path))


def _comparable(column: BoundColumn) -> Column:
    """The column as Spark compares it right.

    Bounds and dictionaries of row groups, which Spark asks before it reads one, know nothing of NaN, which is
    greatest, and tell −0.0 from 0.0; so do sets of many values. A sum is not asked for there, and has one
    zero.
    """
    from pyspark.sql import functions as fn

    found = _column(column.path)
    return found + fn.lit(0.0).cast(column.type_name) if column.type_name in _FLOATS else found


def _literal(value: pa.Scalar, type_name: str) -> Column:
    from pyspark.sql import functions as fn

    kind = value.type
    if pa.types.is_date(kind):
        return fn.date_from_unix_date(fn.lit(value.value).cast("int"))
    if pa.types.is_timestamp(kind):
        if kind.tz is None:
            return fn.lit(value.as_py().isoformat()).cast("timestamp_ntz")
        return fn.timestamp_micros(fn.lit(value.value).cast("long"))
    if pa.types.is_decimal(kind):
        return fn.lit(format(value.as_py(), "f")).cast(type_name)
    if pa.types.is_binary(kind):
        return fn.lit(bytearray(value.as_py()))
    return fn.lit(value.as_py()).cast(type_name)
