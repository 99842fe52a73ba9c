"""What stands between a Parquet file and Arrow: one guard for checkpoints, sidecars and data files.

Why: Arrow may end the process over a footer that contradicts itself, and fills memory with a page that says
it is large. Contract: no request more than without it. What it finds is raised as `pyarrow.ArrowInvalid`,
which every reader of Parquet files turns into the error that names the file.
"""

from __future__ import annotations

import bisect
import io
from collections.abc import Callable, Iterable

import pyarrow as pa
import pyarrow.parquet as pq

from lazydelta import limits
from lazydelta.protocol.parquet_footer import FooterDamageError, check_footer
from lazydelta.protocol.parquet_pages import PageDamageError, PageHeads
from lazydelta.storage import RangedFile

_TRAILER_BYTES = 8  # the footer's length and Parquet's mark
_MARK = b"PAR1"
_HEAD_BYTES = 256  # more than most heads of pages have


def read_footer(file: RangedFile) -> pq.FileMetaData:
    """The footer, checked before Arrow sees it."""
    guard_footer(file)
    return pq.read_metadata(file)


def guard_footer(file: RangedFile) -> None:
    """Raise where Arrow had better not be asked about this file's footer."""
    size = file.seek(0, io.SEEK_END)
    if size <= _TRAILER_BYTES:
        return  # Arrow says so itself
    file.seek(size - _TRAILER_BYTES)
    trailer = bytes(file.read_buffer(_TRAILER_BYTES))
    length = int.from_bytes(trailer[:4], "little")
    if trailer[4:] != _MARK or length + _TRAILER_BYTES > size:
        raise pa.ArrowInvalid("it does not end as a Parquet file does")
    if length > limits.PARQUET_FOOTER_BYTES_MAX:
        raise pa.ArrowInvalid(
            f"its footer has {length:,} bytes, and {limits.PARQUET_FOOTER_BYTES_MAX:,} are the most"
        )
    if length + _TRAILER_BYTES > limits.PARQUET_FOOTER_GUESS_BYTES:
        file.preload([(size - length - _TRAILER_BYTES, length + _TRAILER_BYTES)])
    file.seek(size - length - _TRAILER_BYTES)
    try:
        check_footer(bytes(file.read_buffer(length)))
    except FooterDamageError as damage:
        raise pa.ArrowInvalid(str(damage)) from damage


def chunk_span(chunk: pq.ColumnChunkMetaData, size_bytes: int) -> tuple[int, int]:
    """Where a column chunk lies: (start, length), inside the file."""
    start = chunk.data_page_offset
    if chunk.has_dictionary_page and chunk.dictionary_page_offset:
        start = min(start, chunk.dictionary_page_offset)
    length = chunk.total_compressed_size
    if not 0 <= start <= start + length <= size_bytes:
        raise pa.ArrowInvalid("a column chunk lies outside the file")
    return start, length


def guard_pages(
    read_at: Callable[[int, int], bytes | memoryview],
    chunks: Iterable[tuple[int, int]],
    at_once: int = _HEAD_BYTES,
) -> None:
    """Raise where a page of these (start, length) had better not be decoded.

    Bytes between the heads are not read, but for what `at_once` brings along.
    """
    try:
        for start, length in chunks:
            heads, position, end = PageHeads(), start, start + length
            while position < end and not heads.is_over:
                piece = read_at(position, min(at_once, end - position))
                if not piece:
                    return  # the file ends too soon, which Arrow says itself
                heads.seen(piece)
                position += len(piece)
                unseen = min(heads.to_skip, end - position)
                heads.skip(unseen)
                position += unseen
    except PageDamageError as damage:
        raise pa.ArrowInvalid(str(damage)) from damage


class GuardedFile(io.RawIOBase):
    """A file whose column chunks are watched as Arrow reads them, front to back, by one thread."""

    def __init__(self, file: RangedFile, chunks: Iterable[tuple[int, int]] = ()) -> None:
        super().__init__()
        self._file = file
        self.watch(chunks)

    def watch(self, chunks: Iterable[tuple[int, int]]) -> None:
        """The (start, length) of those that are read next, and no others."""
        self._chunks = sorted(chunks)
        self._starts = [start for start, _ in self._chunks]
        self._heads = [PageHeads() for _ in self._chunks]
        self._next = list(self._starts)  # of each chunk: what was not seen yet

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def tell(self) -> int:
        """Where the next read begins."""
        return self._file.tell()

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move; nothing is fetched."""
        return self._file.seek(offset, whence)

    def read(self, size: int | None = -1) -> bytes:
        """The next bytes, once looked at; without a copy where they are exactly what was fetched."""
        view = self.read_buffer(-1 if size is None else size)
        body = view.obj
        return body if isinstance(body, bytes) and len(body) == len(view) else bytes(view)

    def read_buffer(self, size: int = -1) -> memoryview:
        """The same without a copy. pyarrow prefers this where it exists."""
        start = self._file.tell()
        view = self._file.read_buffer(size)
        self._look(start, view)
        return view

    def _look(self, start: int, view: memoryview) -> None:
        end = start + len(view)
        at = max(0, bisect.bisect_right(self._starts, start) - 1)
        while at < len(self._chunks) and self._starts[at] < end:
            stop = min(end, sum(self._chunks[at]))
            if start <= self._next[at] < stop:
                try:
                    self._heads[at].seen(view[self._next[at] - start : stop - start])
                except PageDamageError as damage:
                    raise pa.ArrowInvalid(str(damage)) from damage
                self._next[at] = stop
            at += 1
