"""Files as a map of time against size, in so few cells that any table's fits a screen.

Why: a table may have ten million files, and a browser must not have their list. Contract: exact counts and
bytes for each cell, in memory that does not grow with the files. Cells are `TIMES_MAX` of time at the most:
where files reach further, two neighbours become one, so that maps of the same table differ by powers of two.
Sizes have four cells for each doubling. Files whose time is not told are counted apart.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

TIMES_MAX = 128
SIZES_PER_DOUBLING = 4
_SIZES_MAX = SIZES_PER_DOUBLING * 63 + 1
_WIDTH_FIRST_MS = 1000
_Numbers = npt.NDArray[np.int64]


class FileMap:
    """One map under way."""

    def __init__(self) -> None:
        self.width_ms = _WIDTH_FIRST_MS
        self.files = 0
        self.bytes = 0
        self.without_time = 0
        self._first = self._last = (
            0  # cells of time that have files; a row of the arrays is one modulo theirs
        )
        self._counts: _Numbers = np.zeros((TIMES_MAX, _SIZES_MAX), np.int64)
        self._bytes: _Numbers = np.zeros((TIMES_MAX, _SIZES_MAX), np.int64)
        self._told: _Numbers = np.zeros((TIMES_MAX, _SIZES_MAX), np.int64)  # counts as they were told
        self._told_width_ms = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """More files: `size` and `modification_time`."""
        sizes = pc.fill_null(batch.column("size"), 0).to_numpy(zero_copy_only=False)
        times = pc.fill_null(batch.column("modification_time"), 0).to_numpy(zero_copy_only=False)
        self.files += len(sizes)
        self.bytes += int(sizes.sum())
        has_time = times > 0
        self.without_time += len(times) - int(has_time.sum())
        if has_time.any():
            self._place(times[has_time], sizes[has_time])

    def news(self) -> dict[str, Any]:  # Any: as JSON has it
        """What has changed since it was last asked: cells as time, size, files, bytes."""
        is_whole = self._told_width_ms != self.width_ms
        changed = self._counts > 0 if is_whole else self._counts != self._told
        self._told, self._told_width_ms = self._counts.copy(), self.width_ms
        rows, columns = np.nonzero(changed)
        times = self._first + (rows - self._first) % TIMES_MAX
        found = (times, columns, self._counts[rows, columns], self._bytes[rows, columns])
        return {
            "width_ms": self.width_ms,
            "is_whole": is_whole,
            "cells": np.stack(found, axis=1).tolist(),
            "files": self.files,
            "bytes": self.bytes,
            "without_time": self.without_time,
        }

    def whole(self) -> dict[str, Any]:
        """The same, all of it."""
        self._told_width_ms = 0
        return self.news()

    def _place(self, times: _Numbers, sizes: _Numbers) -> None:
        is_empty = self.files == len(times) + self.without_time
        cells = times // self.width_ms
        first, last = int(cells.min()), int(cells.max())
        if not is_empty:
            first, last = min(first, self._first), max(last, self._last)
        while last - first >= TIMES_MAX:
            self._widen()
            cells, first, last = cells // 2, first // 2, last // 2
        self._first, self._last = first, last
        flat = (cells % TIMES_MAX) * _SIZES_MAX + size_cells(sizes)
        shape, most = self._counts.shape, self._counts.size
        self._counts += np.bincount(flat, minlength=most).reshape(shape)
        # Sums of sizes as whole numbers: `bincount` would weigh by floating point.
        order = np.argsort(flat, kind="stable")
        starts = np.flatnonzero(np.diff(flat[order], prepend=-1))
        self._bytes.reshape(-1)[flat[order][starts]] += np.add.reduceat(sizes[order], starts)

    def _widen(self) -> None:
        """Two neighbours become one."""
        times = self._first + (np.arange(TIMES_MAX) - self._first) % TIMES_MAX
        rows = (times // 2) % TIMES_MAX
        for name in ("_counts", "_bytes"):
            wider = np.zeros((TIMES_MAX, _SIZES_MAX), np.int64)
            np.add.at(wider, rows, getattr(self, name))
            setattr(self, name, wider)
        self.width_ms *= 2
        self._first, self._last = self._first // 2, self._last // 2


def size_cells(sizes: _Numbers) -> _Numbers:
    """The cell of each size."""
    found = np.floor(SIZES_PER_DOUBLING * np.log2(np.maximum(sizes, 1).astype(np.float64)))
    cells: _Numbers = np.clip(found, 0, _SIZES_MAX - 1).astype(np.int64)
    return cells
