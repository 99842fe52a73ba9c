"""The least value a filter lets each partition column have: a hint of how recent the files it wants are."""

from __future__ import annotations

from collections.abc import Iterator

from lazydelta.predicate.bound import BoundPredicate
from lazydelta.predicate.nodes import All, BoundColumn, Compare, Member, Node


def partition_lower_bounds(predicate: BoundPredicate) -> Iterator[object]:
    """What a partition column, or a time that one was made from, must equal or exceed for a row to match."""
    return _bounds(predicate.root)


def _bounds(node: Node) -> Iterator[object]:
    match node:
        case All(parts):
            for part in parts:
                yield from _bounds(part)
        case Compare(column, "=" | ">=" | ">", value) if _tells_partition(column):
            yield value.as_py()
        case Member(column, values) if _tells_partition(column) and len(values):
            yield values[0].as_py()


def _tells_partition(column: BoundColumn) -> bool:
    """Whether the column is a partition column, or a time that one was made from."""
    return column.is_partition or column.period is not None
