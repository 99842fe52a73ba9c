"""One Parquet file of a table: its footer once, then slices of its row groups, by leaf columns.

Why: a row group may hold a million rows and a hundred columns; a query wants a few, a little at a time.
Contract: only the chunks of the wanted leaves are fetched: up to `limits.DATA_PRELOAD_BYTES_MAX` of a row
group in one round trip, larger ones in blocks while they are decoded. Row groups of one file may be read by
several threads at once: they share the footer and nothing else. Errors are pyarrow's and the storage's.
pyarrow reads no page indexes (26), so that rows are skipped by row group, not by page.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from lazydelta import limits
from lazydelta.log.parquet_guard import GuardedFile, chunk_span, guard_footer, guard_pages
from lazydelta.storage import RangedFile, Storage
from lazydelta.storage.local import LocalStorage
from lazydelta.storage.ranges import coalesce

_PARQUET_BYTES_MIN = 12  # magic, footer length, magic
_BLOCK_BYTES_MIN = 64 * limits.KIB
_TEXT_BYTES_UNKNOWN = 8 * limits.KIB  # parquet-mr leaves bounds out that are longer than half of this


class OpenedFile(msgspec.Struct, frozen=True, eq=False):
    """A file whose footer is there."""

    source: RangedFile  # its tail is in memory
    metadata: pq.FileMetaData
    schema: pa.Schema  # as pyarrow reads it
    size_bytes: int
    storage: Storage
    body: pa.Buffer | None = None  # all of a small file


def open_parquet(storage: Storage, name: str, size_bytes: int, *, is_whole: bool = False) -> OpenedFile:
    """Read the footer; with `is_whole` all of the file, at once."""
    if size_bytes < 0:
        raise pa.ArrowInvalid(f"it has {size_bytes:,} bytes by the log")
    source = RangedFile(storage, name, size_bytes)
    if size_bytes < _PARQUET_BYTES_MIN:
        storage.get_range(
            name, 0, size_bytes
        )  # too short for pyarrow to look: whether it is there comes first
    if is_whole:
        source.preload([(0, size_bytes)])
    guard_footer(source)
    body = source.whole()
    kept = None if body is None else pa.py_buffer(body)
    reader = _reader(source if kept is None else pa.BufferReader(kept), None)
    return OpenedFile(source, reader.metadata, reader.schema_arrow, size_bytes, storage, kept)


def chunk_ranges(opened: OpenedFile, row_group: int, leaves: Sequence[int]) -> list[tuple[int, int]]:
    """Where the chunks of these leaves lie: (start, length), in the file's order."""
    group = opened.metadata.row_group(row_group)
    return sorted(chunk_span(group.column(leaf), opened.size_bytes) for leaf in leaves)


def decoded_bytes(opened: OpenedFile, row_group: int, leaves: Sequence[int]) -> int:
    """About how many bytes these leaves are once decoded; dictionaries make it more."""
    group = opened.metadata.row_group(row_group)
    return sum(group.column(leaf).total_uncompressed_size for leaf in leaves)


def slice_rows(opened: OpenedFile, row_group: int, leaves: Sequence[int], rows_max: int) -> int:
    """How many rows may be decoded at once: `rows_max`, or fewer where they may take too many bytes."""
    group = opened.metadata.row_group(row_group)
    row_bytes = sum(_row_bytes(group.column(leaf), group.num_rows) for leaf in leaves)
    return max(1, min(rows_max, int(limits.DATA_BATCH_BYTES / max(1.0, row_bytes))))


def slices(
    opened: OpenedFile, row_group: int, leaves: Sequence[int], batch_rows: int, *, is_hurried: bool = False
) -> Generator[pa.RecordBatch, None, None]:
    """The rows of a row group in their order, at most `batch_rows` at a time, as the file has them.

    With `is_hurried` the consumer may stop soon: of a large row group no more is read than is asked for.
    """
    ranges = chunk_ranges(opened, row_group, leaves)
    if opened.body is not None:
        found = _in_memory(opened.body, ranges)
    elif isinstance(opened.storage, LocalStorage) and not is_hurried:
        found = _on_disk(opened.storage, opened.source.name, ranges)
    else:
        found = _in_store(opened, ranges)
    done, total = 0, max(1, opened.metadata.row_group(row_group).num_rows)
    with found as source:
        reader = _reader(source.file, opened.metadata, buffer_size=source.buffer_size)
        # By position, because names may hold dots.
        for batch in reader.reader.iter_batches(
            batch_rows, row_groups=[row_group], column_indices=list(leaves), use_threads=source.is_threaded
        ):
            done += batch.num_rows
            source.went_on(done / total)
            yield batch


class _Source(msgspec.Struct, frozen=True):
    """What pyarrow reads a row group through."""

    file: pa.NativeFile | GuardedFile
    buffer_size: int = 0  # bytes that it shall read at a time; 0: a chunk
    is_threaded: bool = False  # whether columns are decoded side by side, as segments are anyhow
    went_on: Callable[[float], None] = lambda _: None  # told what share of the rows was read


@contextmanager
def _in_memory(body: pa.Buffer, ranges: Sequence[tuple[int, int]]) -> Iterator[_Source]:
    view = memoryview(body)
    guard_pages(lambda start, length: view[start : start + length], ranges, at_once=len(view))
    yield _Source(pa.BufferReader(body))


@contextmanager
def _on_disk(storage: LocalStorage, name: str, ranges: Sequence[tuple[int, int]]) -> Iterator[_Source]:
    """pyarrow reads by itself: a third less work than through Python."""
    with storage.reading(name, ranges) as file:
        guard_pages(file.read_at, ranges)
        with pa.OSFile(file.path) as native:
            file.check_path()
            is_large = sum(length for _, length in ranges) > limits.DATA_PRELOAD_BYTES_MAX
            yield _Source(native, _block_bytes(ranges), is_large, file.went_on)


@contextmanager
def _in_store(opened: OpenedFile, ranges: Sequence[tuple[int, int]]) -> Iterator[_Source]:
    with closing(opened.source.sibling()) as source:
        buffer_size = _declare(source, ranges, is_local=isinstance(opened.storage, LocalStorage))
        yield _Source(GuardedFile(source, ranges), buffer_size)


def _row_bytes(chunk: pq.ColumnChunkMetaData, row_count: int) -> float:
    """About how many bytes a row takes in one column; of texts in a dictionary the longest that is known."""
    stored = float(chunk.total_uncompressed_size / max(1, row_count))
    if chunk.physical_type != "BYTE_ARRAY" or not any("DICTIONARY" in name for name in chunk.encodings):
        return stored
    # The footer counts a text once, however many rows repeat it.
    known = chunk.statistics
    if known is not None and known.has_min_max:
        longest = max(len(known.min_raw), len(known.max_raw))
    else:
        longest = min(_TEXT_BYTES_UNKNOWN, chunk.total_uncompressed_size)
    return max(stored, float(longest * chunk.num_values / max(1, row_count)))


def _declare(source: RangedFile, ranges: Sequence[tuple[int, int]], *, is_local: bool) -> int:
    """Fetch small chunks at once, of large ones the head; how many bytes pyarrow shall read at a time."""
    if sum(length for _, length in ranges) <= limits.DATA_PRELOAD_BYTES_MAX:
        # As the storage would fetch them: what comes as one need not be cut and copied.
        source.preload((span.start, span.end - span.start) for span in coalesce(ranges))
        return 0
    block = _block_bytes(ranges)
    if is_local:  # nothing to wait for, and blocks fetched ahead are seldom those that pyarrow asks for
        return block
    source.preload((start, min(length, block)) for start, length in ranges)
    source.stream_through(
        [(start + block, length - block) for start, length in ranges if length > block], block_bytes=block
    )
    return block


def _block_bytes(ranges: Sequence[tuple[int, int]]) -> int:
    """All columns are read side by side, so that together their blocks must be small."""
    return min(limits.READ_BLOCK_BYTES, max(_BLOCK_BYTES_MIN, limits.DATA_PRELOAD_BYTES_MAX // len(ranges)))


def _reader(
    source: RangedFile | GuardedFile | pa.NativeFile, metadata: pq.FileMetaData | None, buffer_size: int = 0
) -> pq.ParquetFile:
    return pq.ParquetFile(
        source,
        metadata=metadata,
        buffer_size=buffer_size,
        pre_buffer=False,
        page_checksum_verification=True,
        arrow_extensions_enabled=False,
        # Spark's old timestamps are INT96, and the year 9999 does not fit nanoseconds.
        coerce_int96_timestamp_unit="us",
    )
