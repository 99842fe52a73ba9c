"""Entries of a manifest made from a part's footer alone: row groups, and ranges of one column.

Why: parts whose manifest is missing are read through the same code as those that have one.
Contract: one-sided, as the writer's own entries are. A range is told only where Parquet's statistics are
there; rows that may lack the value (null, NaN, an empty text, nothing told) are counted as rows without it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lazydelta.log.footer_bounds import leaf_positions
from lazydelta.protocol.value_text import values_from_text
from lazydelta.sidecar.format.bound_text import bound_text
from lazydelta.sidecar.format.column_paths import Path
from lazydelta.sidecar.format.manifest import RowGroup, ZoneBounds
from lazydelta.sidecar.format.part_writer import row_group_entries
from lazydelta.sidecar.format.zones import OrderRange

NanCounts = Mapping[str, Sequence[int]]


class OrderColumn(msgspec.Struct, frozen=True, kw_only=True):
    """The table's column that tells periods, and where parts hold it."""

    path: Path
    type_name: str  # Delta's
    low: str  # a part's column
    high: str  # the same of a partition column
    is_partition: bool


class FooterRanges(msgspec.Struct, frozen=True, kw_only=True):
    """What a footer tells of the order column."""

    row_groups: tuple[RowGroup, ...]
    whole: OrderRange
    bounds: tuple[ZoneBounds, ...]  # of the order column, if there is one


class _Side(msgspec.Struct, frozen=True, kw_only=True):
    text: str | None
    is_told: bool  # no text means no value
    without: int  # rows of the row group that may lack the value
    is_clear: bool  # those rows are null, for certain


def footer_ranges(
    footer: pq.FileMetaData, schema: pa.Schema, order: OrderColumn | None, nan_counts: NanCounts
) -> FooterRanges:
    """The row groups of a part and their ranges; `schema` is the part's."""
    groups = range(footer.num_row_groups)
    if order is None:
        entries = row_group_entries(footer, [OrderRange() for _ in groups])
        return FooterRanges(row_groups=tuple(entries), whole=OrderRange(), bounds=())
    lows = _sides(footer, schema.field(order.low), "min", nan_counts)
    highs = _sides(footer, schema.field(order.high), "max", nan_counts)
    ranges = [
        OrderRange(min=low.text, max=high.text, nulls=_rows_without(footer, group, low, high))
        for group, low, high in zip(groups, lows, highs, strict=True)
    ]
    whole = OrderRange(
        min=_extreme(lows, order.type_name, "min"),
        max=_extreme(highs, order.type_name, "max"),
        nulls=sum(one.nulls for one in ranges),
    )
    zone = ZoneBounds(
        path=order.path,
        type=order.type_name,
        min=whole.min,
        max=whole.max,
        rows_without_min=sum(low.without for low in lows),
        rows_without_max=sum(high.without for high in highs),
        is_partition=order.is_partition and all(side.is_clear for side in (*lows, *highs)),
    )
    return FooterRanges(row_groups=tuple(row_group_entries(footer, ranges)), whole=whole, bounds=(zone,))


def _sides(footer: pq.FileMetaData, field: pa.Field, side: str, nan_counts: NanCounts) -> list[_Side]:
    """One for each row group."""
    at = leaf_positions(footer).get(field.name)  # a nested column has no leaf of its name
    groups = [footer.row_group(group) for group in range(footer.num_row_groups)]
    nans = nan_counts.get(field.name, [0] * len(groups))
    if len(nans) != len(groups):  # nobody can tell whose counts they are
        nans = [group.num_rows for group in groups]
    return [
        _side(
            None if at is None else group.column(at).statistics, group.num_rows, field.type, side, nan_count
        )
        for group, nan_count in zip(groups, nans, strict=True)
    ]


def _side(told: pq.Statistics | None, count: int, type_: pa.DataType, side: str, nan_count: int) -> _Side:
    unknown = _Side(text=None, is_told=False, without=count, is_clear=False)
    if told is None or not told.has_null_count:
        return unknown
    without = min(told.null_count + nan_count, count)
    is_text = bool(pa.types.is_string(type_))
    if told.null_count == count:
        return _Side(text=None, is_told=True, without=count, is_clear=is_text)
    text = _text(told, type_, side)
    # An empty text may be meant as null; a typed null may be a text that does not parse.
    if text is None or (is_text and _text(told, type_, "min") == ""):
        return unknown
    return _Side(text=text, is_told=True, without=without, is_clear=is_text or without == 0)


def _rows_without(footer: pq.FileMetaData, group: int, low: _Side, high: _Side) -> int:
    """Rows that lack one of the two, at most: which rows they are the footer does not tell."""
    return min(low.without + high.without, int(footer.row_group(group).num_rows))


def _text(told: pq.Statistics, type_: pa.DataType, side: str) -> str | None:
    if not told.has_min_max:
        return None
    try:
        return bound_text(pa.scalar(told.min if side == "min" else told.max, type_))
    except (pa.ArrowException, ValueError, OverflowError, TypeError):
        return None


def _extreme(sides: Sequence[_Side], type_name: str, side: str) -> str | None:
    if not all(one.is_told for one in sides):
        return None
    values = values_from_text(pa.array([one.text for one in sides], pa.string()), type_name)
    return bound_text(pc.min_max(values)[side])
