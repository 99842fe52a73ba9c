"""Pages of live files: as pages of rows, a file where those have a row.

Contract: the files that might match, in the order of the series; one more than asked for is looked up, so
that `next_token` is None exactly where nothing is left.
"""

from __future__ import annotations

from contextlib import closing

import msgspec
import pyarrow as pa

from lazydelta.log.file_rows import DEFAULT_COLUMNS, RAW_PATH
from lazydelta.rows.page_series import PageSeries
from lazydelta.scan import DeltaFile, FileScan, ScanReport, files_of
from lazydelta.sidecar.order.anchor import dv_ids, plain_values
from lazydelta.sidecar.read.traversal import ORDER_VALUE


class FilePage(msgspec.Struct, frozen=True, kw_only=True):
    """Some live files of one version, and how to come to those behind them."""

    files: tuple[DeltaFile, ...]
    next_token: str | None  # None: there are no more
    version: int


class FilesOfPage:
    """One page of files; `read` once, then `report`."""

    def __init__(self, series: PageSeries) -> None:
        self._series = series
        self._scan: FileScan = series.files(limit=series.count + 1)

    def read(self) -> FilePage:
        """The files."""
        series = self._series
        with closing(self._scan.batches(DEFAULT_COLUMNS, with_keys=True)) as batches:
            found = list(batches)
        missing, rows = series.count, []
        for batch in found:
            rows.append(batch.slice(0, missing))
            missing -= rows[-1].num_rows
        is_more = sum(batch.num_rows for batch in found) > series.count
        filled = [batch for batch in rows if batch.num_rows]
        return FilePage(
            files=tuple(file for batch in filled for file in files_of(batch)),
            next_token=self._next_token(filled[-1].slice(filled[-1].num_rows - 1)) if is_more else None,
            version=series.source.snapshot.version,
        )

    def report(self) -> ScanReport:
        """What the page read."""
        return self._scan.report()

    def latest(self) -> ScanReport | None:
        """The same."""
        return self._scan.latest()

    def _next_token(self, last: pa.RecordBatch) -> str | None:
        """A token that names this file."""
        has_value = ORDER_VALUE in last.schema.names
        value = plain_values(last.column(ORDER_VALUE))[0] if has_value else None
        key = (value, last.column(RAW_PATH)[0].as_py(), dv_ids(last)[0])
        return self._series.next_token(self._scan, self._series.count, key, None)
