"""The bound tree: columns resolved against a schema, literals in the columns' own types.

Contract: plain data. After binding, no literal needs rounding: what lay between two values or outside the
type's range was rewritten to an equal condition. `evaluate` judges files by it, `rows` judges rows.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pyarrow as pa

from lazydelta.predicate.expression import ColumnPath, Operator
from lazydelta.predicate.periods import GeneratedPeriod


class BoundColumn(msgspec.Struct, frozen=True):
    """A column of the table. `type_name` is Delta's name of a primitive type, "" of any other."""

    path: ColumnPath
    physical_path: ColumnPath
    type_name: str
    is_partition: bool = False
    is_collated: bool = False
    was_float: bool = False  # a double that older files hold as float
    has_statistics: bool = True  # a struct has none of its own
    period: GeneratedPeriod | None = None  # a partition column that was made from this one


class Node(msgspec.Struct, frozen=True, eq=False):
    """A bound condition."""


class Fixed(Node, frozen=True, eq=False):
    """True, false or null, whatever the row."""

    value: bool | None


class FixedUnlessNull(Node, frozen=True, eq=False):
    """`value` where the column has one, null elsewhere: `x < 1000` for a byte, `x = 1.5` for an integer."""

    column: BoundColumn
    value: bool


class Compare(Node, frozen=True, eq=False):
    """`column operator value`; `value` is not null."""

    column: BoundColumn
    operator: Operator
    value: pa.Scalar
    is_rounded: bool = False  # the literal was rounded to float; readers that compare as double see another


class Member(Node, frozen=True, eq=False):
    """`column IN values`: sorted, distinct, without nulls; `has_null` when the list held one."""

    column: BoundColumn
    values: pa.Array
    has_null: bool = False
    has_rounded: bool = False


class Pattern(Node, frozen=True, eq=False):
    """`column LIKE pattern`; `prefix` is the text before the first wildcard."""

    column: BoundColumn
    pattern: str
    prefix: str
    is_prefix_only: bool  # nothing but `%` after the prefix


class NullTest(Node, frozen=True, eq=False):
    """`column IS NULL`."""

    column: BoundColumn


class All(Node, frozen=True, eq=False):
    """Every part."""

    parts: tuple[Node, ...]


class Some(Node, frozen=True, eq=False):
    """At least one part."""

    parts: tuple[Node, ...]


class Negation(Node, frozen=True, eq=False):
    """Not the part."""

    part: Node


def columns_of(node: Node) -> Iterator[BoundColumn]:
    """Every column the condition names, in order, repeated as often as named."""
    match node:
        case All(parts) | Some(parts):
            for part in parts:
                yield from columns_of(part)
        case Negation(part):
            yield from columns_of(part)
        case FixedUnlessNull() | Compare() | Member() | Pattern() | NullTest():
            yield node.column
