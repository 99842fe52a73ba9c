"""Scan: what a table hands out to be pulled, as files, rows, pages or frames.

Contract: nothing is read before the first file or row is asked for. Everything belongs to the version that
the table has pinned.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Generator, Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import Any

import pyarrow as pa

from lazydelta import limits
from lazydelta.log.file_rows import DEFAULT_COLUMNS, Batches
from lazydelta.redaction import HIDDEN, redacted
from lazydelta.rows.date_range import DateRange
from lazydelta.rows.estimate import ScanEstimate, estimate
from lazydelta.rows.file_pages import FilePage, FilesOfPage
from lazydelta.rows.iterator import LazyRecordBatchIterator
from lazydelta.rows.page_series import PageRequest, PageSeries, PageSettings, open_series
from lazydelta.rows.pages import Page, RowPage
from lazydelta.rows.row_scan import RowRange, RowScan
from lazydelta.rows.selection import column_list
from lazydelta.rows.source import RowSource
from lazydelta.scan import DeltaFile, ScanReport, files_of
from lazydelta.scan.config import ScanOrder
from lazydelta.storage.own_thread import OwnThread

_FILE_COLUMNS = (*DEFAULT_COLUMNS, "stats")
_FILTER_CHARS_MAX = 200  # that `repr` shows


class Scan:
    """A lazy scan: nothing is read before the first file or row is pulled.

    The limit counts files where files are asked for, and rows where rows are.
    """

    def __init__(self, source: RowSource, pages: PageSettings | None = None) -> None:
        self._source = source
        self._scan = source.files()
        self._pages = pages or PageSettings()
        self._rows: RowScan | RowPage | FilesOfPage | None = None  # the latest run, unless of files alone

    @property
    def source(self) -> RowSource:
        """What engines read."""
        return self._source

    def files(self, *, with_stats: bool = False) -> Generator[DeltaFile, None, None]:
        """The live files that might match, as objects; `stats` as the log has it, in JSON, or None."""
        with closing(self.file_batches(_FILE_COLUMNS if with_stats else None)) as batches:
            for batch in batches:
                yield from files_of(batch)

    async def files_async(self, *, with_stats: bool = False) -> AsyncIterator[DeltaFile]:
        """The same for an event loop: the log is read in a worker thread."""
        batches = self.file_batches(_FILE_COLUMNS if with_stats else None)
        beside = partial(asyncio.get_running_loop().run_in_executor, OwnThread("lazydelta-async"))
        pull: asyncio.Future[pa.RecordBatch | None] | None = None
        try:
            while True:
                pull = beside(next, batches, None)
                batch = await asyncio.shield(pull)
                if batch is None:
                    return
                for file in files_of(batch):
                    yield file
        finally:
            if pull is not None and not pull.done():  # cancelled: the thread must let go before the close
                await asyncio.wait([pull])
            await beside(batches.close)

    def file_batches(self, columns: Sequence[str] | None = None) -> Batches:
        """The same as Arrow, without an object per file; `columns` chooses among the file's attributes."""
        self._rows = None
        return self._scan.batches(DEFAULT_COLUMNS if columns is None else columns)

    def batches(
        self,
        columns: Sequence[str] | None = None,
        *,
        date_range: DateRange | None = None,
        row_range: RowRange | None = None,
        prefetch_size: int = limits.PREFETCH_SEGMENTS,
        lazy: bool = True,
    ) -> LazyRecordBatchIterator:
        """The rows that match, as Arrow batches; `columns` chooses and orders them, None means all.

        `date_range` (start, end) bounds the table's time column, both ends included. `row_range` (first, end)
        takes rows by their place among those that match. `prefetch_size` row groups are read while the
        consumer works; `lazy=False` reads everything before it returns.
        """
        source = self._source if date_range is None else self._source.within(date_range)
        rows = source.rows(column_list(columns), row_range=row_range)
        self._rows = rows
        return rows.batches(prefetch_size=prefetch_size, lazy=lazy)

    def to_arrow(self, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows that match, in memory."""
        return self.batches(columns).read_all()

    def to_pandas(self, columns: Sequence[str] | None = None, *, types_mapper: Any = None) -> Any:
        """The rows that match, as a `pandas.DataFrame`; `types_mapper` as pyarrow's `to_pandas` takes it."""
        from lazydelta.engines.frames import pandas_frame

        return pandas_frame(self.batches(columns), types_mapper=types_mapper)

    def to_polars(self, columns: Sequence[str] | None = None) -> Any:  # Any: Polars is an extra
        """The rows that match, as a `polars.LazyFrame`: what it filters and selects reaches the scan."""
        from lazydelta.engines.frames import polars_frame

        return polars_frame(self._source, columns)

    def page(
        self,
        rows: int,
        *,
        after: str | None = None,
        order: ScanOrder | str | None = None,
        columns: Sequence[str] | None = None,
    ) -> Page:
        """The next `rows` rows that match, in order ("asc", unless the scan or `order` says "desc").

        `after` is `next_token` of the page before: the same query goes on where that one ended, at the
        version that the first page had, whatever this table's version is.
        """
        page = RowPage(self._series("rows", rows, after, order, columns))
        self._rows = page
        return page.read()

    def file_page(
        self, files: int, *, after: str | None = None, order: ScanOrder | str | None = None
    ) -> FilePage:
        """The next `files` live files that might match; otherwise as `page`."""
        page = FilesOfPage(self._series("files", files, after, order, None))
        self._rows = page
        return page.read()

    def explain(self) -> ScanReport:
        """What the latest run read and skipped, and why; runs the scan of files once if none has begun."""
        return self._scan.report() if self._rows is None else self._rows.report()

    def estimate(self) -> ScanEstimate:
        """Files, bytes and rows to expect, by what the latest run has read so far; reads nothing."""
        latest = self._scan.latest() if self._rows is None else self._rows.latest()
        is_filtered = self._source.config.predicate is not None
        return estimate(self._source.snapshot, latest, is_filtered=is_filtered)

    def __iter__(self) -> Iterator[DeltaFile]:
        return self.files()

    def __repr__(self) -> str:
        config, snapshot = self._source.config, self._source.snapshot
        where = repr(config.predicate)
        where = where if len(where) <= _FILTER_CHARS_MAX else f"{where[:_FILTER_CHARS_MAX]}{HIDDEN}"
        told = "" if config.predicate is None else f", where={where}"
        told += "" if config.limit is None else f", limit={config.limit}"
        told += "" if config.order is None else f", order={str(config.order)!r}"
        return redacted(f"lazydelta.Scan({snapshot.storage.root!r}, version={snapshot.version}{told})")

    def _series(
        self,
        what: str,
        count: int,
        after: str | None,
        order: ScanOrder | str | None,
        columns: Sequence[str] | None,
    ) -> PageSeries:
        request = PageRequest(what=what, count=count, after=after, order=order, columns=column_list(columns))
        return open_series(self._source, request, self._pages)
