"""Sorted streams of rows merged into one, a slice at a time, never a row at a time.

Contract: every source is sorted by the keys, ascending, nulls first, strings by their bytes; so is what comes
out. Memory is a slice and one block of each source, however long the sources are.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lazydelta.log.file_rows import Batches

# Compares as Arrow sorts with nulls first: null, NaN, values; per key column.
SortKey = tuple[tuple[object, ...], ...]


def merge_sorted(
    sources: Sequence[Iterator[pa.RecordBatch]], keys: Sequence[str], *, slice_bytes: int
) -> Batches:
    """One sorted stream out of several; memory is about twice `slice_bytes` and one block of each source.

    The source whose newest block ends first bounds what can be emitted, so it is the one to read on. Once
    enough is there, everything up to that bound is joined and sorted; where one source alone has rows up to
    it, they pass as they are.
    """
    growing = [_Source(blocks, keys, number) for number, blocks in enumerate(sources)]
    growing = [source for source in growing if source.read_on()]
    heapq.heapify(growing)
    ended: list[_Source] = []
    while growing:
        nearest = growing[0]
        held_bytes = sum(source.held_bytes for source in (*growing, *ended))
        if nearest.is_holding and held_bytes >= slice_bytes:
            bound = nearest.last_key
            yield from _joined([source.up_to(bound) for source in (*growing, *ended)], keys)
        elif nearest.read_on():
            heapq.heapreplace(growing, nearest)
        else:
            ended.append(heapq.heappop(growing))
    yield from _joined([source.up_to(None) for source in ended], keys)


def cut(rows: pa.RecordBatch, batch_rows: int) -> Iterator[pa.RecordBatch]:
    """The same rows in slices of at most `batch_rows`."""
    for start in range(0, rows.num_rows, batch_rows):
        yield rows.slice(start, batch_rows)


def sort_order(rows: pa.RecordBatch, keys: Sequence[str]) -> pa.UInt64Array:
    """The order that sorts these rows."""
    return pc.sort_indices(rows, sort_keys=[(key, "ascending", "at_start") for key in keys])


class _Source:
    """A sorted stream and the blocks of it that were read and not emitted yet."""

    def __init__(self, blocks: Iterator[pa.RecordBatch], keys: Sequence[str], number: int) -> None:
        self.held_bytes = 0
        self.last_key: SortKey = ()
        self._blocks = blocks
        self._keys = keys
        self._number = number
        self._held: deque[tuple[pa.RecordBatch, SortKey]] = deque()

    def __lt__(self, other: _Source) -> bool:
        return (self.last_key, self._number) < (other.last_key, other._number)

    @property
    def is_holding(self) -> bool:
        """Whether some rows were read and not emitted yet."""
        return bool(self._held)

    def read_on(self) -> bool:
        """Take one more block; False where there is none."""
        block = next((block for block in self._blocks if block.num_rows), None)
        if block is None:
            return False
        self.last_key = _key_at(block, block.num_rows - 1, self._keys)
        self._held.append((block, self.last_key))
        self.held_bytes += block.nbytes
        return True

    def up_to(self, bound: SortKey | None) -> list[pa.RecordBatch]:
        """Let go of the rows whose key is not above the bound."""
        released = []
        while self._held and (bound is None or self._held[0][1] <= bound):
            released.append(self._held.popleft()[0])
        if self._held and bound is not None:
            block, last_key = self._held.popleft()
            count = self._count_up_to(block, bound)
            if count:
                released.append(block.slice(0, count))
            self._held.appendleft((block.slice(count), last_key))
        self.held_bytes = sum(block.nbytes for block, _ in self._held)
        return released

    def _count_up_to(self, block: pa.RecordBatch, bound: SortKey) -> int:
        low, high = 0, block.num_rows
        while low < high:
            middle = (low + high) // 2
            if _key_at(block, middle, self._keys) <= bound:
                low = middle + 1
            else:
                high = middle
        return low


def _joined(
    pieces_by_source: Sequence[list[pa.RecordBatch]], keys: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    filled = [pieces for pieces in pieces_by_source if pieces]
    if len(filled) == 1:
        yield from filled[0]
    elif filled:
        rows = pa.concat_batches([piece for pieces in filled for piece in pieces])
        yield rows.take(sort_order(rows, keys))


def _key_at(rows: pa.RecordBatch, row: int, keys: Sequence[str]) -> SortKey:
    return tuple(_comparable(rows.column(key)[row]) for key in keys)


def _comparable(scalar: pa.Scalar) -> tuple[object, ...]:
    if not scalar.is_valid:
        return (0,)
    is_temporal = pa.types.is_temporal(scalar.type)  # years past 9999 have no datetime
    value = scalar.value if is_temporal else scalar.as_py()
    return (1,) if value != value else (2, value)  # noqa: PLR0124 - NaN alone differs from itself
