"""Which row groups of a part may hold a file that matches, told by the part's own footers.

Why: the manifest tells ranges of the order column alone, a footer those of every column.
Contract: one-sided. A column rules a row group out only where every row of it has a bound: Parquet's own
bounds pass over nulls, which the footer counts, and NaN, which the part's keys count. Of a split part the
statistics' footer is read only if the index leaves something and the predicate names what it does not hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from lazydelta.log.file_rows import Mask
from lazydelta.log.footer_bounds import (
    Side,
    chunk_bounds,
    chunk_null_counts,
    leaf_positions,
    row_counts,
)
from lazydelta.predicate import BoundColumn, BoundPredicate
from lazydelta.predicate.periods import GeneratedPeriod
from lazydelta.protocol.statistics import ColumnBounds
from lazydelta.sidecar.format.column_paths import Path
from lazydelta.sidecar.format.layout import field_kind, field_path
from lazydelta.sidecar.format.manifest import Part
from lazydelta.sidecar.format.part_reader import PartReader
from lazydelta.sidecar.read.range_facts import (
    named_columns,
    named_periods,
    only_where,
    possible_ranges,
    range_bounds,
    zone_of,
)

_Role = tuple[str, Path]  # kind and physical path
_MIN: Side = "min"
_MAX: Side = "max"


class _Chunks(msgspec.Struct, frozen=True, eq=False):
    """One column of a part, in all row groups."""

    footer: pq.FileMetaData
    leaf: int
    nans: Sequence[int]  # per row group

    def bounds(self, side: Side) -> pa.Array:
        return chunk_bounds(self.footer, self.leaf, side)

    @property
    def null_counts(self) -> NDArray[np.int64]:
        return chunk_null_counts(self.footer, self.leaf)

    @property
    def is_whole(self) -> Mask:
        """Where every row has a value that the bounds speak of."""
        is_whole: Mask = (self.null_counts == 0) & (np.array(self.nans) == 0)
        return is_whole


_Columns = Mapping[_Role, _Chunks]


def possible_by_footer(part: PartReader, predicate: BoundPredicate) -> Mask:
    """Which row groups of a part its own statistics do not rule out."""
    if part.part.stats_file is None:
        return _possible(part.part, _columns(part.schema, part.metadata, part.nan_counts), predicate)
    columns = _columns(part.index_schema, part.metadata, part.nan_counts)
    possible = _possible(part.part, columns, predicate)
    paths = {path for _, path in columns}
    if not possible.any() or all(column.physical_path in paths for column in named_columns(predicate)):
        return possible
    statistics = _columns(part.schema, part.stats_metadata, part.nan_counts)
    return possible & _possible(part.part, {**columns, **statistics}, predicate)


def _possible(part: Part, columns: _Columns, predicate: BoundPredicate) -> Mask:
    named = {
        column.physical_path: _bounds(part, columns, column, predicate) for column in named_columns(predicate)
    }
    periods = {period.physical_name: _periods(part, columns, period) for period in named_periods(predicate)}
    footer = next((chunks.footer for chunks in columns.values()), None)
    if footer is None:
        return np.ones(part.num_row_groups, np.bool_)
    return possible_ranges(
        predicate,
        footer.num_row_groups,
        columns={path: bounds for path, bounds in named.items() if bounds is not None},
        periods={name: bounds for name, bounds in periods.items() if bounds is not None},
        num_files=pa.array(row_counts(footer), pa.int64()),
    )


def _columns(schema: pa.Schema, footer: pq.FileMetaData, nan_counts: Mapping[str, Sequence[int]]) -> _Columns:
    """The columns of a footer by what they stand for."""
    leaves = leaf_positions(footer)
    groups = footer.num_row_groups
    found = {}
    for field in schema:
        path = field_path(field)
        if path is None or field.name not in leaves:
            continue
        nans = nan_counts.get(field.name, [0] * groups)
        # Counts of another number of row groups tell nothing: then any row may be NaN.
        found[field_kind(field) or "", path] = _Chunks(
            footer, leaves[field.name], nans if len(nans) == groups else [1] * groups
        )
    return found


def _bounds(
    part: Part, columns: _Columns, column: BoundColumn, predicate: BoundPredicate
) -> ColumnBounds | None:
    if column.is_partition:
        values = columns.get(("partition", column.physical_path))
        return None if values is None else _partition_bounds(part, values, column, predicate)
    low, high, nulls = (columns.get((kind, column.physical_path)) for kind in ("min", "max", "null_count"))
    return range_bounds(
        column,
        low=None if low is None else only_where(low.bounds(_MIN), low.is_whole),
        high=None if high is None else only_where(high.bounds(_MAX), high.is_whole),
        least_high=None if high is None else high.bounds(_MIN),
        null_count=None if nulls is None else _no_nulls(nulls),
    )


def _partition_bounds(
    part: Part, values: _Chunks, column: BoundColumn, predicate: BoundPredicate
) -> ColumnBounds:
    """Rows without a value are null where text is kept as it is, or where the writer made sure of it."""
    low, high = values.bounds(_MIN), values.bounds(_MAX)
    nulls = values.null_counts
    zone = zone_of(part, column.physical_path)
    is_clear = pa.types.is_string(low.type) or (zone is not None and zone.is_partition)
    is_sound = values.is_whole | (is_clear & (nulls >= 0) & (np.array(values.nans) == 0))
    return range_bounds(
        column,
        low=only_where(low, is_sound),
        high=only_where(high, is_sound),
        null_count=pa.array(nulls, pa.int64(), mask=~is_sound),
        is_zone_certain=predicate.time_zone == "UTC",
    )


def _no_nulls(null_counts: _Chunks) -> pa.Array:
    """0 where no file of the row group has a null, unknown elsewhere."""
    is_zero = null_counts.is_whole
    for side in (_MIN, _MAX):
        found = null_counts.bounds(side)
        is_zero = is_zero & _flags(pc.equal(found, pa.scalar(0, found.type)))
    return pa.array(np.zeros(len(is_zero), np.int64), mask=~is_zero)


def _periods(part: Part, columns: _Columns, period: GeneratedPeriod) -> ColumnBounds | None:
    """First and last period of each row group, where all between them are periods, too."""
    path = (period.physical_name,)
    values = columns.get(("partition", path))
    if values is None:
        return None
    low, high = values.bounds(_MIN), values.bounds(_MAX)
    if not pa.types.is_string(low.type):
        return None
    zone = zone_of(part, path)
    is_sound = values.is_whole
    if zone is None or zone.period_format != period.format:
        is_sound = is_sound & _flags(pc.equal(low, high))
    return ColumnBounds(min=only_where(low, is_sound), max=only_where(high, is_sound))


def _flags(answers: pa.BooleanArray) -> Mask:
    """True where the answer is, and no doubt about it."""
    flags: Mask = pc.fill_null(answers, False).to_numpy(zero_copy_only=False)
    return flags
