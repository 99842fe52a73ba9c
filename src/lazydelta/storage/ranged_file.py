"""A Parquet file in a store as a Python file object: the footer once, then only what is asked for.

Why: `pyarrow.parquet.ParquetFile` reads through any seekable file; this one turns its reads into as few
requests as the caller's knowledge allows, and every byte goes through the storage's counters.
Contract: `ParquetFile(RangedFile(…), pre_buffer=False)`, with `buffer_size=limits.READ_BLOCK_BYTES` where
chunks are declared to `stream_through` or `stream_columns`. (By default pyarrow buffers ahead and reads whole
chunks at once.) A read is served from, in this order: the tail of the file, preloaded ranges, streamed
chunks, and one request of exactly the missing bytes. Reads may come from several threads; `close` cancels
read-ahead and drops all memory.
"""

from __future__ import annotations

import bisect
import io
import threading
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from lazydelta import limits
from lazydelta.storage.ahead_room import AheadRoom
from lazydelta.storage.chunk_stream import ChunkStream
from lazydelta.storage.interface import Storage

if TYPE_CHECKING:
    from typing_extensions import Buffer


class _Stretch(msgspec.Struct, frozen=True):
    """[start, end) of the object, and what reads it."""

    start: int
    end: int
    stream: ChunkStream


class RangedFile(io.RawIOBase):
    """Read-only and seekable, over one object of known size."""

    def __init__(self, storage: Storage, name: str, size_bytes: int) -> None:
        super().__init__()
        self.name = name
        self._storage = storage
        self._size_bytes = size_bytes
        self._position = 0
        self._tail_start = max(0, size_bytes - limits.PARQUET_FOOTER_GUESS_BYTES)
        self._tail_lock = threading.Lock()
        self._lock = threading.Lock()
        self._kept: dict[int, bytes] = {}  # start → bytes: the tail and what was preloaded
        self._kept_starts: list[int] = []
        self._stretches: list[_Stretch] = []  # by start; disjoint
        self._unbegun: list[ChunkStream] = []  # to be sent for with the first read of any

    def sibling(self) -> RangedFile:
        """Another handle on the same object, that knows the tail already; the two move independently."""
        other = RangedFile(self._storage, self.name, self._size_bytes)
        with self._lock:
            tail = self._kept.get(self._tail_start)
        if tail is not None:
            other._kept[other._tail_start] = tail
            other._kept_starts = [other._tail_start]
        return other

    # --- what the caller knows in advance ------------------------------------

    def preload(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Fetch these (start, length) in one round trip and serve reads from memory until `release`."""
        self._check_open()
        wanted = [(start, length) for start, length in ranges if not self._has(start, start + length)]
        if not wanted:
            return
        bodies = self._storage.get_ranges(self.name, wanted)
        with self._lock:
            for (start, _), body in zip(wanted, bodies, strict=True):
                self._kept[start] = body
            self._kept_starts = sorted(self._kept)

    def whole(self) -> bytes | None:
        """All bytes of the object, where they are in memory."""
        with self._lock:
            body = self._kept.get(0)
        return body if body is not None and len(body) == self._size_bytes else None

    def release(self) -> None:
        """Forget what was preloaded and streamed; the tail stays, because the footer is there."""
        with self._lock:
            self._kept = {start: body for start, body in self._kept.items() if start == self._tail_start}
            self._kept_starts = sorted(self._kept)
            before, self._stretches, self._unbegun = self._stretches, [], []
        for stream in _streams_of(before):
            stream.close()

    def stream_through(
        self, ranges: Sequence[tuple[int, int]], *, block_bytes: int = limits.READ_BLOCK_BYTES
    ) -> None:
        """Declare (start, length) that will be read front to back, in blocks with one block read ahead.

        Replaces what was declared before. Nothing is fetched until the first read inside one.
        """
        self._declare([[each] for each in ranges], block_bytes, None)

    def stream_columns(
        self,
        columns: Sequence[Sequence[tuple[int, int]]],
        room: AheadRoom,
        *,
        block_bytes: int = limits.READ_BLOCK_BYTES,
    ) -> None:
        """The same for the chunks of columns that are read side by side, each in the order given.

        With the first read the first block of each column is sent for; then as many as the room allows.
        """
        self._declare(columns, block_bytes, room)

    def _declare(
        self, columns: Sequence[Sequence[tuple[int, int]]], block_bytes: int, room: AheadRoom | None
    ) -> None:
        self._check_open()
        stretches: list[_Stretch] = []
        for column, ranges in enumerate(columns):
            spans = [(start, start + length) for start, length in ranges]
            stream = ChunkStream(self._fetch, spans, block_bytes=block_bytes, room=room, column=column)
            stretches.extend(_Stretch(start, end, stream) for start, end in spans)
        stretches.sort(key=lambda stretch: stretch.start)
        with self._lock:
            before, self._stretches = self._stretches, stretches
            self._unbegun = [] if room is None else _streams_of(stretches)
        for stream in _streams_of(before):
            stream.close()

    # --- the file ------------------------------------------------------------

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def tell(self) -> int:
        """Where the next read begins."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move; nothing is fetched."""
        self._check_open()
        origin = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size_bytes}[whence]
        if origin + offset < 0:
            raise ValueError(f"cannot seek to {origin + offset}")
        self._position = origin + offset
        return self._position

    def read(self, size: int | None = -1) -> bytes:
        """The next `size` bytes, or all; without a copy where they are exactly what was fetched."""
        view = self.read_buffer(-1 if size is None else size)
        body = view.obj
        return body if isinstance(body, bytes) and len(body) == len(view) else bytes(view)

    def read_buffer(self, size: int = -1) -> memoryview:
        """The same as a view of what is in memory. pyarrow prefers this where it exists."""
        self._check_open()
        start = min(self._position, self._size_bytes)
        end = self._size_bytes if size < 0 else min(start + size, self._size_bytes)
        view = self._gather(start, end)
        self._position = end
        return view

    def readinto(self, buffer: Buffer) -> int:
        """Fill the buffer, short only at the end of the file."""
        target = memoryview(buffer).cast("B")
        view = self.read_buffer(len(target))
        target[: len(view)] = view
        return len(view)

    def readall(self) -> bytes:
        """From here to the end."""
        return self.read(-1)

    def close(self) -> None:
        """Cancel read-ahead and drop all memory."""
        if not self.closed:
            self._tail_start = -1
            self.release()
        super().close()

    # --- where bytes come from -----------------------------------------------

    def _gather(self, start: int, end: int) -> memoryview:
        """[start, end) out of memory, streams and requests, whichever cover it."""
        if start < end == self._size_bytes and start >= self._tail_start:
            self._load_tail()
        pieces: list[memoryview] = []
        while start < end:
            found = self._pieces_at(start, end)
            start += sum(len(piece) for piece in found)
            pieces.extend(found)
        return pieces[0] if len(pieces) == 1 else memoryview(b"".join(pieces))

    def _pieces_at(self, start: int, end: int) -> list[memoryview]:
        """As much from `start` on as one source can give."""
        with self._lock:
            kept, next_kept = self._kept_at(start)
            stretch, next_stretch = self._stretch_at(start)
            unbegun: list[ChunkStream] = []
            if kept is None and stretch is not None:
                unbegun, self._unbegun = self._unbegun, []
        if kept is not None:
            return [kept[: end - start]]
        for stream in unbegun:
            stream.begin()
        if stretch is not None:
            return stretch.stream.read(start, min(end, stretch.end, next_kept))
        stop = min(end, next_kept, next_stretch)
        return [memoryview(self._fetch(start, stop - start))]

    def _kept_at(self, position: int) -> tuple[memoryview | None, int]:
        """What is in memory from `position` on, and where the next kept range begins."""
        at = bisect.bisect_right(self._kept_starts, position)
        following = self._kept_starts[at] if at < len(self._kept_starts) else self._size_bytes
        if at:
            start = self._kept_starts[at - 1]
            body = self._kept[start]
            if position < start + len(body):
                return memoryview(body)[position - start :], following
        return None, following

    def _stretch_at(self, position: int) -> tuple[_Stretch | None, int]:
        """What is streamed at `position`, and where the next of it begins."""
        at = bisect.bisect_right(self._stretches, position, key=lambda stretch: stretch.start)
        following = self._stretches[at].start if at < len(self._stretches) else self._size_bytes
        if at and position < self._stretches[at - 1].end:
            return self._stretches[at - 1], following
        return None, following

    def _has(self, start: int, end: int) -> bool:
        with self._lock:
            kept, _ = self._kept_at(start)
        return kept is not None and len(kept) >= end - start

    def _load_tail(self) -> None:
        with self._tail_lock:
            if self._has(self._tail_start, self._size_bytes):
                return
            body = self._fetch(self._tail_start, self._size_bytes - self._tail_start)
            with self._lock:
                self._kept[self._tail_start] = body
                self._kept_starts = sorted(self._kept)

    def _fetch(self, start: int, length: int) -> bytes:
        return self._storage.get_range(self.name, start, length)

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError("the file is closed")


def _streams_of(stretches: Sequence[_Stretch]) -> list[ChunkStream]:
    """Each once, in the order of their first stretch."""
    return list({id(stretch.stream): stretch.stream for stretch in stretches}.values())
