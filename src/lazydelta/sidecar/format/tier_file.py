"""One Parquet file of the sidecar, read by ranges: its footer at once, then only the columns asked for.

Contract: nothing is read before it is asked for. What cannot be decoded, is cut short or has vanished is
`DamagedSidecarError`; what the store cannot give stays a `StorageError`.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from lazydelta import limits
from lazydelta.log.file_rows import Batches
from lazydelta.log.parquet_guard import GuardedFile, chunk_span, read_footer
from lazydelta.sidecar.format.damage import damaged
from lazydelta.sidecar.format.foreign_part import foreign_schema, lacking_column
from lazydelta.sidecar.format.memory import SidecarMemory
from lazydelta.sidecar.format.odd_columns import column_twice, odd_column
from lazydelta.sidecar.format.part_encoding import described_schema
from lazydelta.storage import ObjectNotFoundError, ObjectTooShortError, RangedFile, Storage

_TRAILER_BYTES = 8  # the footer's length and Parquet's mark
_Chunks = tuple[int, list[tuple[int, int]]]  # a row group and where its wanted columns lie


class TierFile:
    """A lazily opened file; its footer's length, where known, spares a request.

    Its checksum spares more: Arrow may abort the whole process over a footer with a flipped bit.
    """

    def __init__(
        self,
        storage: Storage,
        name: str,
        size_bytes: int,
        *,
        footer_bytes: int = 0,
        footer_crc32: int | None = None,
        memory: SidecarMemory | None = None,
        roles: tuple[tuple[str, ...], ...] | None = None,
    ) -> None:
        self.name = name
        self.where = f"{storage.root}/{name}"
        self._storage = storage
        self._size_bytes = size_bytes
        self._footer_bytes = footer_bytes
        self._footer_crc32 = footer_crc32
        self._memory = memory
        self._roles = roles  # of the columns, where the file itself does not tell them
        self._file: RangedFile | None = None
        self._metadata: pq.FileMetaData | None = None
        self._schema: pa.Schema | None = None

    @property
    def metadata(self) -> pq.FileMetaData:
        """The footer; read at first use."""
        if self._metadata is None:
            with self.damage_named():
                self._file = RangedFile(self._storage, self.name, self._size_bytes)
                self._metadata = self._known_footer() or self._read_footer(self._file)
        return self._metadata

    @property
    def keys(self) -> dict[bytes, bytes]:
        """The footer's key-value metadata."""
        return dict(self.metadata.metadata or {})

    @property
    def schema(self) -> pa.Schema:
        """The columns, each with its role and path."""
        if self._schema is None:
            with self.damage_named():
                found = self.metadata.schema.to_arrow_schema()
                self._refuse(column_twice(found))
                if self._roles is None:
                    schema = described_schema(found, self.keys)
                else:
                    schema = foreign_schema(found, self._roles)
            self._refuse(odd_column(schema))
            self._schema = schema
        return self._schema

    def batches(self, columns: Sequence[str], row_groups: Sequence[int], batch_rows: int) -> Batches:
        """These columns of these row groups, in this order, in slices; no slice spans two row groups."""
        for name in columns:
            if name not in self.schema.names:
                raise damaged(f"a file of the sidecar has no column {name!r}", self.where)
        schema = pa.schema([self.schema.field(name) for name in columns])
        _ = self.metadata
        assert self._file is not None
        guarded = GuardedFile(self._file)
        reader = self._reader(guarded)
        try:
            for bunch in self._bunches(row_groups, set(columns)):
                guarded.watch(chunk for _, chunks in bunch for chunk in chunks)
                with self.damage_named():
                    self._file.preload(chunk for _, chunks in bunch for chunk in chunks)
                for group, _ in bunch:
                    yield from self._decoded(reader, group, schema, batch_rows)
                self._file.release()
        finally:
            self._file.release()

    def preload(self, columns: Sequence[str], row_groups: Sequence[int]) -> None:
        """Fetch what `batches` decodes first."""
        bunch = next(self._bunches(row_groups, set(columns)), [])
        _ = self.metadata
        assert self._file is not None
        with self.damage_named():
            self._file.preload(chunk for _, chunks in bunch for chunk in chunks)

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
            raise damaged("a file of the sidecar is not there", self.where) from gone
        except ObjectTooShortError as cut:
            raise damaged(f"a file of the sidecar is torn: {cut.what}", self.where) from cut
        except (pa.ArrowException, OSError, UnicodeDecodeError, msgspec.DecodeError) as damage:
            raise damaged(f"a file of the sidecar cannot be read: {damage}", self.where) from damage

    def _refuse(self, problem: str | None) -> None:
        if problem is not None:
            raise damaged(f"a file of the sidecar cannot be read: {problem}", self.where)

    def _known_footer(self) -> pq.FileMetaData | None:
        return None if self._memory is None else self._memory.footer(self.name)

    def _read_footer(self, file: RangedFile) -> pq.FileMetaData:
        self._check_footer(file)
        footer = read_footer(file)
        if self._memory is not None:
            self._memory.keep_footer(self.name, footer, footer.serialized_size)
        return footer

    def _check_footer(self, file: RangedFile) -> None:
        if not _TRAILER_BYTES < self._footer_bytes <= self._size_bytes:
            return
        start = self._size_bytes - self._footer_bytes
        if self._footer_bytes > limits.PARQUET_FOOTER_GUESS_BYTES:
            file.preload([(start, self._footer_bytes)])
        if self._footer_crc32 is None:
            return
        file.seek(start)
        if zlib.crc32(file.read_buffer(self._footer_bytes)) != self._footer_crc32:
            told = "a file of the sidecar cannot be read: its footer is not the one that the manifest tells"
            raise damaged(told, self.where)

    def _reader(self, file: GuardedFile) -> pq.ParquetFile:
        metadata = self.metadata
        with self.damage_named():
            return pq.ParquetFile(
                file,
                metadata=metadata,
                buffer_size=0,  # chunks are preloaded, and small
                pre_buffer=False,
                page_checksum_verification=True,
            )

    def _decoded(self, reader: pq.ParquetFile, group: int, schema: pa.Schema, batch_rows: int) -> Batches:
        # One thread, as for checkpoints: further ones of Arrow's keep memory to themselves.
        stream = reader.iter_batches(
            batch_size=batch_rows, row_groups=[group], columns=schema.names, use_threads=False
        )
        missing = self.metadata.row_group(group).num_rows
        while missing > 0:
            with self.damage_named():
                batch = next(stream, None)
                if batch is None:
                    raise pa.ArrowInvalid(f"row group {group} has {missing} rows less than its footer tells")
                arrays = [_column(batch, field) for field in schema]
            missing -= batch.num_rows
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _bunches(self, row_groups: Sequence[int], columns: set[str]) -> Iterator[list[_Chunks]]:
        """Neighbouring row groups that are fetched at once: as many as a request may bring."""
        bunch: list[_Chunks] = []
        bunch_bytes = 0
        for group in row_groups:
            chunks = self._column_chunks(group, columns)
            size = sum(length for _, length in chunks)
            if bunch and bunch_bytes + size > limits.PRELOAD_BYTES_MAX:
                yield bunch
                bunch, bunch_bytes = [], 0
            bunch.append((group, chunks))
            bunch_bytes += size
        if bunch:
            yield bunch

    def _column_chunks(self, row_group: int, columns: set[str]) -> list[tuple[int, int]]:
        """Where the wanted column chunks of a row group lie: (start, length)."""
        group = self.metadata.row_group(row_group)
        wanted = [at for at in range(group.num_columns) if self._top_level_name(at) in columns]
        with self.damage_named():
            return [chunk_span(group.column(at), self._size_bytes) for at in wanted]

    def _top_level_name(self, leaf: int) -> str:
        path = str(self.metadata.schema.column(leaf).path)
        for suffix in (".key_value.key", ".key_value.value"):
            if path.endswith(suffix) and path not in self.schema.names:
                return path.removesuffix(suffix)
        return path


def _column(batch: pa.RecordBatch, field: pa.Field) -> pa.Array:
    if field.name not in batch.schema.names:
        return lacking_column(field, batch.num_rows)
    return _as(batch.column(field.name), field.type)


def _as(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    return column if column.type.equals(wanted, check_metadata=True) else column.cast(wanted)
