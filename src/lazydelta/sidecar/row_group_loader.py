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
from lazydelta.sidecar.manifest import Part
from lazydelta.sidecar.memory import RowGroupKey, SidecarMemory
from lazydelta.sidecar.memory_in_use import WhileInUse
from lazydelta.sidecar.part_reader import PartReader
from lazydelta.sidecar.public_rows import PartColumns, RowShape
from lazydelta.sidecar.reading import MetadataSource, SidecarReading
from lazydelta.sidecar.row_group_plan import RowUnit, Run
from lazydelta.storage import Storage


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """Some consecutive rows of one row group, live or not."""

    unit: RowUnit
    first_row: int  # within the part
    rows: pa.RecordBatch
    columns: PartColumns


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
        with closing(self.part(run.part)) as reader:
            self.parts_opened.add(run.part)
            # Asking a split part for all its columns opens the half that only statistics are in.
            is_index_enough = self.reading.projects_columns and not shape.statistics
            schema = reader.index_schema if is_index_enough else reader.schema
            columns = PartColumns(schema, shape)
            names = tuple(columns.names if self.reading.projects_columns else schema.names)
            ranges = reader.row_groups()
            for group, known in self._run_rows(reader, run, names):
                self.row_groups_read += 1
                first_row = ranges[group].first_row
                for rows in known:
                    yield Piece(
                        unit=RowUnit(run.part, group), first_row=first_row, rows=rows, columns=columns
                    )
                    first_row += rows.num_rows

    def is_known(self, run: Run) -> bool:
        """Whether the run's row groups are in memory, as far as can be told without the part's footer."""
        return all(self._memory.has_rows(self._file(run.part), group) for group in run.row_groups)

    def live_rows(self, piece: Piece) -> pa.RecordBatch:
        """The live rows of a piece as the scan knows them."""
        live = _live_rows(piece, self.source.manifest.parts[piece.unit.part])
        return piece.columns.public(live, self.root)

    def _run_rows(
        self, reader: PartReader, run: Run, names: tuple[str, ...]
    ) -> Iterator[tuple[int, Iterator[pa.RecordBatch]]]:
        """Each row group's rows: from memory, or out of one stream that fetches all others together."""
        keys = {group: RowGroupKey(self._file(run.part), group, names) for group in run.row_groups}
        known = {group: self._memory.rows(key) for group, key in keys.items()}
        missing = [group for group, rows in known.items() if rows is None]
        ranges = reader.row_groups()
        stream = reader.batches(names, missing, live_only=False, batch_rows=limits.SIDECAR_SLICE_ROWS)
        with closing(stream):
            for group, rows in known.items():
                if rows is not None:
                    yield group, iter((rows,))
                else:
                    yield group, self._next_group(stream, keys[group], ranges[group].num_rows)

    def _next_group(self, stream: Batches, key: RowGroupKey, row_count: int) -> Iterator[pa.RecordBatch]:
        done = 0
        while done < row_count:
            rows = next(stream)
            if rows.num_rows == row_count:
                self._memory.keep_rows(key, rows)
            done += rows.num_rows
            yield rows

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
