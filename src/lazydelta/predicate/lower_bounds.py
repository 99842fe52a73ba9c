"""The least value a filter lets each partition column have: a hint of how recent the files it wants are."""

from __future__ import annotations

from collections.abc import Iterator

from lazydelta.predicate.bound import BoundPredicate
from lazydelta.predicate.nodes import All, Compare, Member, Node


def partition_lower_bounds(predicate: BoundPredicate) -> Iterator[object]:
    """Values that a partition column must equal or exceed for any row to match, where a conjunct says so."""
    return _bounds(predicate.root)


def _bounds(node: Node) -> Iterator[object]:
    match node:
        case All(parts):
            for part in parts:
                yield from _bounds(part)
        case Compare(column, "=" | ">=" | ">", value) if column.is_partition:
            yield value.as_py()
        case Member(column, values) if column.is_partition and len(values):
            yield values[0].as_py()
