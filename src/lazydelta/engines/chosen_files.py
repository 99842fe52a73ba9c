"""Rows of files that were chosen already: one of a dataset, or those of a query that DuckDB does not read.

Contract: which files is not asked again, whatever the filter would say of them; rows are filtered exactly.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pyarrow as pa

from lazydelta.log.file_rows import Batches
from lazydelta.memory_share import MemoryShare
from lazydelta.rows.data_file import DATA_FILE_COLUMNS
from lazydelta.rows.iterator import LazyRecordBatchIterator
from lazydelta.rows.row_scan import RowRange, RowScan
from lazydelta.rows.source import RowSource
from lazydelta.scan import FileScan, ScanReport

_UNKNOWN = pa.scalar(None, pa.int64())


class ChosenFiles(FileScan):
    """A scan of files that found these."""

    def __init__(self, source: RowSource, chosen: pa.RecordBatch, listed: FileScan | None = None) -> None:
        """`chosen`: one row for each, with `DATA_FILE_COLUMNS`. `listed`: the scan that found them."""
        # Which file comes after which means nothing here.
        super().__init__(source.snapshot, msgspec.structs.replace(source.config, limit=None, order=None))
        self._chosen = chosen
        self._listed = listed

    def batches(
        self,
        columns: Sequence[str] = DATA_FILE_COLUMNS,
        *,
        with_keys: bool = False,
        share: MemoryShare | None = None,  # noqa: ARG002 - the base class has it
    ) -> Batches:
        """The files; what is not known of them is null. `share` is not needed: they are in memory."""
        assert not with_keys or self.config.order is None
        rows = self._chosen
        known = rows.schema.names
        arrays = [
            rows.column(name) if name in known else pa.repeat(_UNKNOWN, rows.num_rows) for name in columns
        ]
        yield pa.RecordBatch.from_arrays(arrays, names=list(columns))

    def latest(self) -> ScanReport | None:
        """What was read of the log to find them."""
        return None if self._listed is None else self._listed.latest()


class ChosenSource(RowSource, frozen=True, eq=False, kw_only=True):
    """A table of which these files alone are read."""

    chosen: pa.RecordBatch
    listed: FileScan | None = None

    def files(self) -> FileScan:
        """The files."""
        return ChosenFiles(self, self.chosen, self.listed)

    def rows(self, columns: Sequence[str] | None = None, *, row_range: RowRange | None = None) -> RowScan:
        """Their rows that match."""
        return RowScan(self.files(), columns, limit=self.config.limit, row_range=row_range)


def chosen_source(
    source: RowSource, chosen: pa.RecordBatch, *, listed: FileScan | None = None
) -> ChosenSource:
    """The source with these files alone."""
    return ChosenSource(
        snapshot=source.snapshot,
        config=source.config,
        sidecar=source.sidecar,
        memory=source.memory,
        chosen=chosen,
        listed=listed,
    )


def rows_of_file(source: RowSource, file: pa.RecordBatch, columns: Sequence[str]) -> LazyRecordBatchIterator:
    """The rows of this file that match, as a scan of the source would give them."""
    return scan_of_file(source, file, columns).batches()


def scan_of_file(source: RowSource, file: pa.RecordBatch, columns: Sequence[str]) -> RowScan:
    """The same, to be run and reported."""
    return RowScan(ChosenFiles(source, file), columns, limit=source.config.limit)
