"""RowLoader: a live file opened into segments, a segment loaded into rows of the table.

Why: the one stage that touches data files. Contract: rows keep the file's order; none is filtered by the
predicate, none is counted against a limit; row groups that cannot match are left out, deleted rows too;
partition and metadata columns are filled in. A file that is missing, cut, not Parquet or of another schema
is a `CorruptDataError` that names it and the version. Safe to call from several threads; decoding does not
hold the interpreter's lock.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Generator

import msgspec
import numpy as np
import pyarrow as pa

from lazydelta import limits
from lazydelta.errors import CorruptDataError
from lazydelta.predicate import BoundPredicate
from lazydelta.protocol.schema import Field, PrimitiveType, arrow_field
from lazydelta.rows.column_reading import Reading, fields_of
from lazydelta.rows.data_damage import check_row_count, damage_named, damaged
from lazydelta.rows.data_file import DataFile
from lazydelta.rows.deletion_vectors import DeletionVectors
from lazydelta.rows.file_shape import FileShape
from lazydelta.rows.filled_columns import metadata_column, partition_column
from lazydelta.rows.parquet_file import OpenedFile, decoded_bytes, open_parquet, slice_rows, slices
from lazydelta.rows.row_group_pruning import row_groups_left
from lazydelta.rows.segment import Segment
from lazydelta.rows.selection import METADATA_COLUMNS, Selection
from lazydelta.rows.sound_text import check_texts
from lazydelta.storage import Storage
from lazydelta.storage.elsewhere import storage_of

_SHAPES_KNOWN_MAX = 8
_FIRST_SEGMENTS = 2  # of which the rows come soon, not many at once


class _Shape(msgspec.Struct, frozen=True, eq=False):
    """Files of one schema are read alike."""

    schema: pa.Schema
    reading: Reading


class RowLoader:
    """One table's data files, one selection."""

    def __init__(
        self,
        storage: Storage,
        selection: Selection,
        *,
        version: int,
        predicate: BoundPredicate | None = None,
        batch_rows: int = limits.DATA_BATCH_ROWS,
        is_hurried: bool = False,
    ) -> None:
        """With `is_hurried` the consumer may stop soon. More rows at once than usual are begun with few."""
        self._storage = storage
        self._selection = selection
        self._version = version
        self._predicate = predicate
        self._batch_rows = batch_rows
        self._is_hurried = is_hurried
        self._vectors = DeletionVectors(storage)
        self._tracked = {
            name: stored for name, stored in selection.tracked.items() if name in selection.metadata_columns
        }
        self._stored_fields = [
            *(field for field in selection.fields if field.name not in selection.partition_columns),
            *(Field(stored, PrimitiveType("long"), True, {}) for stored in self._tracked.values()),
        ]
        self._schema = pa.schema(
            [
                *(arrow_field(field) for field in selection.fields),
                *(pa.field(name, METADATA_COLUMNS[name]) for name in selection.metadata_columns),
            ]
        )
        self._shapes: tuple[_Shape, ...] = ()  # of the latest schemas
        self._lock = threading.Lock()
        self._begun = itertools.count()  # segments; `next` is atomic
        self._row_groups_seen = 0
        self._row_groups_skipped = 0

    @property
    def schema(self) -> pa.Schema:
        """Of what is loaded: fields of the selection, then metadata columns."""
        return self._schema

    @property
    def row_groups_seen(self) -> int:
        """Of the files opened so far."""
        return self._row_groups_seen

    @property
    def row_groups_skipped(self) -> int:
        """Of those seen: how many the footer's statistics rule out."""
        return self._row_groups_skipped

    def reads_whole(self, file: DataFile) -> bool:
        """Whether all of the file is read at once: it is small, and all its columns are wanted."""
        return self._selection.is_all and file.size <= limits.DATA_WHOLE_BYTES_MAX

    def segments(self, file: DataFile) -> list[Segment]:
        """The row groups of a file that might match, after its footer was read."""
        where = self._where(file)
        with damage_named(where, version=self._version):
            storage, name = storage_of(self._storage, file.path)
            opened = open_parquet(storage, name, file.size, is_whole=self.reads_whole(file))
        reading = self._reading(opened, where)
        check_row_count(file, opened.metadata.num_rows, where, version=self._version)
        self._vectors.check_rows(file, opened.metadata.num_rows)
        found, first = [], 0
        for index, is_left in enumerate(self._row_groups_left(opened, reading, file)):
            num_rows = opened.metadata.row_group(index).num_rows
            if is_left and num_rows:
                found.append(
                    Segment(
                        file=file,
                        row_group=index,
                        first_row=first,
                        num_rows=num_rows,
                        size_bytes=decoded_bytes(opened, index, reading.leaves),
                        opened=opened,
                    )
                )
            first += num_rows
        return found

    def load(self, segment: Segment) -> Generator[pa.RecordBatch, None, None]:
        """The live rows of a segment, some at a time: the selection's fields, then metadata columns."""
        where = self._where(segment.file)
        reading = self._reading(segment.opened, where)
        done = 0
        with damage_named(where, version=self._version):
            for stored in self._slices(segment, reading):
                check_texts(stored)
                rows = self._rows(stored, reading, segment, segment.first_row + done)
                done += stored.num_rows
                if rows.num_rows:
                    yield rows
        if done != segment.num_rows:
            told = f"row group {segment.row_group} has {done} rows and {segment.num_rows} by the footer"
            raise damaged(told, where, version=self._version)

    def close(self) -> None:
        """Nothing is held between loads but memory; it goes with this object and its segments."""

    # --- one slice -----------------------------------------------------------

    def _slices(self, segment: Segment, reading: Reading) -> Generator[pa.RecordBatch, None, None]:
        most = self._batch_rows
        if next(self._begun) < _FIRST_SEGMENTS:
            most = min(most, limits.DATA_BATCH_ROWS)
        batch_rows = slice_rows(segment.opened, segment.row_group, reading.leaves, most)
        if reading.leaves:
            yield from slices(
                segment.opened, segment.row_group, reading.leaves, batch_rows, is_hurried=self._is_hurried
            )
            return
        for first in range(0, segment.num_rows, batch_rows):
            yield _no_columns(min(batch_rows, segment.num_rows - first))

    def _rows(
        self, stored: pa.RecordBatch, reading: Reading, segment: Segment, first_row: int
    ) -> pa.RecordBatch:
        file, count, selection = segment.file, stored.num_rows, self._selection
        found = dict(
            zip((field.name for field in self._stored_fields), fields_of(stored, reading, count), strict=True)
        )
        arrays = []
        for field in selection.fields:
            if field.name in selection.partition_columns:
                array = partition_column(
                    field, file, count, time_zone=selection.time_zone, where=self._where(file)
                )
            else:
                array = found[field.name]
            if not field.nullable and array.null_count:
                raise self._null_found(field, file)
            arrays.append(array)
        for name in selection.metadata_columns:
            tracked = found.get(self._tracked[name]) if name in self._tracked else None
            arrays.append(metadata_column(name, file, first_row, count, tracked))
        rows = pa.RecordBatch.from_arrays(arrays, schema=self._schema) if arrays else stored
        return self._live(rows, file, first_row)

    def _live(self, rows: pa.RecordBatch, file: DataFile, first_row: int) -> pa.RecordBatch:
        gone = self._vectors.positions(file, first_row, first_row + rows.num_rows)
        if not len(gone):
            return rows
        is_live = np.ones(rows.num_rows, np.bool_)
        is_live[gone - first_row] = False
        return rows.filter(pa.array(is_live))

    # --- one file ------------------------------------------------------------

    def _reading(self, opened: OpenedFile, where: str) -> Reading:
        """How the file's columns are read; most files of a table have one schema."""
        shapes = self._shapes
        for known in shapes:
            if known.schema.equals(opened.schema, check_metadata=True):
                return known.reading
        shape = FileShape(opened.schema, mapping_mode=self._selection.mapping_mode, where=where)
        found = _Shape(opened.schema, shape.reading(self._stored_fields))
        self._shapes = (found, *shapes[: _SHAPES_KNOWN_MAX - 1])  # a thread may undo another's: no matter
        return found.reading

    def _row_groups_left(self, opened: OpenedFile, reading: Reading, file: DataFile) -> list[bool]:
        count = opened.metadata.num_row_groups
        left = [True] * count
        if self._predicate is not None and count:
            left = row_groups_left(opened.metadata, reading, self._predicate, file).tolist()
        with self._lock:
            self._row_groups_seen += count
            self._row_groups_skipped += count - sum(left)
        return left

    def _where(self, file: DataFile) -> str:
        return file.path if "://" in file.path else f"{self._storage.root}/{file.path}"

    def _null_found(self, field: Field, file: DataFile) -> CorruptDataError:
        return CorruptDataError(
            f"the column {field.name!r} is NOT NULL in the table and has nulls in the file",
            self._where(file),
            "the file does not belong to this table's schema; restore it or write its rows again",
        )


def _no_columns(row_count: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_struct_array(pa.nulls(row_count, pa.struct([])).fill_null({}))
