"""Rows that come sorted, whatever sorted them, as a source of a lazy merge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from lazydelta.sidecar.order.sort_keys import SortKey, before_all, key_at


class SortedStream:
    """A stream of sorted rows as a source: its bound is the last row read."""

    def __init__(self, batches: Iterator[pa.RecordBatch], keys: Sequence[str], *, descending: bool) -> None:
        self.bound: SortKey | None = before_all((), descending=descending)
        self._batches = batches
        self._keys = keys
        self._descending = descending

    def read_on(self) -> pa.RecordBatch | None:
        """The next batch."""
        rows: pa.RecordBatch | None = next((rows for rows in self._batches if rows.num_rows), None)
        if rows is None:
            self.bound = None
        else:
            self.bound = key_at(rows, rows.num_rows - 1, self._keys, descending=self._descending)
        return rows
