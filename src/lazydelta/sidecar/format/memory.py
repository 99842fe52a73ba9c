"""What readers of a sidecar keep between reads: footers and decoded row groups, by the names of their files.

Why by name: a part's file is never written twice, so what was read of it stays true as long as it is used.
Contract: a memory may forget anything at any time; what it gives is what was put in. Safe to call from
several threads. `TakenOnce` serves a table that is opened without a cache: it holds what was read ahead until
it is asked for.
"""

from __future__ import annotations

from typing import Protocol

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq


class RowGroupKey(msgspec.Struct, frozen=True):
    """Some columns of one row group of one file."""

    file: str  # below the table's root
    row_group: int
    columns: tuple[str, ...]


class SidecarMemory(Protocol):
    """Where footers and rows are kept."""

    def footer(self, file: str) -> pq.FileMetaData | None:
        """The footer of a file (below the table's root), where it is known."""
        ...

    def keep_footer(
        self, file: str, footer: pq.FileMetaData, size_bytes: int, *, is_ahead: bool = False
    ) -> None:
        """A footer was read (`is_ahead`: before anybody asked); `size_bytes` is its length in the file."""
        ...

    def rows(self, key: RowGroupKey) -> pa.RecordBatch | None:
        """A row group's rows, live or not, where they are known."""
        ...

    def has_rows(self, file: str, row_group: int) -> bool:
        """Whether some columns of a row group are known."""
        ...

    def keep_rows(self, key: RowGroupKey, rows: pa.RecordBatch) -> None:
        """A row group was decoded."""
        ...


class TakenOnce:
    """Holds footers that were read ahead until they are asked for; nothing else."""

    def __init__(self) -> None:
        self._footers: dict[str, pq.FileMetaData] = {}

    def footer(self, file: str) -> pq.FileMetaData | None:
        """The footer, once."""
        return self._footers.pop(file, None)

    def keep_footer(
        self,
        file: str,
        footer: pq.FileMetaData,
        size_bytes: int,  # noqa: ARG002 - the protocol's shape
        *,
        is_ahead: bool = False,
    ) -> None:
        """Hold it if nobody has asked for it yet."""
        if is_ahead:
            self._footers[file] = footer

    def rows(self, key: RowGroupKey) -> pa.RecordBatch | None:  # noqa: ARG002 - the protocol's shape
        """None."""
        return None

    def has_rows(self, file: str, row_group: int) -> bool:  # noqa: ARG002 - the protocol's shape
        """No."""
        return False

    def keep_rows(self, key: RowGroupKey, rows: pa.RecordBatch) -> None:
        """Rows are not kept."""
