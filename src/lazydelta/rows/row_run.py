"""One run of a scan of rows: the stages, their threads, and how they end.

    ordered files → segments (footers, ahead) → rows (decoded and filtered, ahead) → limit → first row

Contract: nothing is read before the first batch is pulled. `stop` may come from any thread, at any time, more
than once; it does not wait for a read that is under way, and what such a read brings is dropped.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Lock
from typing import Any

import msgspec

from lazydelta import limits
from lazydelta.log.file_rows import Batches
from lazydelta.memory_share import MemoryShare
from lazydelta.rows.data_file import DataFile
from lazydelta.rows.limit import limited, sliced, without_first
from lazydelta.rows.loader import RowLoader
from lazydelta.rows.located_rows import LocatedRows
from lazydelta.rows.ordered_files import covers_limit
from lazydelta.rows.prefetch import Piece, Prefetch, PrefetchClosedError
from lazydelta.rows.row_plan import RowPlan
from lazydelta.rows.row_tally import RowTally
from lazydelta.rows.row_threads import give_threads, take_threads
from lazydelta.rows.segment import Segment
from lazydelta.rows.segment_rows import SegmentRows
from lazydelta.storage import Deadline, Storage
from lazydelta.storage.local import LocalStorage

# What a segment takes while it is loaded, at most: its chunks as they are stored, and a slice of its rows.
_SEGMENT_BYTES = limits.DATA_PRELOAD_BYTES_MAX + limits.DATA_BATCH_BYTES


class _Stages(msgspec.Struct, frozen=True, eq=False):
    """What reads, once something is pulled."""

    pool: ThreadPoolExecutor | None
    threads: int  # of the pool
    share: MemoryShare
    loader: RowLoader
    segments: Prefetch[DataFile, Segment]
    rows: Prefetch[Segment, LocatedRows]


class RowRun:
    """The stages of one run."""

    def __init__(
        self,
        plan: RowPlan,
        files: Generator[DataFile, None, None],
        storage: Storage,
        *,
        version: int,
        timeout_seconds: float,
        files_share: MemoryShare,
    ) -> None:
        """`timeout_seconds`: after the first pull nothing is asked of the store later than this; 0: ever.

        `files_share`: of memory, that the scan of files waits with.
        """
        self._plan = plan
        self._files = files
        self._storage = storage
        self._version = version
        self._timeout_seconds = timeout_seconds
        self._files_share = files_share
        self._lock = Lock()
        self._stages: _Stages | None = None
        self._is_stopped = False
        self.tally = RowTally(limit=plan.limit, ends_traversal=covers_limit(plan.predicate))

    def batches(self) -> Batches:
        """The rows that come out; whoever pulls must `stop` the run in the end."""
        with closing(self.located()) as stream:
            for located in stream:
                yield located.rows

    def located(self) -> Generator[LocatedRows, None, None]:
        """The same with the place they came from, where the plan asks for it."""
        plan, stages = self._plan, self._begun()
        rows = without_first(limited(_each(stages.rows), plan.limit), plan.first_row)
        with closing(sliced(rows, plan.batch_rows)) as stream:
            for located in stream:
                self.tally.out(located.num_rows)
                yield located
        self.tally.is_finished = True

    def stop(self) -> None:
        """End the reads."""
        with self._lock:
            is_again, self._is_stopped = self._is_stopped, True
            stages = self._stages
        self.tally.end()
        self._files_share.stop_waiting()
        if stages is None:
            return
        stages.share.stop_waiting()  # before a stage is closed that somebody waits in
        stages.rows.close()
        stages.segments.close()
        if stages.pool is not None:
            stages.pool.shutdown(wait=False, cancel_futures=True)
        stages.loader.close()
        stages.share.close()
        if not is_again:
            give_threads(stages.threads)

    def _begun(self) -> _Stages:
        with self._lock:
            if self._is_stopped:
                raise PrefetchClosedError
            deadline = Deadline.after(self._timeout_seconds)
            storage = self._storage.scoped(deadline)
            self.tally.share.wait_until(
                deadline.at, timeout_seconds=deadline.after_seconds, where=storage.root
            )
            self.tally.begin(storage.counters)
            self._stages = self._made(storage)
            return self._stages

    def _made(self, storage: Storage) -> _Stages:
        plan = self._plan
        ahead, is_hurried = plan.prefetch_size, plan.is_hurried
        loader = RowLoader(
            storage,
            plan.loaded,
            version=self._version,
            predicate=plan.predicate,
            batch_rows=plan.slice_rows,
            is_hurried=is_hurried,
        )
        load = SegmentRows(plan, loader, self.tally)
        threads = take_threads(_threads(ahead, storage)) if ahead > 0 else 0
        pool = ThreadPoolExecutor(threads, "lazydelta-rows") if threads else None
        share = self.tally.share
        share.begin()
        segments = Prefetch(
            self._files,
            load.segments,
            ahead=0 if isinstance(storage, LocalStorage) else ahead,  # a disk answers at once
            pool=pool,
            weigh=lambda file: file.size if loader.reads_whole(file) else 0,
            is_hurried=is_hurried,
            share=share,
        )
        rows = Prefetch(
            _each(segments),
            load.rows,
            ahead=ahead,
            pool=pool,
            size_of=lambda located: located.rows.nbytes,
            weigh=lambda segment: min(segment.size_bytes, _SEGMENT_BYTES),
            is_hurried=is_hurried,
            share=share,
        )
        return _Stages(pool, threads, share, loader, segments, rows)


def _threads(ahead: int, storage: Storage) -> int:
    """A store is waited for by many; a disk answers at once, and more threads than cores only get in each
    other's way.
    """
    if isinstance(storage, LocalStorage):
        return max(ahead, os.cpu_count() or 1)
    return 1 + max(ahead, limits.PREFETCH_ADAPTIVE_MAX)


def _each(stage: Prefetch[Any, Piece]) -> Generator[Piece, None, None]:  # Any: whatever the items are
    try:
        yield from stage
    finally:
        stage.close()
