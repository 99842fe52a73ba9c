"""RowLoader: a live file opened into segments, a segment loaded into rows of the table.

Why: the one stage that touches data files. Contract: rows keep the file's order; none is filtered by the
predicate, none is counted against a limit; deleted rows are left out, partition and metadata columns filled
in. A file that is missing, cut or not Parquet is a `CorruptDataError` that names it and the version. Safe to
call from several threads; I/O and decoding do not hold the interpreter's lock.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lazydelta.errors import CorruptDataError
from lazydelta.protocol.partition_values import parse_partition_column
from lazydelta.protocol.schema import PrimitiveType
from lazydelta.rows.data_file import DataFile
from lazydelta.rows.deletion_vectors import deleted_rows
from lazydelta.rows.file_shape import FileShape
from lazydelta.rows.segment import Segment
from lazydelta.rows.selection import METADATA_COLUMNS, Selection
from lazydelta.storage import ObjectNotFoundError, ObjectTooShortError, RangedFile, Storage


class RowLoader:
    """One table's data files, one selection."""

    def __init__(self, storage: Storage, selection: Selection, *, version: int) -> None:
        self._storage = storage
        self._selection = selection
        self._version = version

    def segments(self, file: DataFile) -> list[Segment]:
        """The row groups of a file, after its footer was read."""
        with self._damage_named(file), closing(self._opened(file)) as source:
            metadata = pq.read_metadata(source)
        found, first = [], 0
        for index in range(metadata.num_row_groups):
            group = metadata.row_group(index)
            found.append(
                Segment(
                    file=file,
                    row_group=index,
                    first_row=first,
                    num_rows=group.num_rows,
                    size_bytes=group.total_byte_size,
                )
            )
            first += group.num_rows
        return found

    def load(self, segment: Segment) -> pa.RecordBatch:
        """The live rows of a segment: the selection's fields and metadata columns, by name."""
        file = segment.file
        with self._damage_named(file), closing(self._opened(file)) as source:
            reader = pq.ParquetFile(source, pre_buffer=False, coerce_int96_timestamp_unit="us")
            shape = FileShape(self._selection, reader.metadata, f"{self._storage.root}/{file.path}")
            table = reader.read_row_group(segment.row_group, columns=shape.columns, use_threads=False)
            batch = table.combine_chunks().to_batches(max_chunksize=None)
        rows = batch[0] if batch else pa.RecordBatch.from_pylist([], schema=table.schema)
        columns = shape.table_columns(rows)
        return self._live(self._filled(columns, segment), segment)

    def _filled(self, columns: dict[str, pa.Array], segment: Segment) -> pa.RecordBatch:
        selection, count = self._selection, segment.num_rows
        arrays = {}
        for field in selection.fields:
            if field.name in selection.partition_columns:
                assert isinstance(field.type, PrimitiveType)
                raw = pa.array([segment.file.partition_values.get(field.name)], pa.string())
                value = parse_partition_column(raw, field.type, time_zone=selection.time_zone)
                arrays[field.name] = pa.repeat(value[0], count)
            else:
                arrays[field.name] = columns[field.name]
        for name in selection.metadata_columns:
            arrays[name] = self._metadata_column(name, segment)
        return pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays))

    def _metadata_column(self, name: str, segment: Segment) -> pa.Array:
        file, count = segment.file, segment.num_rows
        positions = np.arange(segment.first_row, segment.first_row + count)
        if name == "_file_path":
            return pa.repeat(pa.scalar(file.path), count)
        if name == "_row_index":
            return pa.array(positions)
        if name == "_row_id" and file.base_row_id is not None:
            return pa.array(positions + file.base_row_id)
        if name == "_commit_version" and file.default_row_commit_version is not None:
            return pa.repeat(pa.scalar(file.default_row_commit_version, pa.int64()), count)
        return pa.nulls(count, METADATA_COLUMNS[name])

    def _live(self, rows: pa.RecordBatch, segment: Segment) -> pa.RecordBatch:
        vector = segment.file.deletion_vector
        if vector is None:
            return rows
        gone = deleted_rows(self._storage, vector) - segment.first_row
        is_live = np.ones(rows.num_rows, np.bool_)
        is_live[gone[(gone >= 0) & (gone < rows.num_rows)]] = False
        return rows.filter(pa.array(is_live))

    def _opened(self, file: DataFile) -> RangedFile:
        return RangedFile(self._storage, file.path, file.size)

    @contextmanager
    def _damage_named(self, file: DataFile) -> Iterator[None]:
        where = f"{self._storage.root}/{file.path}"
        try:
            yield
        except ObjectNotFoundError as gone:
            raise CorruptDataError(
                f"a data file of version {self._version} is not there",
                where,
                "VACUUM deletes files of old versions: open the newest version, or restore the file",
            ) from gone
        except (ObjectTooShortError, pa.ArrowException, OSError) as damage:
            raise CorruptDataError(
                f"a data file of version {self._version} cannot be read: {damage}",
                where,
                "restore it from a copy, or remove it from the table and write its rows again",
            ) from damage
