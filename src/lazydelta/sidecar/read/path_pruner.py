"""Where in a sidecar certain files may be: told by their paths.

Why: rows are sorted by the order column, then by path, and most paths name the value of that column.
Contract: a guess goes by the usual: `col=value/` in a path is the order column's value, and paths are spelled
as writers do. What it passes over is asked again without guessing, and then nothing is passed over that may
hold a path that is still missing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import unquote

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lazydelta.log.file_rows import Mask
from lazydelta.log.footer_bounds import chunk_bounds, leaf_positions
from lazydelta.protocol.path_ranges import PathRange
from lazydelta.protocol.value_text import values_from_text
from lazydelta.sidecar.format.manifest import Manifest, RowGroup
from lazydelta.sidecar.format.part_reader import PartReader
from lazydelta.sidecar.read.wanted_paths import WantedPaths

_Range = tuple[str | None, str | None]


class PathPruner(msgspec.Struct, frozen=True, kw_only=True):
    """Leaves out what cannot hold one of the missing paths, or, as a guess, what is not likely to."""

    wanted: WantedPaths
    is_guess: bool

    def parts(self, manifest: Manifest) -> Mask:
        """By the range of the order column, where that may be guessed."""
        return self._by_order(manifest, [(part.order_min, part.order_max) for part in manifest.parts])

    def row_groups(self, manifest: Manifest, row_groups: Sequence[RowGroup]) -> Mask:
        """The same of row groups."""
        ranges = [(group.event_hour_min, group.event_hour_max) for group in row_groups]
        return self._by_order(manifest, ranges)

    def by_footer(self, part: PartReader) -> Mask:
        """By the least and the greatest path of each row group."""
        if not self.wanted.is_missing_any:
            return np.zeros(part.part.num_row_groups, np.bool_)
        ranges = path_ranges(part.metadata, "path")
        missing = self.wanted.missing
        return missing.likely_hold(ranges) if self.is_guess else missing.may_hold(ranges)

    def _by_order(self, manifest: Manifest, ranges: Sequence[_Range]) -> Mask:
        if not self.wanted.is_missing_any:
            return np.zeros(len(ranges), np.bool_)
        values = _order_values(manifest, self.wanted.paths) if self.is_guess else None
        if values is None:
            return np.ones(len(ranges), np.bool_)
        low, high = (
            values_from_text(pa.array([one[at] for one in ranges], pa.string()), manifest.order_type or "")
            for at in (0, 1)
        )
        return _hold_one(values, low, high)


def path_ranges(footer: pq.FileMetaData, leaf: str) -> list[PathRange]:
    """The least and the greatest path of each row group."""
    at = leaf_positions(footer).get(leaf)
    if at is None:
        return [PathRange(None, None)] * footer.num_row_groups
    bounds = [chunk_bounds(footer, at, side) for side in ("min", "max")]
    if not all(pa.types.is_string(bound.type) for bound in bounds):
        return [PathRange(None, None)] * footer.num_row_groups
    lows, highs = (bound.to_pylist() for bound in bounds)
    return [PathRange(low, high) for low, high in zip(lows, highs, strict=True)]


def _order_values(manifest: Manifest, paths: pa.StringArray) -> pa.Array | None:
    """The values of the order column that the paths name; None where one of them names none."""
    order = next((part.bounds[0] for part in manifest.parts if part.bounds), None)
    if manifest.order_column is None or manifest.order_type is None or order is None or len(order.path) > 1:
        return None
    pattern = f"(?:^|/){re.escape(order.path[0])}=(?P<value>[^/]*)/"
    texts = pc.unique(pc.struct_field(pc.extract_regex(paths, pattern), "value")).to_pylist()
    if None in texts:
        return None
    # Inside a folder's name Hive escapes once more.
    values = values_from_text(pa.array([unquote(text) for text in texts], pa.string()), manifest.order_type)
    return None if values.null_count else values


def _hold_one(values: pa.Array, low: pa.Array, high: pa.Array) -> Mask:
    """Which ranges hold one of the values."""
    try:
        ranks = pc.rank(pa.concat_arrays([values, low, high]), "ascending", tiebreaker="dense").to_numpy()
    except pa.ArrowNotImplementedError:  # values of this type have no order here
        return np.ones(len(low), np.bool_)
    points = np.sort(ranks[: len(values)])
    lows, highs = np.split(ranks[len(values) :], 2)
    is_told = pc.and_(low.is_valid(), high.is_valid()).to_numpy(zero_copy_only=False)
    holds: Mask = is_told & (np.searchsorted(points, lows, "left") < np.searchsorted(points, highs, "right"))
    return holds
