"""The rows of a sidecar as a stream: only row groups that may match, only columns that are asked for.

Why: the checkpoint beside it holds the same files, but would have to be read whole.
Contract: batches as `log.checkpoint` gives them (canonical `path`, the columns asked for), newest period
first. Row groups of one run are fetched together and the next runs while the caller works; memory is a few
runs. Damage is `DamagedSidecarError`; `handed_out` then tells which rows went out before, so that nobody
gives them out twice.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing

import msgspec
import numpy as np
import pyarrow as pa

from lazydelta import limits
from lazydelta.log.file_rows import Batches, Mask, RowFilter
from lazydelta.predicate import BoundPredicate
from lazydelta.sidecar.manifest import Part
from lazydelta.sidecar.memory import RowGroupKey, SidecarMemory
from lazydelta.sidecar.memory_in_use import WhileInUse
from lazydelta.sidecar.part_reader import PartReader
from lazydelta.sidecar.pruning import possible_by_footer
from lazydelta.sidecar.public_rows import PartColumns, RowShape
from lazydelta.sidecar.read_ahead import ReadAhead
from lazydelta.sidecar.reading import MetadataSource, SidecarReading
from lazydelta.sidecar.row_group_plan import RowUnit, Run, plan_reads, runs_of
from lazydelta.storage import Storage

_RUNS_AHEAD = 2


class SidecarRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Which rows of a sidecar, and what of them."""

    shape: RowShape
    predicate: BoundPredicate | None = None
    keep_rows: RowFilter | None = None
    is_limited: bool = False  # the caller may stop after a few rows: nothing is read ahead


class _Piece(msgspec.Struct, frozen=True, kw_only=True):
    """Some consecutive rows of one row group, live or not."""

    unit: RowUnit
    first_row: int  # within the part
    rows: pa.RecordBatch
    columns: PartColumns


class SidecarReader:
    """One sidecar, opened lazily. Counts as it goes."""

    def __init__(
        self,
        storage: Storage,
        source: MetadataSource,
        request: SidecarRequest,
        *,
        reading: SidecarReading,
        memory: SidecarMemory,
    ) -> None:
        self.source = source
        self.row_groups_read = 0
        self.row_groups_skipped = 0
        self.parts_opened: set[int] = set()
        self._storage = storage
        self._request = request
        self._reading = reading
        self._memory = WhileInUse(memory)
        self._ahead: ReadAhead[Run, list[_Piece]] | None = None
        self._judged: dict[RowUnit, int] = {}  # rows of each row group that the caller has seen or refused

    def start(self) -> None:
        """Begin to read, unless the caller may stop after a few rows; `rows` goes on from there."""
        if self._ahead is None and not self._request.is_limited:
            self._ahead = ReadAhead(self._runs(), self._loaded, _RUNS_AHEAD)
            self._ahead.start()

    def rows(self) -> Batches:
        """The live rows that the request does not rule out."""
        request = self._request
        with closing(self._pieces()) as pieces:
            for piece in pieces:
                live = _live_rows(piece, self.source.manifest.parts[piece.unit.part])
                rows = piece.columns.public(live, self._storage.root)
                if request.keep_rows is not None:
                    kept = request.keep_rows(rows, None)
                    rows = rows if kept.all() else rows.filter(pa.array(kept))
                self._judged[piece.unit] = self._judged.get(piece.unit, 0) + piece.rows.num_rows
                if rows.num_rows:
                    yield rows

    def handed_out(self) -> Batches:
        """The rows that were judged so far, read again: their paths and deletion vectors."""
        shape = RowShape(columns=("path", "deletion_vector"))
        for unit, count in list(self._judged.items()):
            left = count
            for piece in self._run_pieces(Run(unit.part, (unit.row_group,)), shape):
                rows = piece.rows.slice(0, left)
                left -= rows.num_rows
                if rows.num_rows:
                    yield piece.columns.public(rows, self._storage.root)

    def close(self) -> None:
        """Stop what is under way."""
        if self._ahead is not None:
            self._ahead.close()

    def _pieces(self) -> Generator[_Piece, None, None]:
        request = self._request
        if request.is_limited:
            for run in self._runs():
                yield from self._run_pieces(run, request.shape)
            return
        self.start()
        assert self._ahead is not None
        with closing(self._ahead.results()) as loaded:
            for pieces in loaded:
                yield from pieces

    def _runs(self) -> Iterable[Run]:
        request = self._request
        predicate = request.predicate if self._reading.prunes else None
        plan = plan_reads(self.source.manifest, predicate)
        self.row_groups_skipped += plan.row_groups_skipped
        units = self._units(plan.parts, plan.units, predicate)
        return runs_of(units, 1 if request.is_limited else self._reading.row_groups_per_batch)

    def _units(
        self, parts: Sequence[int], units: Sequence[RowUnit] | None, predicate: BoundPredicate | None
    ) -> Iterator[RowUnit]:
        """Row groups to read, asked of each part's footer when its turn comes."""
        verdicts: dict[int, Mask] = {}
        if units is None:
            units = [
                RowUnit(part, group)
                for part in parts
                for group in reversed(range(self.source.manifest.parts[part].num_row_groups))
            ]
        for unit in units:
            if predicate is not None and unit.part not in verdicts:
                with closing(self._part(unit.part)) as reader:
                    verdicts[unit.part] = possible_by_footer(reader, predicate)
            if unit.part in verdicts and not verdicts[unit.part][unit.row_group]:
                self.row_groups_skipped += 1
                continue
            yield unit

    def _loaded(self, run: Run) -> list[_Piece]:
        return list(self._run_pieces(run, self._request.shape))

    def _run_pieces(self, run: Run, shape: RowShape) -> Iterator[_Piece]:
        with closing(self._part(run.part)) as reader:
            self.parts_opened.add(run.part)
            columns = PartColumns(reader.schema, shape)
            names = tuple(columns.names if self._reading.projects_columns else reader.schema.names)
            ranges = reader.row_groups()
            for group, known in self._run_rows(reader, run, names):
                self.row_groups_read += 1
                first_row = ranges[group].first_row
                for rows in known:
                    yield _Piece(
                        unit=RowUnit(run.part, group), first_row=first_row, rows=rows, columns=columns
                    )
                    first_row += rows.num_rows

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

    def _part(self, part: int) -> PartReader:
        entry = self.source.manifest.parts[part]
        return PartReader(self._storage, self.source.folder, entry, self._memory)

    def _file(self, part: int) -> str:
        return f"{self.source.folder}/{self.source.manifest.parts[part].file}"


def _live_rows(piece: _Piece, part: Part) -> pa.RecordBatch:
    """The rows of the piece that the manifest does not call removed."""
    count = piece.rows.num_rows
    removed = np.zeros(count, np.bool_)
    for first, length in zip(part.removed[::2], part.removed[1::2], strict=True):
        start, end = first - piece.first_row, first + length - piece.first_row
        if start < count and end > 0:
            removed[max(start, 0) : min(end, count)] = True
    return piece.rows.filter(pa.array(~removed)) if removed.any() else piece.rows
