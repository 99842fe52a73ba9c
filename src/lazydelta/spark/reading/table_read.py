"""One pinned version of a table and what is asked of it: the side of a read that looks at the log.

Contract: the version is pinned when the DataFrame is made. A table that was replaced since, so that the
version is another table's, is an error. Nothing here runs on executors.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from lazydelta import limits
from lazydelta.engines.partition_rows import all_rows_match
from lazydelta.errors import InvalidRequestError, VersionNotFoundError
from lazydelta.predicate import BoundPredicate
from lazydelta.rows.data_file import DATA_FILE_COLUMNS
from lazydelta.rows.ordered_files import covers_limit
from lazydelta.rows.row_plan import RowPlan
from lazydelta.rows.row_scan import RowScan
from lazydelta.rows.source import RowSource
from lazydelta.scan.record_counts import NUM_RECORDS
from lazydelta.settings import Settings
from lazydelta.spark.reading.options import ReadOptions
from lazydelta.spark.reading.partition_rows import RowsOfPartition
from lazydelta.spark.reading.plan_files import PartitionSizing
from lazydelta.spark.reading.time_zones import moment
from lazydelta.table import open as open_table


class Pin(msgspec.Struct, frozen=True, kw_only=True):
    """Which table at which version."""

    version: int
    table_id: str


class TableRead(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A table that was opened for a read."""

    url: str
    settings: Settings
    options: ReadOptions
    source: RowSource
    rows: RowScan

    @property
    def pin(self) -> Pin:
        """What to open again."""
        snapshot = self.source.snapshot
        return Pin(version=snapshot.version, table_id=snapshot.state.metadata.id)

    @property
    def schema_string(self) -> str:
        """The table's schema as the log has it."""
        return self.source.snapshot.state.metadata.schema_string or '{"type":"struct","fields":[]}'

    @property
    def root(self) -> str:
        """The table's address, to be shown."""
        return self.source.snapshot.storage.root

    @property
    def sizing(self) -> PartitionSizing:
        """How large partitions may be."""
        return PartitionSizing(
            partition_bytes=self.options.maxpartitionbytes,
            open_cost_bytes=self.options.opencostbytes,
            partitions_min=self.options.minpartitions or os.cpu_count() or 1,
        )

    def row_limit(self) -> int | None:
        """Rows that a partition may give at the most."""
        return self.options.limit if self.options.partitionlimit is None else self.options.partitionlimit

    def of_partition(self) -> RowsOfPartition:
        """What executors need."""
        batch_rows, limit = self.settings.batch_size, self.row_limit()
        if limit is None:  # each batch costs on its way to the JVM, whatever is in it
            batch_rows = max(batch_rows, limits.DATA_BATCH_ROWS)
        plan = RowPlan(
            selection=self.rows.selection,
            schema=self.rows.schema,
            predicate=self.rows.files.predicate,
            first_row=0,
            limit=limit,
            is_backwards=False,
            batch_rows=batch_rows,
            prefetch_size=1,
        )
        return RowsOfPartition(
            url=self.url,
            settings=self.settings,
            plan=plan,
            spill=self.options.spill,
        )

    def file_batches(self) -> Iterator[pa.RecordBatch]:
        """The files that might match; none after those whose rows are certainly enough for the limit."""
        predicate, wanted = self.rows.files.predicate, self.row_limit()
        is_counted = wanted is not None and covers_limit(predicate)
        has_counts = is_counted or (predicate is not None and bool(predicate.stats_columns))
        columns = (*DATA_FILE_COLUMNS, NUM_RECORDS) if has_counts else DATA_FILE_COLUMNS
        found = 0
        if wanted == 0:
            return
        with closing(self.rows.files.batches(columns)) as batches:
            for batch in batches:
                if not is_counted:
                    yield batch
                    continue
                assert wanted is not None
                sums = pc.cumulative_sum(self._certain_rows(batch, predicate))
                enough = pc.index(pc.greater_equal(sums, wanted - found), True).as_py()
                if enough >= 0:
                    yield batch.slice(0, enough + 1)
                    return
                found += sums[-1].as_py() if len(sums) else 0
                yield batch

    def _certain_rows(self, batch: pa.RecordBatch, predicate: BoundPredicate | None) -> pa.Array:
        """For each file the rows that certainly match, by the log."""
        deleted = pc.fill_null(pc.struct_field(batch.column("deletion_vector"), "cardinality"), 0)
        live = pc.subtract(pc.fill_null(batch.column(NUM_RECORDS), 0), deleted.cast(pa.int64()))
        certain = pc.max_element_wise(live, pa.scalar(0, pa.int64()))
        if predicate is None:
            return certain
        match = pc.fill_null(all_rows_match(self.source, batch, predicate), False)
        return pc.if_else(match, certain, pa.scalar(0, pa.int64()))


def open_read(options: ReadOptions, pin: Pin | None = None) -> TableRead:
    """Open the table as the options say, or at the pin."""
    url, settings = options.opened_with()
    if pin is None:
        at = moment(options.timestamp, options.timezone)
        table = open_table(url, version=options.version, timestamp=at, settings=settings)
    else:
        table = open_table(url, version=pin.version, settings=settings)
        if table.metadata.id != pin.table_id:
            raise VersionNotFoundError(
                f"version {pin.version} is of another table than when the DataFrame was made",
                table.url,
                "the table was replaced: make the DataFrame anew",
            )
    source = table.scan(options.where, limit=options.limit, time_zone=options.timezone).source
    if options.columns is not None and not options.columns:
        raise InvalidRequestError("columns is empty", table.url, "name at least one column")
    return TableRead(
        url=url, settings=settings, options=options, source=source, rows=source.rows(options.columns)
    )
