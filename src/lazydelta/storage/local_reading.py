"""One open local file, for a library that reads it by itself: pyarrow off a disk.

Contract: how much of it was read is told by whoever reads, for the counters of the storage.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from lazydelta import limits
from lazydelta.storage.object_versions import replaced

_PIECE_BYTES = 1 * limits.MIB


class LocalReading(msgspec.Struct):
    """A file that is open."""

    path: str
    where: str
    descriptor: int
    check: Callable[[], None]  # that there is time left
    share: float = 0.0  # of the ranges, that was read so far

    def read_at(self, start: int, length: int) -> bytes:
        """Up to `length` bytes: fewer only at the end of the file."""
        return read_at(self.descriptor, start, length)

    def went_on(self, share: float) -> None:
        """So much of the ranges was read, which is what is counted; an error where the time is over."""
        self.share = share
        self.check()

    def check_path(self) -> None:
        """Whoever opened the path meanwhile got this file."""
        try:
            is_same = os.path.samestat(os.fstat(self.descriptor), Path(self.path).stat())
        except OSError:
            is_same = False
        if not is_same:
            raise replaced(self.where)


def read_at(descriptor: int, start: int, length: int) -> bytes:
    """Up to `length` bytes: fewer only at the end of the file."""
    body = os.pread(descriptor, length, start)
    if len(body) == length or not body:
        return body
    pieces = [body]  # one call reads at most 2 GiB, and a network file system may give less
    have = len(body)
    while have < length and (piece := os.pread(descriptor, length - have, start + have)):
        pieces.append(piece)
        have += len(piece)
    return b"".join(pieces)


def read_all(descriptor: int, size_bytes: int) -> bytes:
    """The file to its end, which is probably at `size_bytes`."""
    body = os.pread(descriptor, size_bytes + 1, 0)
    if len(body) == size_bytes:
        return body
    pieces = [body]  # longer by now, or given in parts
    have = len(body)
    while piece := os.pread(descriptor, _PIECE_BYTES, have):
        pieces.append(piece)
        have += len(piece)
    return b"".join(pieces)
