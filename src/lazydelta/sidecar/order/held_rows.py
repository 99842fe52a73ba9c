"""Rows of one sorted source that were read and not given out yet; and what several of them make together."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

import pyarrow as pa

from lazydelta.sidecar.order.sort_keys import SortKey, key_at, sort_order


class HeldRows:
    """Blocks in order. `last_key` is that of the latest row that was put in."""

    def __init__(self, keys: Sequence[str], *, descending: bool = False) -> None:
        self.size_bytes = 0
        self.last_key: SortKey | None = None
        self._keys = keys
        self._descending = descending
        self._blocks: deque[tuple[pa.RecordBatch, SortKey]] = deque()

    def __bool__(self) -> bool:
        return bool(self._blocks)

    def put(self, block: pa.RecordBatch) -> SortKey:
        """Hold some more rows, which come after those that are held; the key of the last."""
        self.last_key = key_at(block, block.num_rows - 1, self._keys, descending=self._descending)
        self._blocks.append((block, self.last_key))
        self.size_bytes += block.nbytes
        return self.last_key

    def up_to(self, bound: SortKey | None) -> list[pa.RecordBatch]:
        """Let go of the rows whose key is not behind the bound (None: of all)."""
        released = []
        while self._blocks and (bound is None or self._blocks[0][1] <= bound):
            released.append(self._blocks.popleft()[0])
        if self._blocks and bound is not None:
            block, last_key = self._blocks.popleft()
            count = rows_up_to(block, bound, self._keys, descending=self._descending)
            if count:
                released.append(block.slice(0, count))
            self._blocks.appendleft((block.slice(count), last_key))
        self.size_bytes = sum(block.nbytes for block, _ in self._blocks)
        return released


def rows_up_to(block: pa.RecordBatch, bound: SortKey, keys: Sequence[str], *, descending: bool) -> int:
    """How many rows of a sorted block are not behind the bound."""
    low, high = 0, block.num_rows
    while low < high:
        middle = (low + high) // 2
        if key_at(block, middle, keys, descending=descending) <= bound:
            low = middle + 1
        else:
            high = middle
    return low


def joined(
    pieces_by_source: Sequence[list[pa.RecordBatch]], keys: Sequence[str], *, descending: bool = False
) -> Iterator[pa.RecordBatch]:
    """What several sources let go of, in order; where one alone has rows, they pass as they are."""
    filled = [pieces for pieces in pieces_by_source if pieces]
    if len(filled) == 1:
        yield from filled[0]
    elif filled:
        rows = pa.concat_batches([piece for pieces in filled for piece in pieces])
        yield rows.take(sort_order(rows, keys, descending=descending))
