"""One Parquet file of a checkpoint, read by ranges: footer, then only the columns and row groups asked for.

Contract: nothing is read before it is asked for; small row groups are fetched at once, large ones streamed
in blocks and decoded in slices of `batch_rows`. What Parquet cannot decode is `DamagedCheckpointError`;
what the store cannot give stays a `StorageError`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq

from lazydelta import limits
from lazydelta.errors import CorruptLogError
from lazydelta.log.footer_bounds import leaf_positions
from lazydelta.log.parquet_guard import GuardedFile, chunk_span, read_footer
from lazydelta.memory_budget import MemoryKind
from lazydelta.memory_share import MemoryShare
from lazydelta.storage import (
    AheadRoom,
    ObjectNotFoundError,
    ObjectTooShortError,
    RangedFile,
    Storage,
    is_quick,
)

_DECODED_GROWTH = 4  # rows take at most about that many times the memory of their chunks
_DECODED_BYTES = 4 * limits.MIB  # of a slice, about


class DamagedCheckpointError(CorruptLogError):
    """A file of a checkpoint cannot be read. The log may still reach the version without it."""


class CheckpointVanishedError(DamagedCheckpointError):
    """A file of a checkpoint that was listed is not there any more."""


def checkpoint_vanished(where: str) -> CheckpointVanishedError:
    """The error that names the file."""
    return CheckpointVanishedError(
        "the checkpoint file vanished after it was listed",
        where,
        "open the table again: its log was cleaned up or rewritten meanwhile",
    )


class ParquetPart:
    """A lazily opened checkpoint file."""

    def __init__(
        self, storage: Storage, name: str, size_bytes: int, share: MemoryShare | None = None
    ) -> None:
        self._share = share or MemoryShare()
        self._room = AheadRoom(self._share)
        self.name = name
        self.size_bytes = size_bytes
        self._storage = storage
        self._file: RangedFile | None = None
        self._metadata: pq.FileMetaData | None = None
        self._leaves: dict[str, int] = {}

    @property
    def metadata(self) -> pq.FileMetaData:
        """The footer; read at first use."""
        if self._metadata is None:
            with self.damage_named():
                self._file = RangedFile(self._storage, self.name, self.size_bytes)
                self._metadata = read_footer(self._file)
                self._leaves = leaf_positions(self._metadata)
        return self._metadata

    @property
    def leaves(self) -> dict[str, int]:
        """Every leaf column's dotted path with its position."""
        _ = self.metadata
        return self._leaves

    def has(self, path: str) -> bool:
        """Whether the file has this column, a leaf or a group."""
        return any(leaf == path or leaf.startswith(path + ".") for leaf in self.leaves)

    def null_count(self, row_group: int, leaf: str) -> int | None:
        """How many rows of the row group lack this leaf; None where the footer does not say."""
        index = self.leaves.get(leaf)
        if index is None:
            return int(self.metadata.row_group(row_group).num_rows)
        statistics = self.metadata.row_group(row_group).column(index).statistics
        if statistics is None or not statistics.has_null_count:
            return None
        return int(statistics.null_count)

    def may_have(self, row_group: int, leaf: str) -> bool:
        """Whether some row of the row group may have a value there."""
        row_count = int(self.metadata.row_group(row_group).num_rows)
        return self.null_count(row_group, leaf) != row_count

    def batches(
        self, row_groups: Sequence[int], columns: Sequence[str], batch_rows: int, *, read_ahead: bool = False
    ) -> Generator[pa.RecordBatch, None, None]:
        """These row groups in this order, these columns (leaves or whole groups), in slices."""
        groups = [self._column_chunks(index, columns) for index in row_groups]
        if not any(groups):
            return
        chunks = list(zip(*groups, strict=True))  # of each column, in the order of reading
        flat = [chunk for group in groups for chunk in group]
        with self._share.held(_memory_of(flat, columns=len(chunks)), MemoryKind.LOG):
            yield from self._decoded(row_groups, columns, batch_rows, chunks, read_ahead=read_ahead)

    def column(self, batch: pa.RecordBatch, name: str) -> pa.Array:
        """A top-level column of a batch that this file gave, of which there must be one."""
        if batch.schema.names.count(name) != 1:
            raise self.damaged(f"it has the column {name!r} more than once, or not at all")
        return batch.column(name)

    def damaged(self, damage: object) -> DamagedCheckpointError:
        """The error that names this file and what is wrong with it."""
        return DamagedCheckpointError(
            f"the checkpoint file cannot be read: {damage}",
            f"{self._storage.root}/{self.name}",
            "restore it, or delete it if older commits or another checkpoint are still there",
        )

    def close(self) -> None:
        """Stop read-ahead and drop what is buffered."""
        if self._file is not None:
            self._file.close()

    @contextmanager
    def damage_named(self) -> Iterator[None]:
        """Turn what goes wrong with this file's bytes into the error that names it."""
        try:
            yield
        except ObjectNotFoundError as gone:
            raise checkpoint_vanished(f"{self._storage.root}/{self.name}") from gone
        except ObjectTooShortError as cut:
            raise self.damaged(cut.what) from cut
        except (pa.ArrowException, OSError, UnicodeDecodeError) as damage:
            raise self.damaged(damage) from damage

    def _decoded(
        self,
        row_groups: Sequence[int],
        columns: Sequence[str],
        batch_rows: int,
        chunks: Sequence[Sequence[tuple[int, int]]],
        *,
        read_ahead: bool,
    ) -> Generator[pa.RecordBatch, None, None]:
        assert self._file is not None
        flat = [chunk for column in chunks for chunk in column]
        if sum(length for _, length in flat) <= limits.PRELOAD_BYTES_MAX:
            with self.damage_named():
                self._file.preload(flat)
        elif read_ahead and is_quick(self._storage):
            self._file.stream_through(flat)
        elif read_ahead:
            self._file.stream_columns(chunks, self._room)
        try:
            with self.damage_named():
                reader = pq.ParquetFile(
                    GuardedFile(self._file, flat),
                    metadata=self.metadata,
                    buffer_size=limits.READ_BLOCK_BYTES,
                    pre_buffer=False,
                    page_checksum_verification=True,
                    # Spark's timestamps are INT96, and the year 9999 does not fit nanoseconds.
                    coerce_int96_timestamp_unit="us",
                )
                # One thread: the longest column decides the time, and every further thread of Arrow's keeps
                # tens of megabytes of freed memory to itself.
                yield from reader.iter_batches(
                    batch_size=batch_rows,
                    row_groups=list(row_groups),
                    columns=list(columns),
                    use_threads=False,
                )
        finally:
            self._file.release()

    def _column_chunks(self, row_group: int, columns: Sequence[str]) -> list[tuple[int, int]]:
        """Where the wanted column chunks of a row group lie: (start, length), by column."""
        group = self.metadata.row_group(row_group)
        found = []
        for leaf, index in self.leaves.items():
            if any(leaf == column or leaf.startswith(column + ".") for column in columns):
                with self.damage_named():
                    found.append(chunk_span(group.column(index), self.size_bytes))
        return found


def _memory_of(chunks: Sequence[tuple[int, int]], *, columns: int) -> int:
    """About what it takes to decode these: all of them, or blocks of one row group, and a slice of rows."""
    whole = sum(length for _, length in chunks)
    if whole > limits.PRELOAD_BYTES_MAX:
        whole = min(whole, 2 * columns * limits.READ_BLOCK_BYTES)
    return whole + min(_DECODED_BYTES, _DECODED_GROWTH * whole)
