"""Pages of rows: so many, then a token with which the next ones come.

Contract: pages one after the other are the ordered scan of the version that the first of them has pinned,
cut; whatever is committed meanwhile, and whether a sidecar comes or goes. A page reads from its place on, not
up to it. `next_token` is None where nothing is left; where the filter asks for rows of files, finding that
out may take long, so that a full page always has a token, and the page after it may be empty.
"""

from __future__ import annotations

import msgspec
import pyarrow as pa

from lazydelta.rows.located_rows import LocatedRows
from lazydelta.rows.ordered_files import covers_limit
from lazydelta.rows.page_series import PageSeries
from lazydelta.rows.row_scan import RowScan
from lazydelta.scan import ScanReport


class Page(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Some rows of one version, and how to come to those behind them."""

    rows: pa.Table
    next_token: str | None  # None: there are no more
    version: int  # of the table, of every page of the series


class RowPage:
    """One page of rows; `read` once, then `report`."""

    def __init__(self, series: PageSeries) -> None:
        self._series = series
        files = series.files(limit=None)
        # One row more tells whether there are more, where that does not take long to find.
        self._limit = series.count + covers_limit(files.predicate)
        self._scan = RowScan(files, series.request.columns, limit=self._limit)

    def read(self) -> Page:
        """The rows."""
        series = self._series
        with self._scan.located(after=series.after) as located:
            found = list(located)
        is_full = sum(one.num_rows for one in found) == self._limit
        found = _first(found, series.count)
        return Page(
            rows=pa.Table.from_batches([one.rows for one in found], self._scan.schema),
            next_token=self._next_token(found[-1]) if is_full else None,
            version=series.source.snapshot.version,
        )

    def report(self) -> ScanReport:
        """What the page read, of the log and of data files."""
        return self._scan.report()

    def latest(self) -> ScanReport | None:
        """The same, so far."""
        return self._scan.latest()

    def _next_token(self, last: LocatedRows) -> str | None:
        place = last.last_position
        key = (place.order_value, place.raw_path, place.dv_id or "")
        return self._series.next_token(self._scan.files, self._series.count, key, place.row_index)


def _first(found: list[LocatedRows], count: int) -> list[LocatedRows]:
    """The first `count` rows."""
    left = []
    for one in found:
        if count:
            left.append(one.slice(0, count))
            count -= left[-1].num_rows
    return left
