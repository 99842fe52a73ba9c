"""Which parts and row groups of a sidecar may hold a file that matches, told by bounds alone.

Why: this is what makes the last hour of ten million files cost kilobytes.
Contract: one-sided. A part or row group is ruled out only where its bounds prove that no file in it can hold
a matching row; one in which some row lacks a bound is not ruled out by it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from lazydelta.log.file_rows import Mask
from lazydelta.predicate import BoundColumn, BoundPredicate, FileFacts, columns_of
from lazydelta.protocol.schema import PrimitiveType, arrow_type
from lazydelta.protocol.statistics import ColumnBounds, FileStatistics
from lazydelta.protocol.value_text import values_from_text
from lazydelta.sidecar.column_paths import Path
from lazydelta.sidecar.conform import widened
from lazydelta.sidecar.manifest import Manifest, Part, RowGroup, ZoneBounds
from lazydelta.sidecar.part_reader import PartReader

_Texts = Sequence[str | None]


def possible_parts(manifest: Manifest, predicate: BoundPredicate) -> Mask:
    """Which parts the manifest does not rule out."""
    bounds = {}
    for column in dict.fromkeys(columns_of(predicate.root)):
        zones = [_zone(part, column.physical_path) for part in manifest.parts]
        known = _typed_bounds(
            column,
            next((zone.type for zone in zones if zone is not None), ""),
            [None if zone is None or not _is_sound(zone, "min") else zone.min for zone in zones],
            [None if zone is None or not _is_sound(zone, "max") else zone.max for zone in zones],
        )
        if known is not None:
            bounds[column.physical_path] = known
    return _verdict(bounds, len(manifest.parts), predicate)


def possible_row_groups(
    manifest: Manifest, row_groups: Sequence[RowGroup], predicate: BoundPredicate
) -> Mask:
    """Which of the manifest's row groups their range in the order column does not rule out."""
    column = _order_column(manifest, predicate)
    if column is None or manifest.order_type is None:
        return np.ones(len(row_groups), np.bool_)
    is_sound = _order_soundness(manifest)
    known = _typed_bounds(
        column,
        manifest.order_type,
        [group.event_hour_min if is_sound(group) else None for group in row_groups],
        [group.event_hour_max if is_sound(group) else None for group in row_groups],
    )
    bounds = {} if known is None else {column.physical_path: known}
    return _verdict(bounds, len(row_groups), predicate)


def possible_by_footer(part: PartReader, predicate: BoundPredicate) -> Mask:  # noqa: ARG001
    """Which row groups of a part its own statistics do not rule out."""
    return np.ones(part.metadata.num_row_groups, np.bool_)


def _order_column(manifest: Manifest, predicate: BoundPredicate) -> BoundColumn | None:
    """The column of the predicate that the rows are sorted by."""
    order = _order_path(manifest)
    named = (column for column in columns_of(predicate.root) if column.physical_path == order)
    return next(named, None)


def _order_path(manifest: Manifest) -> Path | None:
    """The zone maps begin with the order column, if there is one."""
    if manifest.order_column is None:
        return None
    return next((part.bounds[0].path for part in manifest.parts if part.bounds), None)


def _order_soundness(manifest: Manifest) -> Callable[[RowGroup], bool]:
    """Rows without a bound are null in a partition column and unknown in any other."""
    is_null = [bool(part.bounds) and part.bounds[0].is_partition for part in manifest.parts]
    return lambda group: group.event_hour_nulls == 0 or is_null[group.part]


def _zone(part: Part, path: Path) -> ZoneBounds | None:
    return next((zone for zone in part.bounds if zone.path == path), None)


def _is_sound(zone: ZoneBounds, side: str) -> bool:
    without = zone.rows_without_min if side == "min" else zone.rows_without_max
    return without == 0 or zone.is_partition


def _typed_bounds(column: BoundColumn, type_name: str, lows: _Texts, highs: _Texts) -> ColumnBounds | None:
    if not type_name or not column.type_name:
        return None
    wanted = arrow_type(PrimitiveType(column.type_name))
    low, high = (
        widened(values_from_text(pa.array(texts, pa.string()), type_name), wanted) for texts in (lows, highs)
    )
    return ColumnBounds(min=low, max=high)


def _verdict(bounds: dict[Path, ColumnBounds], count: int, predicate: BoundPredicate) -> Mask:
    statistics = FileStatistics(row_count=count, num_records=None, tight_bounds=None, columns=bounds)
    return predicate.might_match(FileFacts(row_count=count, statistics=statistics))
