"""Sorted streams of rows merged into one, a slice at a time, never a row at a time.

Contract: every source is sorted by the keys in the direction asked for (sort_keys.py); so is what comes
out. Memory is a slice and one block of each source, however long the sources are.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence

import pyarrow as pa

from lazydelta.log.file_rows import Batches
from lazydelta.sidecar.order.held_rows import HeldRows, joined


def merge_sorted(
    sources: Sequence[Iterator[pa.RecordBatch]],
    keys: Sequence[str],
    *,
    slice_bytes: int,
    descending: bool = False,
) -> Batches:
    """One sorted stream out of several; memory is about twice `slice_bytes` and one block of each source.

    The source whose newest block ends first bounds what can be emitted, so it is the one to read on. Once
    enough is there, everything up to that bound is joined and sorted; where one source alone has rows up to
    it, they pass as they are.
    """
    growing = [
        _Source(blocks, HeldRows(keys, descending=descending), number)
        for number, blocks in enumerate(sources)
    ]
    growing = [source for source in growing if source.read_on()]
    heapq.heapify(growing)
    ended: list[_Source] = []
    while growing:
        nearest = growing[0]
        held_bytes = sum(source.held.size_bytes for source in (*growing, *ended))
        if nearest.held and held_bytes >= slice_bytes:
            bound = nearest.held.last_key
            released = [source.held.up_to(bound) for source in (*growing, *ended)]
            yield from joined(released, keys, descending=descending)
        elif nearest.read_on():
            heapq.heapreplace(growing, nearest)
        else:
            ended.append(heapq.heappop(growing))
    yield from joined([source.held.up_to(None) for source in ended], keys, descending=descending)


def cut(rows: pa.RecordBatch, batch_rows: int) -> Iterator[pa.RecordBatch]:
    """The same rows in slices of at most `batch_rows`."""
    for start in range(0, rows.num_rows, batch_rows):
        yield rows.slice(start, batch_rows)


class _Source:
    """A sorted stream and the rows of it that were read and not emitted yet."""

    def __init__(self, blocks: Iterator[pa.RecordBatch], held: HeldRows, number: int) -> None:
        self.held = held
        self._blocks = blocks
        self._number = number

    def __lt__(self, other: _Source) -> bool:
        assert self.held.last_key is not None
        assert other.held.last_key is not None
        return (self.held.last_key, self._number) < (other.held.last_key, other._number)

    def read_on(self) -> bool:
        """Take one more block; False where there is none."""
        block = next((block for block in self._blocks if block.num_rows), None)
        if block is None:
            return False
        self.held.put(block)
        return True
