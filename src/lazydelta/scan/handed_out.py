"""The keys of files that went out of a checkpoint, kept while they are few.

Why: a checkpoint that somebody writes anew has the same files in another order, so that nothing but their
keys tells which of them went out.
Contract: the columns are kept as they are, without a copy or a digest: a scan that ends well pays next to
nothing. Past the limit, or where the process has no memory to spare, all of them are dropped.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from lazydelta import limits
from lazydelta.log.file_rows import deletion_vectors
from lazydelta.memory_share import MemoryShare
from lazydelta.scan.keys import FileKeys


class HandedOut:
    """Close it to give its memory back."""

    def __init__(self, share: MemoryShare) -> None:
        self.count = 0  # of files that went out
        self.is_whole = True  # the keys of all of them are here
        self._share = share
        self._byte_count = 0
        self._kept: list[FileKeys] = []

    def add(self, rows: pa.RecordBatch) -> None:
        """These are about to go out."""
        self.count += rows.num_rows
        if not self.is_whole:
            return
        keys = FileKeys(rows.column("path"), deletion_vectors(rows))
        more = int(keys.paths.get_total_buffer_size())
        if keys.vectors is not None:
            more += int(keys.vectors.get_total_buffer_size())
        is_little = self._byte_count + more <= limits.CHECKPOINT_KEYS_KEPT_BYTES
        if not (is_little and self._share.try_take(more)):
            self.is_whole = False
            self.close()
            return
        self._byte_count += more
        self._kept.append(keys)

    def all_keys(self) -> Iterator[FileKeys]:
        """Of all files that went out."""
        assert self.is_whole
        yield from self._kept

    def close(self) -> None:
        """Forget them."""
        self._share.give(self._byte_count)
        self._byte_count, self._kept = 0, []
