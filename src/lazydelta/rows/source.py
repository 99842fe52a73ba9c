"""One pinned version of a table as engines ask for it: files or rows, by filter, columns, limit and order.

Why: SQL, data frames and servers all need the same few things of a table, and none of its public face.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pyarrow as pa

from lazydelta.log.snapshot import Snapshot
from lazydelta.predicate import parse_where
from lazydelta.protocol.schema import arrow_schema
from lazydelta.rows.date_range import DateRange, date_filter
from lazydelta.rows.row_scan import RowRange, RowScan
from lazydelta.scan import FileScan, LazyScanConfig
from lazydelta.scan.table_memory import TableMemory
from lazydelta.sidecar.find.discover import SidecarAwareProvider


class RowSource(msgspec.Struct, frozen=True, eq=False):
    """A snapshot with what reading it needs."""

    snapshot: Snapshot
    config: LazyScanConfig  # of every scan, unless the scan says otherwise
    sidecar: SidecarAwareProvider | None = None
    memory: TableMemory | None = None

    @property
    def schema(self) -> pa.Schema:
        """The columns, as Arrow."""
        return arrow_schema(self.snapshot.schema)

    def with_config(self, **changes: Any) -> RowSource:  # Any: fields of LazyScanConfig
        """The same with another configuration."""
        return msgspec.structs.replace(self, config=msgspec.structs.replace(self.config, **changes))

    def within(self, date_range: DateRange) -> RowSource:
        """The same with a filter on the table's time column, besides the one that is there."""
        wanted, before = date_filter(self.snapshot, date_range), self.config.predicate
        if wanted is None:
            return self
        return self.with_config(predicate=wanted if before is None else parse_where(before) & wanted)

    def files(self) -> FileScan:
        """The live files that might match; the limit counts files."""
        return FileScan(self.snapshot, self.config, self.sidecar, self.memory)

    def rows(self, columns: Sequence[str] | None = None, *, row_range: RowRange | None = None) -> RowScan:
        """The rows that match; the limit counts rows. With an order, files come by it, and the rows of a
        file as they lie in it; descending is that reversed, row by row.
        """
        limit = self.config.limit
        files = FileScan(
            self.snapshot,
            msgspec.structs.replace(self.config, limit=None),
            self.sidecar,
            self.memory,
            is_hurried=limit is not None or row_range is not None,
        )
        return RowScan(files, columns, limit=limit, row_range=row_range)
