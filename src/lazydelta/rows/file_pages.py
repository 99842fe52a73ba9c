"""Pages of live files: as pages of rows, a file where those have a row.

Contract: the files that might match, in the order of the series; one more than asked for is looked up, so
that `next_token` is None exactly where nothing is left.
"""

from __future__ import annotations

from contextlib import closing

import msgspec

from lazydelta.log.file_rows import DEFAULT_COLUMNS
from lazydelta.rows.page_series import PageSeries, position_of
from lazydelta.scan import DeltaFile, FileScan, ScanReport, files_of


class FilePage(msgspec.Struct, frozen=True, kw_only=True):
    """Some live files of one version, and how to come to those behind them."""

    files: tuple[DeltaFile, ...]
    next_token: str | None  # None: there are no more
    version: int


class FilesOfPage:
    """One page of files; `read` once, then `report`."""

    def __init__(self, series: PageSeries) -> None:
        self._series = series
        count = series.count
        self._scan: FileScan = series.files(series.anchor, limit=count + 1 if count else 0)

    def read(self) -> FilePage:
        """The files."""
        missing, rows, is_more = self._series.count, [], False
        with closing(self._scan.batches(DEFAULT_COLUMNS, with_keys=True)) as batches:
            for batch in batches:
                is_more |= batch.num_rows > missing
                if missing:
                    rows.append(batch.slice(0, missing))
                    missing -= rows[-1].num_rows
        token: str | None = None
        if is_more:
            assert self._scan.traversal is not None
            last = rows[-1].slice(rows[-1].num_rows - 1)
            token = self._series.next_token(self._scan, position_of(last, self._scan.traversal))
        return FilePage(
            files=tuple(file for batch in rows for file in files_of(batch)),
            next_token=token,
            version=self._series.source.snapshot.version,
        )

    def report(self) -> ScanReport:
        """What the page read."""
        return self._scan.report()

    def latest(self) -> ScanReport | None:
        """The same, so far."""
        return self._scan.latest()
