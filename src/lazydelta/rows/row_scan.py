"""A scan of rows: the stages put together, each a pull-based iterator of Arrow batches.

    OrderedFileIterator → RowLoader → ResidualFilter → Limit → Materializer

Contract: no stage both filters and limits, none reorders; whoever stops pulling stops the reads below.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

import msgspec
import pyarrow as pa

from lazydelta import limits
from lazydelta.errors import InvalidRequestError
from lazydelta.memory_share import MemoryShare
from lazydelta.rows.iterator import LazyRecordBatchIterator
from lazydelta.rows.located_rows import LocatedRows, RowPosition
from lazydelta.rows.ordered_files import OrderedFileIterator
from lazydelta.rows.row_plan import RowPlan
from lazydelta.rows.row_run import RowRun
from lazydelta.rows.row_tally import RowTally
from lazydelta.rows.selection import Selection, select
from lazydelta.scan import FileScan, ScanReport
from lazydelta.scan.config import ScanOrder, check_number

RowRange = tuple[int | None, int | None]


class RowScan:
    """The rows of the files of a scan; can be run again, each run reads anew."""

    def __init__(
        self,
        files: FileScan,
        columns: Sequence[str] | None = None,
        *,
        limit: int | None = None,
        row_range: RowRange | None = None,
    ) -> None:
        """`row_range` (first, end): of the rows that match, in the scan's order; the limit counts from 0."""
        self.files = files
        self.first_row, end = _checked_range(row_range)
        self.limit = limit if end is None else min(end, limit) if limit is not None else end
        self.selection: Selection = select(
            files.snapshot, columns, files.predicate, time_zone=files.config.time_zone
        )
        self.schema: pa.Schema = self.selection.schema  # of what comes out
        self._tally: RowTally | None = None

    def batches(
        self, *, prefetch_size: int = limits.PREFETCH_SEGMENTS, lazy: bool = True, batch_rows_min: int = 0
    ) -> LazyRecordBatchIterator:
        """The rows, at most `batch_size` at a time, or `batch_rows_min` where that is more; empty batches are
        left out.

        `prefetch_size` row groups are read ahead while the consumer works, 0 reads none. With `lazy=False`
        all rows are read before this returns, in this thread, one after the other.
        """
        if not isinstance(lazy, bool):
            raise InvalidRequestError(f"lazy is {lazy!r}", "batches()", "give True or False")
        check_number("prefetch_size", prefetch_size, 0, where="batches()")
        if prefetch_size is None or prefetch_size > limits.PREFETCH_SEGMENTS_MAX:
            raise InvalidRequestError(
                f"prefetch_size is {prefetch_size!r}",
                "batches()",
                f"give a whole number from 0 to {limits.PREFETCH_SEGMENTS_MAX}",
            )
        where = f"{self.files.snapshot.storage.root} @ {self.files.snapshot.version}"
        run = self._run(prefetch_size if lazy else 0, batch_rows_min=batch_rows_min)
        found = LazyRecordBatchIterator(self.schema, run.batches(), where=where, stop=run.stop)
        if lazy:
            return found
        with found:
            return LazyRecordBatchIterator.of_collected(self.schema, list(found), where=where)

    @contextmanager
    def located(
        self, *, after: RowPosition | None = None, prefetch_size: int = limits.PREFETCH_SEGMENTS
    ) -> Iterator[Iterator[LocatedRows]]:
        """The rows of an ordered scan with their places, those after an anchor; leaving it stops the reads.

        The limit counts from the anchor on. One item is of one file, and at most `batch_size` rows long.
        """
        assert self.files.config.order is not None, "only an ordered scan has places to go on from"
        run = self._run(prefetch_size, is_located=True, after=after)
        try:
            with closing(run.located()) as stream:
                yield stream
        finally:
            run.stop()

    def stop(self) -> None:
        """End the walk through the files of the latest run, from any thread; its iterator ends the rest."""
        self.files.stop()

    def report(self) -> ScanReport:
        """What the latest run did, of the log and of data files; runs it once if none has begun."""
        if self._tally is None:
            with self.batches() as batches:
                for _ in batches:
                    pass
        assert self._tally is not None
        return msgspec.structs.replace(self.files.report(), rows=self._tally.report())

    def latest(self) -> ScanReport | None:
        """What the latest run did so far; None before the first."""
        report = self.files.latest()
        if report is None or self._tally is None:
            return report
        return msgspec.structs.replace(report, rows=self._tally.report())

    def _run(
        self,
        prefetch_size: int,
        *,
        is_located: bool = False,
        after: RowPosition | None = None,
        batch_rows_min: int = 0,
    ) -> RowRun:
        snapshot, config = self.files.snapshot, self.files.config
        plan = RowPlan(
            selection=self.selection,
            schema=self.schema,
            predicate=self.files.predicate,
            first_row=self.first_row,
            limit=self.limit,
            is_backwards=config.order == ScanOrder.DESC,
            batch_rows=max(config.batch_size, batch_rows_min),
            prefetch_size=prefetch_size,
            is_located=is_located,
            after=after,
        )
        share = MemoryShare()
        run = RowRun(
            plan,
            iter(OrderedFileIterator(self.files, row_limit=self.limit, after=after, share=share)),
            snapshot.storage,
            files_share=share,
            version=snapshot.version,
            timeout_seconds=config.scan_timeout_seconds,
        )
        self._tally = run.tally
        return run


def _checked_range(row_range: RowRange | None) -> tuple[int, int | None]:
    """First row and end, or an error; None on either side means no bound."""
    try:
        first, end = (None, None) if row_range is None else row_range
    except (TypeError, ValueError):
        first = end = -1
    is_sound = all(
        side is None or (isinstance(side, int) and not isinstance(side, bool) and side >= 0)
        for side in (first, end)
    )
    if not is_sound or (first is not None and end is not None and end < first):
        raise InvalidRequestError(
            f"row_range is {row_range!r}",
            "batches()",
            "give (first, end), whole numbers with 0 <= first <= end",
        )
    return first or 0, end
