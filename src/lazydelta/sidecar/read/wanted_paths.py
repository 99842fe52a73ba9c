"""Files that are looked for by path, and which of them have not been met yet.

Contract: canonical paths, each once. One thread at a time says what was met; it may be another than the one
that asks what is missing.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from lazydelta.log.file_rows import Mask
from lazydelta.protocol.path_ranges import SortedPaths


class WantedPaths:
    """What a look-up is after."""

    def __init__(self, paths: pa.StringArray, root: str) -> None:
        self.root = root
        self.paths = paths  # not met yet
        self._all = paths
        self._sorted: tuple[pa.StringArray, SortedPaths] | None = None

    @property
    def is_missing_any(self) -> bool:
        """Whether there is still something to look for."""
        return len(self.paths) > 0

    @property
    def missing(self) -> SortedPaths:
        """The paths that have not been met yet."""
        paths, known = self.paths, self._sorted
        if known is None or known[0] is not paths:
            known = paths, SortedPaths(paths.to_pylist(), self.root)
            self._sorted = known
        return known[1]

    def missing_among(self, paths: pa.Array) -> Mask:
        """Which of these have not been met yet."""
        return _is_in(paths, self.paths)

    def wanted_among(self, paths: pa.Array) -> Mask:
        """Which of these are looked for, met before or not."""
        return _is_in(paths, self._all)

    def met(self, paths: pa.Array) -> None:
        """These need not be looked for any more."""
        if len(paths):
            self.paths = self.paths.filter(pc.invert(pc.is_in(self.paths, value_set=paths)))


def _is_in(paths: pa.Array, among: pa.Array) -> Mask:
    """The same as Arrow's, with the shorter of the two as its set: it is made anew each time."""
    if len(among) > len(paths):
        among = among.filter(pc.is_in(among, value_set=paths))
    flags: Mask = pc.is_in(paths, value_set=among).to_numpy(zero_copy_only=False)
    return flags
