"""Row groups of a sidecar's parts, decoded: from memory where they are known, else fetched together.

Contract: rows come as they lie in the part, live or not; `live_rows` leaves out those that the manifest calls
removed. Counts what was opened and read.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import msgspec
import numpy as np
import pyarrow as pa

from lazydelta import limits
from lazydelta.log.file_rows import Batches
from lazydelta.sidecar.format.damage import odd_rows_named
from lazydelta.sidecar.format.manifest import Part
from lazydelta.sidecar.format.memory import RowGroupKey, SidecarMemory
from lazydelta.sidecar.format.memory_in_use import WhileInUse
from lazydelta.sidecar.format.part_reader import PartReader
from lazydelta.sidecar.read.public_rows import PartColumns, RowShape
from lazydelta.sidecar.read.reading import MetadataSource, SidecarReading
from lazydelta.sidecar.read.row_group_plan import RowUnit, Run
from lazydelta.storage import Storage, is_quick

_ROW_GROUPS_A_RELEASE = 8  # read before Arrow gives the memory back that it no longer uses


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """Some consecutive rows of one row group, live or not."""

    unit: RowUnit
    first_row: int  # within the part
    rows: pa.RecordBatch
    columns: PartColumns


class FetchedRun(msgspec.Struct, frozen=True, kw_only=True):
    """Row groups of one part whose bytes are there."""

    part: int
    reader: PartReader
    columns: PartColumns
    names: tuple[str, ...]
    known: dict[int, pa.RecordBatch | None]  # by row group, in the order of the run; None: to be decoded
    missing: tuple[int, ...]


class RowGroupLoader:
    """Reads one sidecar for one scan."""

    def __init__(
        self, storage: Storage, source: MetadataSource, *, reading: SidecarReading, memory: SidecarMemory
    ) -> None:
        self.source = source
        self.reading = reading
        self.root = storage.root
        self.row_groups_read = 0
        self.parts_opened: set[int] = set()
        self._storage = storage
        self._memory = WhileInUse(memory)

    def part(self, at: int) -> PartReader:
        """The part at this place of the manifest; close it."""
        return PartReader(self._storage, self.source.folder, self.source.manifest.parts[at], self._memory)

    def pieces(self, run: Run, shape: RowShape) -> Iterator[Piece]:
        """The rows of the run's row groups, in its order."""
        return self.decoded(self.fetched(run, shape))

    def fetched(self, run: Run, shape: RowShape) -> FetchedRun:
        """The bytes of what is not in memory, in one round trip, not decoded."""
        self.parts_opened.add(run.part)
        reader = self.part(run.part)
        # Asking a split part for all its columns opens the half that only statistics are in.
        is_index_enough = self.reading.projects_columns and not shape.statistics
        schema = reader.index_schema if is_index_enough else reader.schema
        columns = PartColumns(schema, shape)
        names = tuple(columns.names if self.reading.projects_columns else schema.names)
        known = {group: self._memory.rows(self._key(run.part, group, names)) for group in run.row_groups}
        missing = tuple(group for group, rows in known.items() if rows is None)
        reader.preload(names, missing)
        return FetchedRun(
            part=run.part, reader=reader, columns=columns, names=names, known=known, missing=missing
        )

    def decoded(self, run: FetchedRun) -> Iterator[Piece]:
        """The rows of the run, a row group at a time."""
        with closing(run.reader) as reader:
            ranges = reader.row_groups()
            stream = reader.batches(
                run.names, run.missing, live_only=False, batch_rows=limits.SIDECAR_SLICE_ROWS
            )
            with closing(stream):
                for group, known in run.known.items():
                    self.row_groups_read += 1
                    key = self._key(run.part, group, run.names)
                    count = ranges[group].num_rows
                    slices = self._next_group(stream, key, count) if known is None else iter((known,))
                    first_row = ranges[group].first_row
                    for rows in slices:
                        unit = RowUnit(run.part, group)
                        yield Piece(unit=unit, first_row=first_row, rows=rows, columns=run.columns)
                        first_row += rows.num_rows
                    if self.row_groups_read % _ROW_GROUPS_A_RELEASE == 0:
                        pa.default_memory_pool().release_unused()

    def is_known(self, run: Run) -> bool:
        """Whether the run's row groups are in memory, as far as can be told without the part's footer."""
        return all(self._memory.has_rows(self._file(run.part), group) for group in run.row_groups)

    def is_at_hand(self, run: Run) -> bool:
        """Whether the run's bytes are fetched faster than a thread is told to fetch them."""
        return is_quick(self._storage) or self.is_known(run)

    def live_rows(self, piece: Piece) -> pa.RecordBatch:
        """The live rows of a piece as the scan knows them."""
        live = _live_rows(piece, self.source.manifest.parts[piece.unit.part])
        with odd_rows_named(f"{self.root}/{self._file(piece.unit.part)}"):
            return piece.columns.public(live, self.root)

    def _next_group(self, stream: Batches, key: RowGroupKey, row_count: int) -> Iterator[pa.RecordBatch]:
        done = 0
        while done < row_count:
            rows = next(stream)
            if rows.num_rows == row_count:
                self._memory.keep_rows(key, rows)
            done += rows.num_rows
            yield rows

    def _key(self, part: int, group: int, names: tuple[str, ...]) -> RowGroupKey:
        return RowGroupKey(self._file(part), group, names)

    def _file(self, part: int) -> str:
        return f"{self.source.folder}/{self.source.manifest.parts[part].file}"


def _live_rows(piece: Piece, part: Part) -> pa.RecordBatch:
    """The rows of the piece that the manifest does not call removed."""
    count = piece.rows.num_rows
    removed = np.zeros(count, np.bool_)
    for first, length in zip(part.removed[::2], part.removed[1::2], strict=True):
        start, end = first - piece.first_row, first + length - piece.first_row
        if start < count and end > 0:
            removed[max(start, 0) : min(end, count)] = True
    return piece.rows.filter(pa.array(~removed)) if removed.any() else piece.rows
