"""A scan of rows: the stages put together, each a pull-based iterator of Arrow batches.

    OrderedFileIterator → RowLoader → ResidualFilter → Limit → Materializer

Contract: no stage both filters and limits, none reorders; whoever stops pulling stops the reads below.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lazydelta import limits
from lazydelta.errors import InvalidRequestError
from lazydelta.rows.iterator import LazyRecordBatchIterator
from lazydelta.rows.loader import RowLoader
from lazydelta.rows.ordered_files import ordered_files
from lazydelta.rows.row_run import RowPlan, RowRun
from lazydelta.rows.selection import Selection, select
from lazydelta.scan import FileScan
from lazydelta.scan.config import check_number
from lazydelta.storage import Deadline


class RowScan:
    """The rows of the files of a scan; can be run again, each run reads anew."""

    def __init__(
        self, files: FileScan, columns: Sequence[str] | None = None, *, limit: int | None = None
    ) -> None:
        self.files = files
        self.limit = limit
        self.selection: Selection = select(
            files.snapshot, columns, files.predicate, time_zone=files.config.time_zone
        )
        self.schema: pa.Schema = self.selection.schema  # of what comes out

    def batches(
        self, *, prefetch_size: int = limits.PREFETCH_SEGMENTS, lazy: bool = True
    ) -> LazyRecordBatchIterator:
        """The rows, at most `batch_size` at a time; empty batches are left out.

        `prefetch_size` row groups are read ahead while the consumer works, 0 reads none. With `lazy=False`
        all rows are read before this returns, in this thread, one after the other.
        """
        check_number("prefetch_size", prefetch_size, 0, where="batches()")
        if prefetch_size is None or prefetch_size > limits.PREFETCH_SEGMENTS_MAX:
            raise InvalidRequestError(
                f"prefetch_size is {prefetch_size!r}",
                "batches()",
                f"give a whole number from 0 to {limits.PREFETCH_SEGMENTS_MAX}",
            )
        where = f"{self.files.snapshot.storage.root} @ {self.files.snapshot.version}"
        run = self._run(prefetch_size if lazy else 0)
        found = LazyRecordBatchIterator(self.schema, run.batches(), where=where, stop=run.stop)
        if lazy:
            return found
        with found:
            return LazyRecordBatchIterator.of_collected(self.schema, list(found), where=where)

    def _run(self, prefetch_size: int) -> RowRun:
        snapshot, config = self.files.snapshot, self.files.config
        plan = RowPlan(
            selection=self.selection,
            schema=self.schema,
            predicate=self.files.predicate,
            limit=self.limit,
            batch_rows=config.batch_size,
            prefetch_size=prefetch_size,
        )
        loader = RowLoader(
            snapshot.storage.scoped(deadline=Deadline.after(config.scan_timeout_seconds)),
            self.selection,
            version=snapshot.version,
            predicate=self.files.predicate,
            batch_rows=plan.slice_rows,
        )
        return RowRun(plan, ordered_files(self.files), loader)
