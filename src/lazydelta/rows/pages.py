"""Pages of rows: so many, then a token with which the next ones come.

Contract: pages one after the other are the ordered scan of the version that the first of them has pinned,
cut; whatever is committed meanwhile, and whether a sidecar comes or goes. A page reads from its place on, not
up to it. `next_token` is None where nothing is left; where the filter asks for rows of files, finding that
out may take long, so that a full page always has a token, and the page after it may be empty.
Files are taken some at a time: without a sidecar the log must be sorted, and the first few cost much less.
"""

from __future__ import annotations

import msgspec
import pyarrow as pa

from lazydelta import limits
from lazydelta.rows.located_rows import LocatedRows
from lazydelta.rows.ordered_files import covers_limit
from lazydelta.rows.page_series import PageSeries, anchor_behind, position_in
from lazydelta.rows.row_scan import RowScan
from lazydelta.scan import ScanReport
from lazydelta.sidecar.order.anchor import Anchor

_MORE_FILES = 8  # times as many as were not enough


class Page(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Some rows of one version, and how to come to those behind them."""

    rows: pa.Table
    next_token: str | None  # None: there are no more
    version: int  # of the table, of every page of the series


class RowPage:
    """One page of rows; `read` once, then `report`."""

    def __init__(self, series: PageSeries) -> None:
        self._series = series
        self._files_max = limits.PAGE_FILES_AT_ONCE
        self._scan = self._some_files(series.anchor, limit=0)
        # One row more tells whether there are more, where that does not take long to find.
        looks_ahead = series.count > 0 and covers_limit(self._scan.files.predicate)
        self._limit = series.count + looks_ahead

    def read(self) -> Page:
        """The rows."""
        series = self._series
        found = self._found()
        is_full = bool(found) and sum(one.num_rows for one in found) == self._limit
        found = _first(found, series.count)
        return Page(
            rows=pa.Table.from_batches([one.rows for one in found], self._scan.schema),
            next_token=self._next_token(found[-1]) if is_full else None,
            version=series.source.snapshot.version,
        )

    def report(self) -> ScanReport:
        """What the page read of the log and of data files; of the last round, where it took more."""
        return self._scan.report()

    def latest(self) -> ScanReport | None:
        """The same, so far."""
        return self._scan.latest()

    def _found(self) -> list[LocatedRows]:
        """The rows of the page and the one behind; round by round, each with more files."""
        found: list[LocatedRows] = []
        missing, anchor, after = self._limit, self._series.anchor, self._series.after
        while missing:
            self._scan = self._some_files(anchor, limit=missing)
            with self._scan.located(after=after) as located:
                more = list(located)
            found += more
            missing -= sum(one.num_rows for one in more)
            files = self._scan.files
            if files.files_emitted < self._files_max:
                break
            assert files.last_file is not None
            assert files.traversal is not None
            anchor, after = anchor_behind(files.last_file, files.traversal), None
            self._files_max *= _MORE_FILES
        return found

    def _some_files(self, anchor: Anchor | None, *, limit: int) -> RowScan:
        files = self._series.files(anchor, limit=self._files_max)
        return RowScan(files, self._series.request.columns, limit=limit)

    def _next_token(self, last: LocatedRows) -> str | None:
        files, place = self._scan.files, last.last_position
        assert files.traversal is not None
        position = position_in(
            files.traversal,
            value=place.order_value,
            raw_path=place.raw_path,
            dv_id=place.dv_id,
            row=place.row_index,
        )
        return self._series.next_token(files, position)


def _first(found: list[LocatedRows], count: int) -> list[LocatedRows]:
    """The first `count` rows."""
    left = []
    for one in found:
        if count:
            left.append(one.slice(0, count))
            count -= left[-1].num_rows
    return left
