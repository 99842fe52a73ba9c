"""Stretches of an object, read front to back in blocks, with the next blocks on their way.

Why: a column chunk of a large checkpoint is hundreds of megabytes; holding it whole breaks the memory bound,
and asking for it read by read pays a round trip each time.
Contract: at most one block is held and one is being fetched. With room to read ahead there are more of them,
twice as many each time the reader had to wait: who stops early has fetched little. They reach into the next
stretch. Reads may be of any size and come from any thread. A read that goes back or jumps is right, only
slower.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future

import msgspec

from lazydelta.storage.ahead_room import AheadRoom
from lazydelta.storage.background import pool

Fetch = Callable[[int, int], bytes]  # start, length


class _Block(msgspec.Struct, frozen=True):
    start: int
    end: int
    stretch: int  # which of them it lies in

    def covers(self, position: int) -> bool:
        return self.start <= position < self.end


class _Coming(msgspec.Struct, frozen=True):
    block: _Block
    body: Future[bytes]
    room_bytes: int  # to give back


_NONE = _Block(0, 0, -1)


class ChunkStream:
    """Blocks of the stretches [start, end), in memory only while they are read."""

    def __init__(
        self,
        fetch: Fetch,
        stretches: Sequence[tuple[int, int]],
        *,
        block_bytes: int,
        room: AheadRoom | None = None,
        column: int = 0,
    ) -> None:
        """The stretches come in the order of reading; without `room`, for that column, one block is ahead."""
        self._fetch = fetch
        self._stretches = stretches
        self._block_bytes = block_bytes
        self._room = room
        self._column = column
        self._lock = threading.Lock()
        self._held, self._body = _NONE, b""
        self._coming: deque[_Coming] = deque()
        self._is_closed = False

    def begin(self) -> None:
        """Send for the first block, if nothing was read yet."""
        with self._lock:
            if self._held is _NONE and not self._coming:
                self._send_for_more(_NONE, 1)

    def read(self, start: int, end: int) -> list[memoryview]:
        """The bytes of [start, end), in pieces; the range lies inside one stretch."""
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
                self._held = _Block(start, start, self._held.stretch)
        return pieces

    def close(self) -> None:
        """Drop what is held and cancel what is coming."""
        self._is_closed = True
        self._forget_coming()
        self._body, self._held = b"", _NONE

    def _turn_to(self, start: int, end: int) -> None:
        """Hold the block that covers `start`, and send for those after it."""
        found = self._arrived(start)
        if found is None:
            block = self._block_at(start, end - start)
            found = block, self._fetch(block.start, block.end - block.start)
        self._held, self._body = found
        if not self._is_closed:
            last = self._coming[-1].block if self._coming else self._held
            self._send_for_more(last, 1 if self._room is None else self._room.depth(self._column))

    def _arrived(self, start: int) -> tuple[_Block, bytes] | None:
        """The block that covers `start`, if it was sent for; those before it are dropped."""
        while self._coming:
            coming = self._coming.popleft()
            if not coming.block.covers(start):
                coming.body.cancel()
                self._give(coming.room_bytes)
                continue
            is_late, is_first = not coming.body.done(), self._held is _NONE
            try:
                body = coming.body.result()
            except BaseException:
                self._forget_coming()
                raise
            finally:
                self._give(coming.room_bytes)
            if self._room is not None and is_late and not is_first:
                self._room.deepen(self._column, len(self._coming) + 1)
            return coming.block, body
        return None

    def _send_for_more(self, last: _Block, depth: int) -> None:
        while len(self._coming) < depth:
            block = self._after(last)
            if block is None:
                return
            length = block.end - block.start
            # The first one ahead belongs to the stream; room is asked for more.
            room_bytes = length if self._coming else 0
            if room_bytes and (self._room is None or not self._room.try_take(room_bytes)):
                return
            body = pool().submit(self._fetch, block.start, length)
            self._coming.append(_Coming(block, body, room_bytes))
            last = block

    def _after(self, last: _Block) -> _Block | None:
        """The block that follows, in the same stretch or at the beginning of the next."""
        for stretch in range(max(0, last.stretch), len(self._stretches)):
            start, end = self._stretches[stretch]
            start = last.end if stretch == last.stretch else start
            if start < end:
                return _Block(start, min(end, start + self._block_bytes), stretch)
        return None

    def _block_at(self, start: int, length_min: int) -> _Block:
        """The block that begins at `start`, in the stretch that is being read, or wherever it lies."""
        count = len(self._stretches)
        for step in range(count):
            stretch = (max(0, self._held.stretch) + step) % count
            begin, end = self._stretches[stretch]
            if begin <= start < end:
                return _Block(start, min(end, start + max(length_min, self._block_bytes)), stretch)
        raise AssertionError("the range lies inside one of the stretches")

    def _forget_coming(self) -> None:
        while self._coming:
            coming = self._coming.popleft()
            coming.body.cancel()
            self._give(coming.room_bytes)

    def _give(self, room_bytes: int) -> None:
        if room_bytes and self._room is not None:
            self._room.give(room_bytes)
