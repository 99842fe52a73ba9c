"""What one scan keeps of a sidecar's footers while it reads: the latest few, over any memory."""

from __future__ import annotations

import threading

import pyarrow as pa
import pyarrow.parquet as pq

from lazydelta.sidecar.format.memory import RowGroupKey, SidecarMemory

_FOOTERS_MAX = 4


class WhileInUse:
    """The memory of one scan: the latest footers stay, whatever the memory below keeps."""

    def __init__(self, below: SidecarMemory) -> None:
        self._below = below
        self._footers: dict[str, pq.FileMetaData] = {}  # the latest used comes last
        self._lock = threading.Lock()

    def footer(self, file: str) -> pq.FileMetaData | None:
        """The footer, from here or from below."""
        with self._lock:
            found = self._footers.pop(file, None) or self._below.footer(file)
            if found is not None:
                self._put(file, found)
            return found

    def keep_footer(
        self, file: str, footer: pq.FileMetaData, size_bytes: int, *, is_ahead: bool = False
    ) -> None:
        """Keep it here and offer it below."""
        with self._lock:
            self._put(file, footer)
        self._below.keep_footer(file, footer, size_bytes, is_ahead=is_ahead)

    def rows(self, key: RowGroupKey) -> pa.RecordBatch | None:
        """As below."""
        return self._below.rows(key)

    def has_rows(self, file: str, row_group: int) -> bool:
        """As below."""
        return self._below.has_rows(file, row_group)

    def keep_rows(self, key: RowGroupKey, rows: pa.RecordBatch) -> None:
        """As below."""
        self._below.keep_rows(key, rows)

    def _put(self, file: str, footer: pq.FileMetaData) -> None:
        self._footers[file] = footer
        while len(self._footers) > _FOOTERS_MAX:
            del self._footers[next(iter(self._footers))]
