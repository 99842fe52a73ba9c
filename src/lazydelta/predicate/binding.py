"""Bind an expression to a table's schema: resolve columns, type literals, rewrite what does not fit exactly.

Why: here every mistake of the caller shows, with the column, its type and the value; after it, evaluation
cannot fail. Contract: the bound condition is equal to the written one for every row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from lazydelta.errors import InvalidRequestError
from lazydelta.predicate.bound import BoundPredicate
from lazydelta.predicate.columns import resolve_column
from lazydelta.predicate.expression import (
    And,
    ColumnPath,
    Comparison,
    Constant,
    Expression,
    In,
    IsNull,
    Like,
    Not,
    Operator,
    Or,
    column_sql,
)
from lazydelta.predicate.literal import Literal, literal_sql
from lazydelta.predicate.nesting import check_depth, too_deep
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
from lazydelta.predicate.periods import EventTime, event_time_of
from lazydelta.predicate.sides import sides_needed
from lazydelta.predicate.typed_literal import TypedLiteral, typed_literal
from lazydelta.protocol.schema import PrimitiveType, StructType, arrow_type
from lazydelta.protocol.statistics import StatsColumn

_UNCOMPARABLE = frozenset({"", "variant", "void"})
_LIKE_TOKEN = re.compile(r"\\(?P<escaped>[\\%_])|(?P<any>%)|(?P<one>_)|(?P<plain>[^\\%_]+)|(?P<bad>\\)")
_HINTS = {
    "string": "put text in single quotes",
    "boolean": "write true or false",
    "date": "write it as '2026-02-08'",
    "timestamp": "write it as '2026-02-08T10:00:00Z', with at most six digits of a second",
    "timestamp_ntz": "write it as '2026-02-08T10:00:00', without a zone, with at most six digits of a second",
    "binary": "write it as X'0102'",
}


def bind(
    expression: Expression,
    schema: StructType,
    partition_columns: Sequence[str],
    *,
    where: str,
    time_zone: str = "UTC",
    configuration: Mapping[str, str | None] | None = None,
) -> BoundPredicate:
    """Bind to the schema of the table at `where`; `partition_columns` are logical names.

    `time_zone` is meant by timestamps without a zone, in literals and in partition values. The table's
    `configuration` may tell that a partition column holds the periods of a column of times.
    """
    check_depth(expression, where)
    event_time = event_time_of(configuration or {}, schema, partition_columns)
    binder = _Binder(schema, frozenset(partition_columns), where, _zone(time_zone, where), event_time)
    try:
        root = binder.node(expression)
        columns = tuple(dict.fromkeys(columns_of(root)))
        null_tested = frozenset(_null_tested(root))
    except RecursionError as error:  # the caller left little of the stack
        raise too_deep(where) from error
    sides = sides_needed(root)
    return BoundPredicate(
        expression=expression,
        root=root,
        columns=tuple(column.path for column in columns),
        partition_columns=tuple(dict.fromkeys(_partition_names(columns))),
        stats_columns=tuple(
            _stats_column(column, is_null_tested=column in null_tested, sides=sides[column])
            for column in columns
            if _has_statistics(column)
        ),
        decided_by_partitions=all(column.is_partition for column in columns),
        time_zone=time_zone,
    )


class _Binder(msgspec.Struct, frozen=True):
    """The table that an expression is bound to."""

    schema: StructType
    partition_columns: frozenset[str]
    where: str
    time_zone: ZoneInfo
    event_time: EventTime | None

    def node(self, expression: Expression) -> Node:  # noqa: PLR0911  # one case per node
        match expression:
            case Constant(value):
                return Fixed(value)
            case And(parts):
                return All(tuple(map(self.node, parts)))
            case Or(parts):
                return Some(tuple(map(self.node, parts)))
            case Not(part):
                return Negation(self.node(part))
            case IsNull(path):
                return NullTest(self.column(path))
            case Comparison(path, operator, literal):
                return self.comparison(self.comparable(path, expression), operator, literal)
            case In(path, literals):
                return self.member(self.comparable(path, expression), literals)
            case Like(path, pattern):
                return self.like(self.comparable(path, expression), pattern)
        raise AssertionError(f"no binding of {type(expression).__name__}")

    def column(self, path: ColumnPath) -> BoundColumn:
        found = resolve_column(path, self.schema, self.partition_columns, self.where)
        if self.event_time is None or found.physical_path != self.event_time.source or found.is_partition:
            return found
        return msgspec.structs.replace(found, period=self.event_time.period)

    def comparable(self, path: ColumnPath, expression: Expression) -> BoundColumn:
        column = self.column(path)
        if column.type_name in _UNCOMPARABLE:
            raise InvalidRequestError(
                f"the column {column_sql(path)} has no values to compare with (in: {expression})",
                self.where,
                "such a column can only be tested with is null and is not null",
            )
        return column

    def comparison(self, column: BoundColumn, operator: Operator, literal: Literal) -> Node:
        typed = self.typed(column, literal)
        return Fixed(None) if typed is None else _placed(column, operator, typed)

    def member(self, column: BoundColumn, literals: tuple[Literal, ...]) -> Node:
        typed = [self.typed(column, literal) for literal in literals]
        # A literal between two values of the type equals none of them.
        exact = [one for one in typed if one is not None and one.position == "exact"]
        scalars = [one.value for one in exact if one.value is not None]
        wanted = arrow_type(PrimitiveType(column.type_name))
        values = pc.unique(pa.array([scalar.as_py() for scalar in scalars], wanted))
        return Member(
            column,
            values.take(pc.sort_indices(values)),
            has_null=None in typed,
            has_rounded=any(one.is_rounded for one in exact),
        )

    def like(self, column: BoundColumn, pattern: str) -> Node:
        if column.type_name != "string":
            raise InvalidRequestError(
                f"the column {column_sql(column.path)} is {column.type_name}, and like compares text",
                self.where,
                "use =, <, > or between",
            )
        return _pattern(column, pattern, self.where)

    def typed(self, column: BoundColumn, literal: Literal) -> TypedLiteral | None:
        """The literal in the column's type; None for null."""
        if literal.value is None:
            return None
        typed = typed_literal(literal.value, arrow_type(PrimitiveType(column.type_name)), self.time_zone)
        if typed is None:
            raise InvalidRequestError(
                f"the column {column_sql(column.path)} is {column.type_name}, "
                f"and {literal_sql(literal)} cannot be one",
                self.where,
                _HINTS.get(column.type_name, "compare with a number"),
            )
        return typed


def _placed(column: BoundColumn, operator: Operator, typed: TypedLiteral) -> Node:
    """The comparison with a value of the column's type that says the same."""
    if typed.position == "exact":
        assert typed.value is not None
        return Compare(column, operator, typed.value, typed.is_rounded)
    if operator in ("=", "<>"):
        return FixedUnlessNull(column, operator == "<>")
    if typed.position == "between":  # above `value`, below its successor
        assert typed.value is not None
        return Compare(column, "<=" if operator in ("<", "<=") else ">", typed.value)
    return FixedUnlessNull(column, (operator in ("<", "<=")) == (typed.position == "above all"))


def _pattern(column: BoundColumn, pattern: str, where: str) -> Node:
    tokens = list(_LIKE_TOKEN.finditer(pattern))
    if any(token["bad"] for token in tokens):
        raise InvalidRequestError(
            f"the pattern {pattern!r} has a backslash before neither %, _ nor a backslash",
            where,
            r"write \\ for a backslash in a like pattern",
        )
    wild = next((at for at, token in enumerate(tokens) if token["any"] or token["one"]), len(tokens))
    prefix = "".join(token["escaped"] or token["plain"] for token in tokens[:wild])
    if wild == len(tokens):
        return Compare(column, "=", pa.scalar(prefix, pa.string()))
    is_prefix_only = all(token["any"] for token in tokens[wild:])
    return Pattern(column, pattern, prefix, is_prefix_only)


def _partition_names(columns: Sequence[BoundColumn]) -> Iterator[str]:
    """The partition columns that tell something: those that are named, and periods of a named time."""
    for column in columns:
        if column.is_partition:
            yield column.physical_path[0]
        elif column.period is not None:
            yield column.period.physical_name


def _has_statistics(column: BoundColumn) -> bool:
    return not column.is_partition and column.has_statistics


def _null_tested(node: Node) -> Iterator[BoundColumn]:
    match node:
        case NullTest(column):
            yield column
        case All(parts) | Some(parts):
            for part in parts:
                yield from _null_tested(part)
        case Negation(part):
            yield from _null_tested(part)


def _stats_column(column: BoundColumn, *, is_null_tested: bool, sides: frozenset[str]) -> StatsColumn:
    return StatsColumn(
        path=column.physical_path,
        type=PrimitiveType(column.type_name or "void"),
        is_collated=column.is_collated,
        null_count_only=column.type_name in _UNCOMPARABLE or column.is_collated,
        is_null_tested=is_null_tested,
        sides=sides,
        was_float=column.was_float,
    )


def _zone(name: str, where: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise InvalidRequestError(
            f"there is no time zone {name!r}", where, "name one as in Europe/Berlin, or UTC"
        ) from error
