"""A table as a Polars LazyFrame that reads what the query needs.

Contract: columns, filter and the number of rows reach the scan. Polars asks for `n_rows` before the filter is
applied. What the filter can tell a scan narrows files and row groups; Polars applies it to the rows, whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import polars as pl
import pyarrow as pa
from polars.io.plugins import register_io_source

from lazydelta.engines.arrow_filter import pushed_tree
from lazydelta.engines.polars_expression import read_polars
from lazydelta.engines.scanner import BATCH_ROWS, LazyScanner, narrowed
from lazydelta.rows.source import RowSource


def lazy_frame(source: RowSource, columns: Sequence[str] | None = None) -> pl.LazyFrame:
    """The rows of the source; nothing is read before it is collected."""
    frame = PolarsSource(source, tuple(source.schema.names if columns is None else columns))
    return register_io_source(
        frame.batches,
        schema=frame.schema,
        is_pure=True,
        explain_name="lazydelta",
        explain_detail=f"{source.snapshot.storage.root} @ {source.snapshot.version}",
    )


class PolarsSource(msgspec.Struct, frozen=True, eq=False):
    """What Polars calls."""

    source: RowSource
    columns: tuple[str, ...]

    def schema(self) -> pl.Schema:
        """The columns, in Polars' types."""
        empty = LazyScanner(self.source, columns=self.columns).projected_schema.empty_table()
        return _frame(empty).schema

    def batches(
        self,
        with_columns: list[str] | None,
        predicate: pl.Expr | None,
        n_rows: int | None,
        batch_size: int | None,
    ) -> Iterator[pl.DataFrame]:
        """The rows, as Polars asks for them."""
        wanted = list(self.columns) if with_columns is None else with_columns
        needed = [] if predicate is None else predicate.meta.root_names()
        source = self.source if n_rows is None else _limited(self.source, n_rows)
        if predicate is not None and source.config.limit is None:
            source = _narrowed(source, predicate)
        scanner = LazyScanner(
            source, columns=list(dict.fromkeys([*wanted, *needed])), batch_size=batch_size or BATCH_ROWS
        )
        for batch in scanner.to_batches():
            rows = _frame(batch)
            yield rows.select(wanted) if predicate is None else rows.filter(predicate).select(wanted)


def _limited(source: RowSource, limit: int) -> RowSource:
    before = source.config.limit
    return source.with_config(limit=limit if before is None else min(limit, before))


def _narrowed(source: RowSource, predicate: pl.Expr) -> RowSource:
    node = read_polars(predicate)
    if node is None:
        return source
    condition = pushed_tree(node, source.snapshot.schema).condition
    return source if condition is None else narrowed(source, condition)


def _frame(rows: pa.RecordBatch | pa.Table) -> pl.DataFrame:
    table = rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows])
    frame = pl.from_arrow(table, rechunk=False)
    assert isinstance(frame, pl.DataFrame)
    return frame
