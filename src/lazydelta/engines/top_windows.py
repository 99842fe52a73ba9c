"""Where the first rows by a column may be found without reading the whole table.

Why: `top 100 by event_time` wants the end of the table, and its filter does not say so. Contract: a window is
a condition on the column, each wider than the one before. It is a guess, from the bounds of the table's
newest files: whoever reads within one has the answer if as many rows come out as are wanted, since every row
outside comes after them; else the next is tried, and at last the whole table. None is offered that would not
spare three quarters of the files that were looked at.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lazydelta.engines.top_rows import TopRows
from lazydelta.predicate import Column, Expression
from lazydelta.predicate.expression import IsNull, column_sql
from lazydelta.rows.source import RowSource
from lazydelta.scan.file_stats import first_bounds
from lazydelta.scan.scanner import FileScan

# Files whose bounds are looked at, and how many of them a window holds, in turns.
_TURNS = ((1_024, (8, 128)), (16_384, (2_048,)))
_FILES_MIN = 32  # of fewer nothing is spared
_SHARE_MAX = 4


def windows(source: RowSource, top: TopRows, scans: list[FileScan]) -> Iterator[Expression]:
    """Conditions within which the rows may be; the scans that it takes to find them are added to `scans`."""
    if source.config.limit is not None or source.config.order is not None:
        return
    for files, sizes in _TURNS:
        scan = FileScan(
            source.snapshot,
            source.with_config(limit=files).config,
            source.sidecar,
            source.memory,
        )
        scans.append(scan)
        bounds = first_bounds(scan, column_sql((top.column,)))
        is_whole = bounds.num_rows < files
        if bounds.num_rows < _FILES_MIN or not (is_whole or top.is_descending):
            return  # the oldest rows are not among the newest files
        for size in sizes:
            window = _window(bounds, top, size)
            if window is None:
                return
            yield window
        if is_whole:
            return


def _window(bounds: pa.Table, top: TopRows, size: int) -> Expression | None:
    """The range of the `size` files that reach furthest; None where too many others reach into it."""
    inner, outer = ("min", "max") if top.is_descending else ("max", "min")
    path = (top.column,)
    far, near = (bounds.column(f"{side}.{column_sql(path)}").combine_chunks() for side in (outer, inner))
    known = pc.and_(far.is_valid(), near.is_valid())
    far, near = far.filter(known), near.filter(known)
    if len(far) * _SHARE_MAX < bounds.num_rows * (_SHARE_MAX - 1):
        return None
    order = "descending" if top.is_descending else "ascending"
    best = near.take(pc.array_sort_indices(far, order=order).slice(0, size))
    edge = pc.min_max(best)["min" if top.is_descending else "max"]
    inside = pc.greater_equal(far, edge) if top.is_descending else pc.less_equal(far, edge)
    if np.count_nonzero(inside.to_numpy(zero_copy_only=False)) * _SHARE_MAX > bounds.num_rows:
        return None
    try:
        limit = edge.as_py()
    except (OverflowError, ValueError):  # a year that Python does not have
        return None
    column = Column(path)
    window: Expression = column >= limit if top.is_descending else column <= limit
    return window | IsNull(path) if top.nulls_first else window
