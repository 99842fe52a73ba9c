"""One stretch of an object, read front to back in blocks, with the next block on its way.

Why: a column chunk of a large checkpoint is hundreds of megabytes; holding it whole breaks the memory bound,
and asking for it read by read pays a round trip each time.
Contract: at most one block is held and one is being fetched. Reads may be of any size and come from any
thread. A read that goes back or jumps is right, only slower.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future

import msgspec

from lazydelta.storage.background import pool

Fetch = Callable[[int, int], bytes]  # start, length


class _Block(msgspec.Struct, frozen=True):
    start: int
    end: int

    def covers(self, position: int) -> bool:
        return self.start <= position < self.end


_NONE = _Block(0, 0)


class ChunkStream:
    """Blocks of [start, end), in memory only while they are read."""

    def __init__(self, fetch: Fetch, *, start: int, end: int, block_bytes: int) -> None:
        self.start = start
        self.end = end
        self._fetch = fetch
        self._block_bytes = block_bytes
        self._lock = threading.Lock()
        self._held, self._body = _NONE, b""
        self._coming: _Block = _NONE
        self._future: Future[bytes] | None = None
        self._is_closed = False

    def read(self, start: int, end: int) -> list[memoryview]:
        """The bytes of [start, end), in pieces; the range lies inside the chunk."""
        pieces = []
        with self._lock:
            while start < end:
                if not self._held.covers(start):
                    self._turn_to(start, end)
                stop = min(end, self._held.end)
                offset = start - self._held.start
                pieces.append(memoryview(self._body)[offset : offset + stop - start])
                start = stop
            if start >= self._held.end:
                self._body = b""  # the pieces keep it alive as long as the caller needs it
                self._held = _Block(start, start)
        return pieces

    def close(self) -> None:
        """Drop what is held and cancel what is coming."""
        self._is_closed = True
        if self._future is not None:
            self._future.cancel()
        self._body, self._held, self._future = b"", _NONE, None

    def _turn_to(self, start: int, end: int) -> None:
        """Hold the block that covers `start`, and send for the one after it."""
        coming, future = self._coming, self._future
        self._coming, self._future = _NONE, None
        if future is not None and coming.covers(start):
            block, body = coming, future.result()
        else:
            if future is not None:
                future.cancel()
            block = self._block(start, end - start)
            body = self._fetch(block.start, block.end - block.start)
        self._held, self._body = block, body
        if block.end < self.end and not self._is_closed:
            self._coming = self._block(block.end, 0)
            length = self._coming.end - self._coming.start
            self._future = pool().submit(self._fetch, self._coming.start, length)

    def _block(self, start: int, length_min: int) -> _Block:
        return _Block(start, min(self.end, start + max(length_min, self._block_bytes)))
