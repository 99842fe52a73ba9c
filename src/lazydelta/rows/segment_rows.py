"""The rows of a segment that go out: loaded, filtered, projected, and turned round where the order asks it.

Contract: the rows of the segment that match, in the file's order or backwards; after an anchor in the same
file only those beyond it. Safe to call from several threads.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lazydelta.log.file_rows import Batches
from lazydelta.rows.data_file import DataFile
from lazydelta.rows.loader import RowLoader
from lazydelta.rows.located_rows import LocatedRows, RowPosition, file_key
from lazydelta.rows.materialize import backwards
from lazydelta.rows.residual_filter import matching
from lazydelta.rows.row_plan import ROW_INDEX, RowPlan
from lazydelta.rows.row_tally import RowTally
from lazydelta.rows.segment import Segment


class SegmentRows:
    """One run's way from segments to rows."""

    def __init__(self, plan: RowPlan, loader: RowLoader, tally: RowTally) -> None:
        self._plan = plan
        self._loader = loader
        self._tally = tally
        index = [pa.field(ROW_INDEX, pa.int64())] if plan.is_located else []
        self._held_schema = pa.schema([*plan.schema, *index])

    def segments(self, file: DataFile) -> Generator[Segment, None, None]:
        """The row groups of a file, in the order of the scan."""
        found: Sequence[Segment] = self._loader.segments(file)
        self._tally.opened()
        self._tally.row_groups_skipped = self._loader.row_groups_skipped
        for segment in reversed(found) if self._plan.is_backwards else found:
            anchor = self._anchor(file)
            if anchor is None or self._reaches_past(segment, anchor):
                yield segment

    def rows(self, segment: Segment) -> Generator[LocatedRows, None, None]:
        """What goes out of a segment."""
        is_backwards, is_located = self._plan.is_backwards, self._plan.is_located
        self._tally.begun(is_turned=is_backwards)
        held = self._matching(segment)
        for batch in backwards(held, self._tally.share) if is_backwards else held:
            if is_located:
                *columns, index = batch.columns
                yield LocatedRows(segment.file, _assembled(columns, batch, self._plan.schema), index)
            else:
                yield LocatedRows(segment.file, batch)

    def _matching(self, segment: Segment) -> Batches:
        anchor = self._anchor(segment.file)
        for loaded in self._loader.load(segment):
            rows, index = self._split(loaded)
            if anchor is not None:
                assert index is not None
                beyond = pc.less if self._plan.is_backwards else pc.greater
                mask = beyond(index, anchor.row_index)
                rows, index = rows.filter(mask), index.filter(mask)
            found, index = self._filtered(rows, index)
            self._tally.loaded(rows.num_rows, found.num_rows)
            if found.num_rows:
                columns = [found.column(name) for name in self._plan.selection.output]
                held = columns if index is None else [*columns, index]
                yield _assembled(held, found, self._held_schema)

    def _filtered(
        self, rows: pa.RecordBatch, index: pa.Int64Array | None
    ) -> tuple[pa.RecordBatch, pa.Int64Array | None]:
        if self._plan.predicate is None or index is None:
            return matching(rows, self._plan.predicate), index
        # A name that no column of a table has: the table may have one called as the metadata column is.
        found = matching(rows.append_column("", index), self._plan.predicate)
        return found.select(range(rows.num_columns)), found.column(rows.num_columns)

    def _split(self, loaded: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.Int64Array | None]:
        """The rows, and where they lie, if that was asked for."""
        if not self._plan.is_located:
            return loaded, None
        last = loaded.num_columns - 1
        return loaded.select(range(last)), loaded.column(last)

    def _anchor(self, file: DataFile) -> RowPosition | None:
        after = self._plan.after
        return after if after is not None and file_key(file) == after.file_key else None

    def _reaches_past(self, segment: Segment, anchor: RowPosition) -> bool:
        if self._plan.is_backwards:
            return segment.first_row < anchor.row_index
        return segment.first_row + segment.num_rows - 1 > anchor.row_index


def _assembled(columns: Sequence[pa.Array], rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """These columns; without any, as many rows as there were."""
    return pa.RecordBatch.from_arrays(columns, schema=schema) if columns else rows.select([])
