"""One run of a scan of rows: the stages, their threads, and how they end.

    ordered files → segments (footers, ahead) → rows (decoded and filtered, ahead) → limit → first row

Contract: nothing is read before the first batch is pulled. `stop` may come from any thread, at any time, more
than once; it does not wait for a read that is under way, and what such a read brings is dropped.
"""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

from lazydelta import limits
from lazydelta.log.file_rows import Batches
from lazydelta.rows.data_file import DataFile
from lazydelta.rows.limit import limited, sliced, without_first
from lazydelta.rows.loader import RowLoader
from lazydelta.rows.located_rows import LocatedRows
from lazydelta.rows.ordered_files import covers_limit
from lazydelta.rows.prefetch import Piece, Prefetch
from lazydelta.rows.row_plan import RowPlan
from lazydelta.rows.row_tally import RowTally
from lazydelta.rows.segment_rows import SegmentRows
from lazydelta.storage import Storage

# What a segment takes while it is loaded, at most: its chunks as they are stored, and a slice of its rows.
_SEGMENT_BYTES = limits.DATA_PRELOAD_BYTES_MAX + limits.DATA_BATCH_BYTES


class RowRun:
    """The stages of one run."""

    def __init__(
        self, plan: RowPlan, files: Generator[DataFile, None, None], storage: Storage, *, version: int
    ) -> None:
        self._plan = plan
        self._io = storage.counters
        self._loader = RowLoader(
            storage, plan.loaded, version=version, predicate=plan.predicate, batch_rows=plan.slice_rows
        )
        self.tally = RowTally(limit=plan.limit, ends_traversal=covers_limit(plan.predicate))
        load = SegmentRows(plan, self._loader, self.tally)
        ahead, is_hurried = plan.prefetch_size, plan.is_hurried
        self._pool = ThreadPoolExecutor(_threads(ahead), "lazydelta-rows") if ahead > 0 else None
        self._segments = Prefetch(files, load.segments, ahead=ahead, pool=self._pool, is_hurried=is_hurried)
        self._rows = Prefetch(
            _each(self._segments),
            load.rows,
            ahead=ahead,
            pool=self._pool,
            size_of=lambda located: located.rows.nbytes,
            weigh=lambda segment: min(segment.size_bytes, _SEGMENT_BYTES),
            is_hurried=is_hurried,
        )

    def batches(self) -> Batches:
        """The rows that come out; whoever pulls must `stop` the run in the end."""
        with closing(self.located()) as stream:
            for located in stream:
                yield located.rows

    def located(self) -> Generator[LocatedRows, None, None]:
        """The same with the place they came from, where the plan asks for it."""
        plan = self._plan
        self.tally.begin(self._io)
        rows = without_first(limited(_each(self._rows), plan.limit), plan.first_row)
        with closing(sliced(rows, plan.batch_rows)) as stream:
            for located in stream:
                self.tally.out(located.num_rows)
                yield located
        self.tally.is_finished = True

    def stop(self) -> None:
        """End the reads."""
        self.tally.end()
        self._rows.close()
        self._segments.close()
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
        self._loader.close()


def _threads(ahead: int) -> int:
    return 1 + max(ahead, limits.PREFETCH_ADAPTIVE_MAX)


def _each(stage: Prefetch[Any, Piece]) -> Generator[Piece, None, None]:  # Any: whatever the items are
    try:
        yield from stage
    finally:
        stage.close()
