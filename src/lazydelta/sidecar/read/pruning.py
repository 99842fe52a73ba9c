"""Which parts and row groups of a sidecar may hold a file that matches, told by bounds alone.

Why: this is what makes the last hour of ten million files cost kilobytes.
Contract: one-sided. A part or row group is ruled out only where its bounds prove that no file in it can hold
a matching row; one in which some row lacks a bound is not ruled out by it. Parts may be of different ages:
each is read by the types that it was written with.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import pyarrow as pa

from lazydelta.log.file_rows import Mask
from lazydelta.predicate import BoundColumn, BoundPredicate
from lazydelta.predicate.periods import GeneratedPeriod
from lazydelta.protocol.schema import PrimitiveType, arrow_type
from lazydelta.protocol.statistics import ColumnBounds
from lazydelta.protocol.value_text import values_from_text
from lazydelta.sidecar.format.column_paths import Path
from lazydelta.sidecar.format.manifest import Manifest, Part, RowGroup, ZoneBounds
from lazydelta.sidecar.read.range_facts import (
    named_columns,
    named_periods,
    possible_ranges,
    range_bounds,
    zone_of,
)


class _Range(msgspec.Struct, frozen=True):
    """The range of one column in one part or row group, as text."""

    type: str
    low: str | None
    high: str | None
    nulls: int | None  # files without a value; None where it is not sure that they are null
    is_whole: bool  # every file has a value between the two
    period_format: str | None  # of which every text is a period


def possible_parts(manifest: Manifest, predicate: BoundPredicate) -> Mask:
    """Which parts the manifest does not rule out."""
    parts = manifest.parts
    columns = {
        column.physical_path: _bounds(
            column, [_part_range(part, column.physical_path) for part in parts], predicate
        )
        for column in named_columns(predicate)
    }
    periods = {
        period.physical_name: _periods(period, [_part_range(part, (period.physical_name,)) for part in parts])
        for period in named_periods(predicate)
    }
    num_files = pa.array([part.num_rows for part in parts], pa.int64())
    return possible_ranges(predicate, len(parts), columns=columns, periods=periods, num_files=num_files)


def possible_row_groups(
    manifest: Manifest, row_groups: Sequence[RowGroup], predicate: BoundPredicate
) -> Mask:
    """Which of the manifest's row groups their range in the order column does not rule out."""
    order = _order_path(manifest)
    columns = [column for column in named_columns(predicate) if column.physical_path == order]
    periods = [period for period in named_periods(predicate) if (period.physical_name,) == order]
    if order is None or not (columns or periods):
        return np.ones(len(row_groups), np.bool_)
    zones = [zone_of(part, order) for part in manifest.parts]
    ranges = [_row_group_range(group, zones[group.part]) for group in row_groups]
    return possible_ranges(
        predicate,
        len(row_groups),
        columns={column.physical_path: _bounds(column, ranges, predicate) for column in columns},
        periods={period.physical_name: _periods(period, ranges) for period in periods},
        num_files=pa.array([group.num_rows for group in row_groups], pa.int64()),
    )


def _order_path(manifest: Manifest) -> Path | None:
    """The zone maps begin with the order column, if there is one."""
    if manifest.order_column is None:
        return None
    return next((part.bounds[0].path for part in manifest.parts if part.bounds), None)


def _part_range(part: Part, path: Path) -> _Range | None:
    zone = zone_of(part, path)
    if zone is None:
        return None
    # Files without a value are null in a partition column and unknown in any other.
    return _Range(
        type=zone.type,
        low=zone.min if zone.rows_without_min == 0 or zone.is_partition else None,
        high=zone.max if zone.rows_without_max == 0 or zone.is_partition else None,
        nulls=zone.rows_without_min if zone.is_partition else None,
        is_whole=zone.rows_without_min == zone.rows_without_max == 0,
        period_format=zone.period_format,
    )


def _row_group_range(group: RowGroup, zone: ZoneBounds | None) -> _Range | None:
    """The row group's range of the order column, which is that of its part in kind."""
    if zone is None:
        return None
    is_whole = group.event_hour_nulls == 0
    is_sound = is_whole or zone.is_partition
    return _Range(
        type=zone.type,
        low=group.event_hour_min if is_sound else None,
        high=group.event_hour_max if is_sound else None,
        nulls=group.event_hour_nulls if zone.is_partition else None,
        is_whole=is_whole,
        period_format=zone.period_format,
    )


def _bounds(column: BoundColumn, ranges: Sequence[_Range | None], predicate: BoundPredicate) -> ColumnBounds:
    """The ranges as the predicate takes them; those of each type are read by themselves."""
    found: list[tuple[list[int], ColumnBounds]] = []
    for type_name in dict.fromkeys(one.type for one in ranges if one is not None):
        at = [place for place, one in enumerate(ranges) if one is not None and one.type == type_name]
        told = [one for one in ranges if one is not None and one.type == type_name]
        bounds = range_bounds(
            column,
            low=_values([one.low for one in told], type_name),
            high=_values([one.high for one in told], type_name),
            null_count=pa.array([one.nulls for one in told], pa.int64()),
            is_zone_certain=predicate.time_zone == "UTC",
        )
        found.append((at, bounds))
    if len(found) == 1 and len(found[0][0]) == len(ranges):
        return found[0][1]
    return _spread(found, len(ranges))


def _periods(period: GeneratedPeriod, ranges: Sequence[_Range | None]) -> ColumnBounds:
    """First and last period of each range, where all between them are periods, too."""
    told = [
        (one.low, one.high)
        if one is not None and one.is_whole and (one.low == one.high or one.period_format == period.format)
        else (None, None)
        for one in ranges
    ]
    return ColumnBounds(
        min=pa.array([low for low, _ in told], pa.string()),
        max=pa.array([high for _, high in told], pa.string()),
    )


def _values(texts: Sequence[str | None], type_name: str) -> pa.Array | None:
    """The texts in their type; None for a type that this reader does not know."""
    try:
        arrow_type(PrimitiveType(type_name))
    except (KeyError, ValueError):
        return None
    return values_from_text(pa.array(texts, pa.string()), type_name)


def _spread(found: Sequence[tuple[list[int], ColumnBounds]], count: int) -> ColumnBounds:
    """Bounds of some places as bounds of all; elsewhere nothing is known."""

    def side(name: str) -> pa.Array | None:
        pieces = [(at, getattr(bounds, name)) for at, bounds in found]
        there = [(at, values) for at, values in pieces if values is not None]
        if not there:
            return None
        order = np.full(count, -1, np.int64)
        places = [place for at, _ in there for place in at]
        order[places] = np.arange(len(places))
        return pa.concat_arrays([values for _, values in there]).take(pa.array(order, mask=order < 0))

    return ColumnBounds(min=side("min"), max=side("max"), null_count=side("null_count"))
