"""One run of a scan of rows: the stages, their threads, and how they end.

    ordered files → segments (footers, ahead) → rows (decoded and filtered, ahead) → limit → first row

Contract: nothing is read before the first batch is pulled. `stop` may come from any thread, at any time, more
than once; it does not wait for a read that is under way, and what such a read brings is dropped.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import msgspec
import pyarrow as pa

from lazydelta import limits
from lazydelta.log.file_rows import Batches
from lazydelta.predicate import BoundPredicate
from lazydelta.rows.data_file import DataFile
from lazydelta.rows.limit import limited, sliced, without_first
from lazydelta.rows.loader import RowLoader
from lazydelta.rows.materialize import backwards
from lazydelta.rows.ordered_files import covers_limit
from lazydelta.rows.prefetch import Piece, Prefetch
from lazydelta.rows.residual_filter import matching
from lazydelta.rows.row_tally import RowTally
from lazydelta.rows.segment import Segment
from lazydelta.rows.selection import Selection
from lazydelta.storage import Storage


class RowPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What a run does."""

    selection: Selection
    schema: pa.Schema  # of what comes out
    predicate: BoundPredicate | None
    first_row: int  # of those that match: what comes before is left out
    limit: int | None  # rows, those left out among them
    is_backwards: bool  # the rows of a file last first
    batch_rows: int  # of a batch that comes out
    prefetch_size: int

    @property
    def is_hurried(self) -> bool:
        """Whether the consumer may stop after a few rows."""
        return self.limit is not None

    @property
    def slice_rows(self) -> int:
        """Rows of a row group that are decoded at once: many cost less each, few come sooner."""
        if self.limit is None:
            return max(self.batch_rows, limits.DATA_BATCH_ROWS)
        is_exact = self.predicate is None and not self.is_backwards
        return max(1, min(self.limit, self.batch_rows)) if is_exact else self.batch_rows


class RowRun:
    """The stages of one run."""

    def __init__(
        self, plan: RowPlan, files: Generator[DataFile, None, None], storage: Storage, *, version: int
    ) -> None:
        self._plan = plan
        self._io = storage.counters
        self._loader = RowLoader(
            storage, plan.selection, version=version, predicate=plan.predicate, batch_rows=plan.slice_rows
        )
        self.tally = RowTally(limit=plan.limit, ends_traversal=covers_limit(plan.predicate))
        ahead = plan.prefetch_size
        self._pool = ThreadPoolExecutor(_threads(ahead), "lazydelta-rows") if ahead > 0 else None
        self._segments = Prefetch(
            files, self._opened, ahead=ahead, pool=self._pool, is_hurried=plan.is_hurried
        )
        self._rows = Prefetch(
            _each(self._segments),
            self._loaded,
            ahead=ahead,
            pool=self._pool,
            size_of=lambda rows: rows.nbytes,
            is_hurried=plan.is_hurried,
        )

    def batches(self) -> Batches:
        """The rows that come out; whoever pulls must `stop` the run in the end."""
        plan = self._plan
        self.tally.begin(self._io)
        rows = without_first(limited(_each(self._rows), plan.limit), plan.first_row)
        with closing(sliced(rows, plan.batch_rows)) as batches:
            for batch in batches:
                self.tally.out(batch.num_rows)
                yield batch
        self.tally.is_finished = True

    def stop(self) -> None:
        """End the reads."""
        self.tally.end()
        self._rows.close()
        self._segments.close()
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
        self._loader.close()

    def _opened(self, file: DataFile) -> Iterator[Segment]:
        segments = self._loader.segments(file)
        self.tally.opened()
        self.tally.row_groups_skipped = self._loader.row_groups_skipped
        yield from reversed(segments) if self._plan.is_backwards else segments

    def _loaded(self, segment: Segment) -> Batches:
        rows = self._matching(segment)
        self.tally.begun(is_turned=self._plan.is_backwards)
        return backwards(rows) if self._plan.is_backwards else rows

    def _matching(self, segment: Segment) -> Batches:
        plan = self._plan
        for loaded in self._loader.load(segment):
            rows = matching(loaded, plan.predicate)
            self.tally.loaded(loaded.num_rows, rows.num_rows)
            if rows.num_rows:
                columns = [rows.column(name) for name in plan.selection.output]
                yield pa.RecordBatch.from_arrays(columns, schema=plan.schema)


def _threads(ahead: int) -> int:
    return 1 + max(ahead, limits.PREFETCH_ADAPTIVE_MAX)


def _each(stage: Prefetch[Any, Piece]) -> Generator[Piece, None, None]:  # Any: whatever the items are
    try:
        yield from stage
    finally:
        stage.close()
