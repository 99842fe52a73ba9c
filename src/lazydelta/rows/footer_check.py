"""Whether pyarrow can look at the column chunks of a footer without ending the process.

Why: `FileMetaData.row_group(i).column(j)` of pyarrow 26 lets a C++ exception through where a damaged footer
contradicts itself, which aborts the interpreter. Reading rows meets the same contradictions, but raises them.
Contract: nothing is read. What pyarrow finds wrong with the chunks of these leaves is raised as its own
exception. It takes 0.2 ms: worth it for a schema that was not met before, where such damage mostly shows.
"""

from __future__ import annotations

import io
from collections.abc import Sequence

import pyarrow.parquet as pq


class _NoData(io.RawIOBase):
    """A file of which nothing can be read, but its size."""

    def __init__(self, size_bytes: int) -> None:
        super().__init__()
        self._size_bytes = size_bytes
        self._position = 0
        self.was_asked = False  # the footer was believed, and data asked for

    def readable(self) -> bool:
        """So says every file that pyarrow reads."""
        return True

    def seekable(self) -> bool:
        """Likewise."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move."""
        origin = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size_bytes}[whence]
        self._position = origin + offset
        return self._position

    def tell(self) -> int:
        """Where the next read would begin."""
        return self._position

    def read(self, size: int | None = -1) -> bytes:  # noqa: ARG002
        """Nothing. Arrow would keep an exception, and all that its traceback holds, for good."""
        self.was_asked = True
        return b""


def check_chunks(metadata: pq.FileMetaData, leaves: Sequence[int], size_bytes: int) -> None:
    """Let pyarrow work out where the chunks of these leaves are, in every row group."""
    if not leaves or not metadata.num_row_groups:
        return
    # With `pre_buffer` that comes before the first byte is asked for.
    nothing = _NoData(size_bytes)
    reader = pq.ParquetFile(nothing, metadata=metadata, pre_buffer=True, arrow_extensions_enabled=False)
    rows = reader.reader.iter_batches(
        1, row_groups=range(metadata.num_row_groups), column_indices=list(leaves), use_threads=False
    )
    try:
        next(rows, None)
    except OSError:
        if not nothing.was_asked:
            raise
