"""Descriptors of files on their way to executors: some files packed into few bytes, or where those are kept.

Contract: what was packed comes out as it went in, the columns that a reader of rows needs. A chunk in a spill
folder is read by its range alone.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pyarrow as pa

from lazydelta.log.file_rows import FILE_COLUMNS
from lazydelta.rows.data_file import DATA_FILE_COLUMNS, DataFile, data_files
from lazydelta.scan.record_counts import NUM_RECORDS
from lazydelta.settings import Settings
from lazydelta.storage import open_storage

CHUNK_SCHEMA = pa.schema(
    [*((name, FILE_COLUMNS[name]) for name in DATA_FILE_COLUMNS), (NUM_RECORDS, pa.int64())]
)
_CODEC = "zstd"


class PackedFiles(msgspec.Struct, frozen=True, array_like=True):
    """Some files."""

    body: bytes
    unpacked_bytes: int
    file_count: int


class SpilledFiles(msgspec.Struct, frozen=True, array_like=True):
    """The same in a file of the spill folder."""

    name: str
    start: int
    length: int
    unpacked_bytes: int
    file_count: int


Chunk = PackedFiles | SpilledFiles


def packed(files: pa.RecordBatch) -> PackedFiles:
    """These files; the batch has `CHUNK_SCHEMA`."""
    raw = files.serialize()
    return PackedFiles(pa.compress(raw, _CODEC, asbytes=True), raw.size, files.num_rows)


def chunk_columns(files: pa.RecordBatch) -> pa.RecordBatch:
    """A batch of a scan of files in `CHUNK_SCHEMA`; counts that were not asked for are null."""
    names = files.schema.names
    arrays = [
        files.column(field.name).cast(field.type)
        if field.name in names
        else pa.nulls(files.num_rows, field.type)
        for field in CHUNK_SCHEMA
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=CHUNK_SCHEMA)


def unpacked(chunks: tuple[Chunk, ...], spill: str | None, settings: Settings) -> Iterator[DataFile]:
    """The files of these chunks, one chunk at a time."""
    for chunk in chunks:
        body = chunk.body if isinstance(chunk, PackedFiles) else _fetched(chunk, spill, settings)
        raw = pa.decompress(body, chunk.unpacked_bytes, _CODEC)
        yield from data_files(pa.ipc.read_record_batch(raw, CHUNK_SCHEMA))


def _fetched(chunk: SpilledFiles, spill: str | None, settings: Settings) -> bytes:
    assert spill is not None, "only a plan with a spill folder spills"
    return open_storage(spill, settings).get_range(chunk.name, chunk.start, chunk.length)
