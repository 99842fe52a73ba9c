"""What one run of a scan of rows does, as plain data."""

from __future__ import annotations

import msgspec
import pyarrow as pa

from lazydelta import limits
from lazydelta.predicate import BoundPredicate
from lazydelta.rows.located_rows import RowPosition
from lazydelta.rows.selection import Selection

ROW_INDEX = "_row_index"


class RowPlan(msgspec.Struct, frozen=True, kw_only=True):
    """One run."""

    selection: Selection
    schema: pa.Schema  # of what comes out
    predicate: BoundPredicate | None
    first_row: int  # of those that match: what comes before is left out
    limit: int | None  # rows, those left out among them
    is_backwards: bool  # the rows of a file last first
    batch_rows: int  # of a batch that comes out
    prefetch_size: int
    is_located: bool = False  # rows come with their place
    after: RowPosition | None = None  # rows up to this one, itself among them, are left out

    @property
    def is_hurried(self) -> bool:
        """Whether the consumer may stop after a few rows."""
        return self.limit is not None or self.is_located

    @property
    def slice_rows(self) -> int:
        """Rows of a row group that are decoded at once: many cost less each, few come sooner."""
        if self.limit is None:
            return self.batch_rows if self.is_located else max(self.batch_rows, limits.DATA_BATCH_ROWS)
        is_exact = self.predicate is None and not self.is_backwards and self.after is None
        return max(1, min(self.limit, self.batch_rows)) if is_exact else self.batch_rows

    @property
    def loaded(self) -> Selection:
        """What is loaded: what comes out, what the filter needs, and, last, where rows lie, if asked for."""
        if not self.is_located:
            return self.selection
        names = (*self.selection.metadata_columns, ROW_INDEX)
        return msgspec.structs.replace(self.selection, metadata_columns=names)
