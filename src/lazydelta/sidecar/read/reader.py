"""The rows of a sidecar as a stream: only row groups that may match, only columns that are asked for.

Why: the checkpoint beside it holds the same files, but would have to be read whole.
Contract: batches as `log.checkpoint` gives them (canonical `path`, the columns asked for), newest period
first. Row groups of one run are fetched together and the next runs while the caller works; memory is the
bytes of a few runs and a few decoded row groups. Damage is `DamagedSidecarError`; `handed_out` then tells
which rows went out before, so that nobody gives them out twice.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing

import msgspec
import pyarrow as pa

from lazydelta import limits
from lazydelta.log.file_rows import Batches, Mask, RowFilter
from lazydelta.memory_budget import MemoryKind
from lazydelta.memory_share import MemoryShare
from lazydelta.sidecar.format.memory import SidecarMemory
from lazydelta.sidecar.read.pruner import Pruner
from lazydelta.sidecar.read.public_rows import RowShape
from lazydelta.sidecar.read.read_ahead import ReadAhead
from lazydelta.sidecar.read.reading import MetadataSource, SidecarReading
from lazydelta.sidecar.read.row_group_loader import FetchedRun, Piece, RowGroupLoader
from lazydelta.sidecar.read.row_group_plan import Plan, RowUnit, Run, plan_reads, runs_of
from lazydelta.storage import Storage

_RUNS_AHEAD = 1  # of bytes
_FOOTERS_AHEAD = 3
_DECODED_GROWTH = 10  # a row group takes about that many times its bytes while it is decoded (measured)


class SidecarRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Which rows of a sidecar, and what of them."""

    shape: RowShape
    # One pass for each, a narrow one first: it says where rows are likely, the last one where they may be. A
    # row group is read once, and no pass is begun before the one before it is consumed.
    pruners: tuple[Pruner, ...] = ()
    keep_rows: RowFilter | None = None
    gives_statistics: bool = False  # they go out: a source that may lack some does not serve
    is_limited: bool = False  # the caller may stop after a few rows: nothing is read ahead

    @property
    def pruner(self) -> Pruner | None:
        """Of the first pass."""
        return self.pruners[0] if self.pruners else None


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
        share: MemoryShare | None = None,
    ) -> None:
        self.source = source
        self._share = share or MemoryShare()
        self.row_groups_skipped = 0
        self._request = request
        self._reading = reading
        self._loader = RowGroupLoader(storage, source, reading=reading, memory=memory)
        self._ahead: ReadAhead[Run, FetchedRun] | None = None
        self._planned: set[RowUnit] = set()
        self._judged: dict[RowUnit, int] = {}  # rows of each row group that the caller has seen or refused

    @property
    def row_groups_read(self) -> int:
        """So far."""
        return self._loader.row_groups_read

    @property
    def parts_opened(self) -> set[int]:
        """Their places in the manifest."""
        return self._loader.parts_opened

    def start(self) -> None:
        """Begin to read, unless the caller may stop after a few rows; `rows` goes on from there."""
        if self._ahead is None and not self._request.is_limited:
            self._ahead = self._read_ahead(self._passes[0])
            self._ahead.start()

    def rows(self) -> Batches:
        """The live rows that the request does not rule out."""
        request = self._request
        with closing(self._pieces()) as pieces:
            for piece in pieces:
                rows = self._loader.live_rows(piece)
                if request.keep_rows is not None:
                    kept = request.keep_rows(rows, None)
                    rows = rows if kept.all() else rows.filter(pa.array(kept))
                self._judged[piece.unit] = self._judged.get(piece.unit, 0) + piece.rows.num_rows
                if rows.num_rows:
                    yield rows

    def planned(self) -> Iterator[RowUnit]:
        """The row groups that `rows` would read, by the manifest and the parts' footers alone."""
        for pruner in self._passes:
            for run in self._runs(pruner):
                yield from (RowUnit(run.part, group) for group in run.row_groups)

    def handed_out(self) -> Batches:
        """The rows that were judged so far, read again: their paths and deletion vectors."""
        shape = RowShape(columns=("path", "deletion_vector"))
        for unit, count in list(self._judged.items()):
            left = count
            for piece in self._loader.pieces(Run(unit.part, (unit.row_group,)), shape):
                judged = msgspec.structs.replace(piece, rows=piece.rows.slice(0, left))
                left -= judged.rows.num_rows
                # Live ones alone: the key of a removed row may have come again, in a part not read yet.
                rows = self._loader.live_rows(judged)
                if rows.num_rows:
                    yield rows

    def close(self) -> None:
        """Stop what is under way."""
        if self._ahead is not None:
            self._ahead.close()

    @property
    def _passes(self) -> tuple[Pruner | None, ...]:
        pruners = self._request.pruners if self._reading.prunes else ()
        return pruners or (None,)

    def _pieces(self) -> Generator[Piece, None, None]:
        for number, pruner in enumerate(self._passes):
            if self._request.is_limited:
                for run in self._runs(pruner):
                    with self._share.held(self._run_bytes, MemoryKind.LOG):
                        yield from self._loader.pieces(run, self._request.shape)
                continue
            if number or self._ahead is None:
                self._ahead = self._read_ahead(pruner)
            # Decoded here: another thread would be no faster, and Arrow keeps memory for each thread.
            with closing(self._ahead.results()) as results:
                for fetched in results:
                    yield from self._loader.decoded(fetched)

    def _read_ahead(self, pruner: Pruner | None) -> ReadAhead[Run, FetchedRun]:
        return ReadAhead(
            self._runs(pruner),
            self._fetched,
            _RUNS_AHEAD,
            is_quick=self._loader.is_at_hand,
            share=self._share,
            item_bytes=self._run_bytes,
        )

    @property
    def _run_bytes(self) -> int:
        """About what a run takes: its bytes, and one row group of it decoded."""
        count = 1 if self._request.is_limited else self._reading.row_groups_per_batch
        parts = self.source.manifest.parts
        group = max((part.size_bytes // max(1, part.num_row_groups) for part in parts), default=0)
        return min(count * group, limits.PRELOAD_BYTES_MAX) + _DECODED_GROWTH * group

    def _runs(self, pruner: Pruner | None) -> Iterator[Run]:
        plan = plan_reads(self.source.manifest, pruner)
        units = self._units(self._units_of(plan), pruner)
        if pruner is self._passes[-1]:
            self.row_groups_skipped += plan.row_groups_skipped
        return runs_of(units, 1 if self._request.is_limited else self._reading.row_groups_per_batch)

    def _units_of(self, plan: Plan) -> Iterator[RowUnit]:
        if plan.units is not None:
            yield from plan.units
            return
        for part in plan.parts:
            for group in reversed(range(self.source.manifest.parts[part].num_row_groups)):
                yield RowUnit(part, group)

    def _units(self, units: Iterator[RowUnit], pruner: Pruner | None) -> Iterator[RowUnit]:
        """Row groups to read, asked of each part's footer when its turn comes."""
        left = [unit for unit in units if unit not in self._planned]
        possible: dict[int, Mask] = {}
        with closing(self._verdicts(list(dict.fromkeys(unit.part for unit in left)), pruner)) as verdicts:
            for unit in left:
                if pruner is not None and unit.part not in possible:
                    possible[unit.part] = next(verdicts)
                if pruner is not None and not possible[unit.part][unit.row_group]:
                    self.row_groups_skipped += pruner is self._passes[-1]
                    continue
                self._planned.add(unit)
                yield unit

    def _verdicts(self, parts: Sequence[int], pruner: Pruner | None) -> Generator[Mask, None, None]:
        """What the footers of these parts say, in this order; of many, the next ones are read ahead."""

        def judged(part: int) -> Mask:
            assert pruner is not None
            with closing(self._loader.part(part)) as reader:
                return pruner.by_footer(reader)

        if self._request.is_limited or len(parts) <= _FOOTERS_AHEAD:
            yield from map(judged, parts)
        else:
            yield from ReadAhead(parts, judged, _FOOTERS_AHEAD).results()

    def _fetched(self, run: Run) -> FetchedRun:
        return self._loader.fetched(run, self._request.shape)
