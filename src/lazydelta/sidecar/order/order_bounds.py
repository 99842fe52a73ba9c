"""Where parts and row groups of a sidecar begin in the order of a scan, told before they are read.

Contract: one-sided. No row comes before its part's or row group's bound; where nothing is told, the bound is
before everything. Ascending that is the least value, and nulls come first; descending the greatest.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pyarrow as pa

from lazydelta.protocol.schema import PrimitiveType, arrow_type
from lazydelta.protocol.value_text import values_from_text
from lazydelta.sidecar.format.conform import widened
from lazydelta.sidecar.format.footer_ranges import OrderColumn, footer_ranges
from lazydelta.sidecar.format.manifest import Part, RowGroup
from lazydelta.sidecar.format.part_reader import PartReader
from lazydelta.sidecar.order.anchor import Anchor
from lazydelta.sidecar.order.sort_keys import NAN_KEY, SortKey, before_all, comparable
from lazydelta.sidecar.read.public_rows import PartColumns, RowShape
from lazydelta.sidecar.read.reading import MetadataSource, MetadataTier
from lazydelta.sidecar.read.traversal import Traversal


class _Range(msgspec.Struct, frozen=True, kw_only=True):
    """As the manifest or a footer tells it."""

    min: str | None
    max: str | None
    nulls: int  # rows without one of the two
    count: int


class _Told(msgspec.Struct, frozen=True, kw_only=True):
    """Ranges and how to read them."""

    ranges: Sequence[_Range]
    type_name: str | None
    both_or_none: bool  # a row that has no maximum has no minimum either
    tells_nulls: bool  # rows without a value are told from those of which nothing is known


def part_bounds(source: MetadataSource, parts: Sequence[Part], traversal: Traversal) -> list[SortKey]:
    """Where each part begins."""
    ranges = [
        _Range(min=part.order_min, max=part.order_max, nulls=part.order_nulls, count=part.num_rows)
        for part in parts
    ]
    return _bounds(_by_manifest(ranges, source, traversal), traversal)


def row_group_bounds(
    source: MetadataSource, groups: Sequence[RowGroup], traversal: Traversal
) -> list[SortKey]:
    """Where each row group begins."""
    return _bounds(_by_manifest(_ranges(groups), source, traversal), traversal)


def footer_bounds(reader: PartReader, order_type: str | None, traversal: Traversal) -> list[SortKey] | None:
    """Where each row group of a part begins by its footer; None where that does not tell."""
    name, type_name = "path", "string"
    if traversal.column is not None:
        shape = RowShape(columns=(), order=traversal.column)
        found = PartColumns(reader.schema, shape).order_name
        # A part of a narrower type says it in another text than its rows do once they are widened.
        if found is None or order_type is None or reader.schema.field(found).type != _arrow(order_type):
            return None
        name, type_name = found, order_type
    if name not in reader.metadata.schema.to_arrow_schema().names:  # in the other half of the part
        return None
    column = OrderColumn(path=(name,), type_name=type_name, low=name, high=name, is_partition=True)
    told = footer_ranges(reader.metadata, reader.schema, column, reader.nan_counts)
    return _bounds(
        _Told(ranges=_ranges(told.row_groups), type_name=type_name, both_or_none=True, tells_nulls=False),
        traversal,
    )


def parts_before(source: MetadataSource, anchor: Anchor, traversal: Traversal) -> list[bool]:
    """Which parts end before the anchor, as far as the manifest tells."""
    return _before(part_bounds(source, source.manifest.parts, traversal.reversed), anchor, traversal)


def row_groups_before(
    source: MetadataSource, groups: Sequence[RowGroup], anchor: Anchor, traversal: Traversal
) -> list[bool]:
    """The same of row groups."""
    return _before(row_group_bounds(source, groups, traversal.reversed), anchor, traversal)


def footer_before(
    reader: PartReader, order_type: str | None, anchor: Anchor, traversal: Traversal
) -> list[bool]:
    """The same by a part's footer; where a row group has one order value, by its paths, too."""
    begins = footer_bounds(reader, order_type, traversal)
    ends = footer_bounds(reader, order_type, traversal.reversed)
    if begins is None or ends is None:
        return [False] * reader.metadata.num_row_groups
    found = _before(ends, anchor, traversal)
    by_path = Traversal(column=None, descending=traversal.descending)
    paths = footer_bounds(reader, None, by_path.reversed) if traversal.column is not None else None
    if paths is not None:
        own = anchor.key(traversal)[:1]
        same = [tuple(begin[:1]) == tuple(end[:1]) == own for begin, end in zip(begins, ends, strict=True)]
        behind = _before(paths, anchor, by_path)
        found = [one or (two and three) for one, two, three in zip(found, same, behind, strict=True)]
    return found


def _before(ends: Sequence[SortKey], anchor: Anchor, traversal: Traversal) -> list[bool]:
    """Where nothing lies behind an end, and the end before the anchor, everything does."""
    place = anchor.key(traversal.reversed)
    return [place < end for end in ends]


def _by_manifest(ranges: Sequence[_Range], source: MetadataSource, traversal: Traversal) -> _Told:
    """It tells the greatest `max.<col>` where rows are sorted by `min.<col>`; of a partition they are one."""
    is_partition = traversal.column is not None and traversal.column.is_partition
    return _Told(
        ranges=ranges,
        type_name=None if traversal.column is None else source.manifest.order_type,
        both_or_none=is_partition,
        tells_nulls=is_partition and source.tier is MetadataTier.MANIFEST,
    )


def _ranges(groups: Sequence[RowGroup]) -> list[_Range]:
    return [
        _Range(
            min=group.event_hour_min,
            max=group.event_hour_max,
            nulls=group.event_hour_nulls,
            count=group.num_rows,
        )
        for group in groups
    ]


def _bounds(told: _Told, traversal: Traversal) -> list[SortKey]:
    down = traversal.descending
    unknown = before_all((), descending=down)
    values = None
    if told.type_name is not None:
        texts = pa.array([one.max if down else one.min for one in told.ranges], pa.string())
        today = _arrow(told.type_name) if traversal.column is None else arrow_type(traversal.column.type)
        values = widened(values_from_text(texts, told.type_name), today, side="max" if down else "min")
    if values is None:
        return [unknown] * len(told.ranges)
    found = []
    for value, one in zip(values, told.ranges, strict=True):
        if value.is_valid and (one.nulls == 0 or (down and told.both_or_none)):
            found.append(before_all((comparable(value),), descending=down))
        elif down and told.tells_nulls and one.max is None and one.nulls == one.count:
            found.append(before_all((NAN_KEY,), descending=True))
        else:
            found.append(unknown)
    return found


def _arrow(type_name: str) -> pa.DataType:
    return arrow_type(PrimitiveType(type_name))
