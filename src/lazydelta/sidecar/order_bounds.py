"""Where parts and row groups of a sidecar begin in the order of a scan, told before they are read.

Contract: one-sided. No row comes before its part's or row group's bound; where nothing is told, the bound is
before everything. Ascending that is the least value, and nulls come first; descending the greatest.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pyarrow as pa

from lazydelta.protocol.schema import arrow_type
from lazydelta.protocol.value_text import values_from_text
from lazydelta.sidecar.conform import widened
from lazydelta.sidecar.manifest import Part, RowGroup
from lazydelta.sidecar.reading import MetadataSource, MetadataTier
from lazydelta.sidecar.sort_keys import NAN_KEY, SortKey, before_all, comparable
from lazydelta.sidecar.traversal import Traversal


class _Range(msgspec.Struct, frozen=True, kw_only=True):
    """As the manifest tells it."""

    min: str | None
    max: str | None
    nulls: int  # rows without one of the two
    count: int


def part_bounds(source: MetadataSource, parts: Sequence[Part], traversal: Traversal) -> list[SortKey]:
    """Where each part begins."""
    ranges = [
        _Range(min=part.order_min, max=part.order_max, nulls=part.order_nulls, count=part.num_rows)
        for part in parts
    ]
    return _bounds(ranges, source, traversal)


def row_group_bounds(
    source: MetadataSource, groups: Sequence[RowGroup], traversal: Traversal
) -> list[SortKey]:
    """Where each row group begins."""
    ranges = [
        _Range(
            min=group.event_hour_min,
            max=group.event_hour_max,
            nulls=group.event_hour_nulls,
            count=group.num_rows,
        )
        for group in groups
    ]
    return _bounds(ranges, source, traversal)


def _bounds(ranges: Sequence[_Range], source: MetadataSource, traversal: Traversal) -> list[SortKey]:
    down, type_name = traversal.descending, source.manifest.order_type
    unknown = before_all((), descending=down)
    if traversal.column is None or type_name is None:
        return [unknown] * len(ranges)
    texts = pa.array([one.max if down else one.min for one in ranges], pa.string())
    values = widened(values_from_text(texts, type_name), arrow_type(traversal.column.type))
    if values is None:
        return [unknown] * len(ranges)
    # Of a partition column a row has both bounds or none. Only a writer tells apart what is null and what it
    # does not know.
    is_partition = traversal.column.is_partition
    tells_nulls = is_partition and source.tier is MetadataTier.MANIFEST
    found = []
    for value, one in zip(values, ranges, strict=True):
        if value.is_valid and (one.nulls == 0 or (down and is_partition)):
            found.append(before_all((comparable(value),), descending=down))
        elif down and tells_nulls and one.max is None and one.nulls == one.count:
            found.append(before_all((NAN_KEY,), descending=True))
        else:
            found.append(unknown)
    return found
