"""Sums over the live files at one version, as checksum files carry them.

Contract: pure; bounded by the number of histogram bins.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from bench.files import Files, as_double
from bench.fixed_text import Ints
from bench.peers.measure import LOW_VALUE

_KB, _MB, _GB = 1 << 10, 1 << 20, 1 << 30
# Spark's default bins of `fileSizeHistogram`.
_BINS = [
    0,
    *(8 * _KB << power for power in range(10)),
    *range(8 * _MB, 41 * _MB, 4 * _MB),
    *range(48 * _MB, 121 * _MB, 8 * _MB),
    *range(124 * _MB, 145 * _MB, 4 * _MB),
    *range(160 * _MB, 577 * _MB, 16 * _MB),
    *range(640 * _MB, 1409 * _MB, 64 * _MB),
    *range(1536 * _MB, 2049 * _MB, 128 * _MB),
    *range(2304 * _MB, 4097 * _MB, 256 * _MB),
    *(8 * _GB << power for power in range(6)),
]


class FileTotals(msgspec.Struct):
    """Counts and bytes of live files; changed in place while a table is written."""

    files: int = 0
    dv_count: int = 0
    deleted_rows: int = 0
    low_files: int = 0  # those that `value < LOW_VALUE` cannot rule out
    bin_files: Ints = msgspec.field(default_factory=lambda: np.zeros(len(_BINS), dtype=np.int64))
    bin_bytes: Ints = msgspec.field(default_factory=lambda: np.zeros(len(_BINS), dtype=np.int64))

    @property
    def size_bytes(self) -> int:
        """Bytes of all files."""
        return int(self.bin_bytes.sum())

    def count(self, files: Files) -> None:
        """Take in files as the base version holds them."""
        dv_count = int(files.base_generation.sum())
        self.files += len(files)
        self.dv_count += dv_count
        self.deleted_rows += dv_count
        self.weigh(files, sign=1)

    def weigh(self, files: Files, *, sign: int) -> None:
        """Put sizes and values of files in (`sign` 1) or take them out (-1)."""
        self.low_files += sign * int(np.count_nonzero(as_double(files.value_min) < LOW_VALUE))
        sizes = files.size
        bins = np.searchsorted(_BINS, sizes, side="right") - 1
        self.bin_files += sign * np.bincount(bins, minlength=len(_BINS))
        self.bin_bytes += sign * np.bincount(bins, weights=sizes, minlength=len(_BINS)).astype(np.int64)

    def histogram(self) -> dict[str, Any]:
        """`fileSizeHistogram`."""
        counts, sizes = self.bin_files.tolist(), self.bin_bytes.tolist()
        return {"sortedBinBoundaries": _BINS, "fileCounts": counts, "totalBytes": sizes}
