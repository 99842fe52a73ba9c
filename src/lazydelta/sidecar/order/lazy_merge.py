"""Sorted sources merged into one stream, each read only when the order reaches it.

Why: of a sidecar's parts a scan in order needs one or two at a time, and under a limit only their beginning.
Contract: a source tells a bound that nothing it has not read yet comes before; the merge gives out what is
not behind any bound, and reads the source with the nearest bound only where nothing can be given out. A
source that fails leaves the others as they are: take it out and go on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import pyarrow as pa

from lazydelta.log.file_rows import Batches
from lazydelta.sidecar.order.held_rows import HeldRows, joined
from lazydelta.sidecar.order.sort_keys import SortKey


class LazySource(Protocol):
    """Rows in order, read on demand."""

    @property
    def bound(self) -> SortKey | None:
        """What is not read yet does not come before this; None where everything is read."""
        ...

    def read_on(self) -> pa.RecordBatch | None:
        """Read a little more: some rows, or none but a nearer knowledge of the bound."""
        ...


class LazyMerge:
    """The sources and what was read of them. `rows` may be asked for again after a failure."""

    def __init__(self, keys: Sequence[str], *, descending: bool) -> None:
        self._keys = keys
        self._descending = descending
        self._sources: dict[LazySource, HeldRows] = {}

    def add(self, source: LazySource) -> None:
        """One more source."""
        self._sources[source] = HeldRows(self._keys, descending=self._descending)

    def remove(self, source: LazySource) -> None:
        """Forget a source and what was read of it but not given out."""
        self._sources.pop(source, None)

    def rows(self, on_release: Callable[[SortKey | None], None] = lambda _: None) -> Batches:
        """All rows, in order; `on_release` is told the bound before rows up to it go out."""
        while True:
            nearest = self._nearest()
            bound = None if nearest is None else nearest.bound
            released = [held.up_to(bound) for held in self._sources.values() if held]
            if any(released):
                on_release(bound)
                yield from joined(released, self._keys, descending=self._descending)
            elif nearest is None:
                return
            else:
                rows = nearest.read_on()
                if rows is not None and rows.num_rows:
                    self._sources[nearest].put(rows)

    def _nearest(self) -> LazySource | None:
        nearest, least = None, None
        for source in self._sources:
            bound = source.bound
            if bound is not None and (least is None or bound < least):
                nearest, least = source, bound
        return nearest
