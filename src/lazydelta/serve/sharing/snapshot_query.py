"""The files of one version as lines, while they are discovered.

Contract: files that hints rule out are left out, nothing else; a limit ends the lines once the files so far
certainly have that many rows that the client keeps. Without pages, files come as the scan finds them; with
pages, in an order of the scan's own, so that a page goes on exactly behind the last file of the one before,
at its version. The memory is that of one batch of the scan and one slice of lines.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import closing

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lazydelta import limits
from lazydelta.log.file_rows import FILE_COLUMNS
from lazydelta.predicate import FileFacts
from lazydelta.protocol.partition_values import raw_partition_column
from lazydelta.rows.page_series import PageRequest, PageSettings, open_series, position_of
from lazydelta.rows.source import RowSource
from lazydelta.scan import FileScan
from lazydelta.scan.record_counts import NUM_RECORDS
from lazydelta.serve.admitted import Admitted
from lazydelta.serve.sharing.hints import Hints
from lazydelta.serve.sharing.snapshot_lines import SnapshotLines
from lazydelta.storage import StoppedError

COLUMNS = (*FILE_COLUMNS, NUM_RECORDS)


class PageState(msgspec.Struct, frozen=True, array_like=True):
    """Where the next page goes on."""

    position: str  # a token of the scan's own pages
    rows_missing: int | None  # of the limit


class SnapshotQuery(msgspec.Struct, kw_only=True, eq=False):
    """One question for the files of a version; its end is known once `lines` has ended."""

    source: RowSource  # with the filter of the hints
    hints: Hints
    limit: int | None  # rows that the client wants
    max_files: int | None = None
    page: PageState | None = None  # that this page goes on from
    next_page: PageState | None = None  # set at the end

    def lines(self, writer: SnapshotLines, admitted: Admitted) -> Generator[bytes, None, None]:
        """The lines of the files."""
        missing = self._rows_wanted()
        if missing == 0:
            return
        try:
            with closing(self._batches(admitted)) as batches:
                for batch in batches:
                    kept, missing = self._within(batch, missing)
                    for start in range(0, kept.num_rows, limits.SERVE_LINES_ROWS):
                        part = kept.slice(start, limits.SERVE_LINES_ROWS)
                        admitted.gave(part.num_rows, is_limited=False)
                        yield writer.lines(part)
                    if missing == 0:
                        break
        except StoppedError:
            admitted.check()  # that is why
            raise
        if self.next_page is not None:
            self.next_page = None if missing == 0 else PageState(self.next_page.position, missing)

    def _batches(self, admitted: Admitted) -> Generator[pa.RecordBatch, None, None]:
        if self.max_files is not None:
            return self._page_batches(self.max_files, admitted)
        source = self.source
        is_hurried = self._rows_wanted() is not None
        scan = FileScan(source.snapshot, source.config, source.sidecar, source.memory, is_hurried=is_hurried)
        admitted.when_stopped(scan.stop)
        return scan.batches(COLUMNS)

    def _page_batches(self, max_files: int, admitted: Admitted) -> Generator[pa.RecordBatch, None, None]:
        """One page, and whether there is more behind it."""
        count = min(max_files, limits.PAGE_COUNT_MAX)
        request = PageRequest(
            what="files", count=count, after=None if self.page is None else self.page.position
        )
        series = open_series(self.source, request, PageSettings())
        scan = series.files(series.anchor, limit=count + 1)
        admitted.when_stopped(scan.stop)
        missing, last = count, None
        with closing(scan.batches(COLUMNS, with_keys=True)) as batches:
            for batch in batches:
                if not missing:
                    assert last is not None and scan.traversal is not None
                    token = series.next_token(scan, position_of(last, scan.traversal))
                    self.next_page = None if token is None else PageState(token, None)
                    return
                page = batch.slice(0, missing)
                missing -= page.num_rows
                last = page.slice(page.num_rows - 1)
                if page.num_rows < batch.num_rows:
                    assert scan.traversal is not None
                    token = series.next_token(scan, position_of(last, scan.traversal))
                    self.next_page = None if token is None else PageState(token, None)
                yield page

    def _rows_wanted(self) -> int | None:
        """How many rows end the lines; None where the client may drop rows that nobody can count here."""
        if not self.hints.is_whole:
            return None
        return self.limit if self.page is None else self.page.rows_missing

    def _within(self, batch: pa.RecordBatch, missing: int | None) -> tuple[pa.RecordBatch, int | None]:
        """The files that the limit still needs, and how many rows are missing behind them."""
        if missing is None:
            return batch, None
        totals = np.cumsum(np.where(self._is_certain(batch), _live_rows(batch), 0))
        enough = np.flatnonzero(totals >= missing)
        if len(enough) == 0:
            return batch, missing - (int(totals[-1]) if len(totals) else 0)
        return batch.slice(0, int(enough[0]) + 1), 0

    def _is_certain(self, batch: pa.RecordBatch) -> npt.NDArray[np.bool_]:
        """Files of which the client keeps every row: by partition values alone, where there is a filter."""
        predicate = FileScan(self.source.snapshot, self.source.config).predicate
        if predicate is None:
            return np.ones(batch.num_rows, np.bool_)
        if not predicate.decided_by_partitions:
            return np.zeros(batch.num_rows, np.bool_)
        names = {field.physical_name: field.name for field in self.source.snapshot.schema.fields}
        values = batch.column("partition_values")
        partitions = {
            name: raw_partition_column(values, names.get(name, name)) for name in predicate.partition_columns
        }
        return predicate.must_match(FileFacts(row_count=batch.num_rows, partition_values=partitions))


def physical_names(source: RowSource) -> Mapping[str, str]:
    """Name of a column -> as files and the log have it, where they differ."""
    fields = source.snapshot.schema.fields
    return {field.name: field.physical_name for field in fields if field.physical_name != field.name}


def _live_rows(batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
    """Rows that are certainly there, by the log; 0 where it does not say."""
    counts = pc.fill_null(batch.column(NUM_RECORDS), 0)
    deleted = pc.fill_null(pc.struct_field(batch.column("deletion_vector"), "cardinality"), 0)
    live: npt.NDArray[np.int64] = np.maximum(np.asarray(counts, np.int64) - np.asarray(deleted, np.int64), 0)
    return live
