"""The rows of one query: an Arrow stream that can become a data frame.

Contract: as `LazyRecordBatchIterator`: the query runs when its first batch is asked for and is pulled from
then on, once. Leaving, dropping and closing it ends the query and the scans below it.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lazydelta.engines.frames import needs, pandas_frame
from lazydelta.engines.query_report import QueryReport
from lazydelta.engines.running_query import RunningQuery
from lazydelta.rows.iterator import LazyRecordBatchIterator


class SqlResult(LazyRecordBatchIterator):
    """An iterator of `pa.RecordBatch`, with DuckDB's names for what becomes of it."""

    def __init__(self, schema: pa.Schema, running: RunningQuery, *, where: str) -> None:
        super().__init__(schema, running.batches(), where=where, stop=running.stop)
        self._running = running

    @property
    def handed_over(self) -> str | None:
        """The tables whose files DuckDB reads by itself, by commas; None: there is none."""
        return ", ".join(self._running.handed_over) or None

    def explain(self) -> QueryReport:
        """What reached the scans, what is left to DuckDB, who reads the files, and what was read so far."""
        return self._running.report()

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self.schema.names)

    def arrow(self) -> pa.RecordBatchReader:
        """What is left, as a stream; `read_all()` gives a table."""
        return self.to_reader()

    def fetch_record_batch(self) -> pa.RecordBatchReader:
        """The same, under DuckDB's other name."""
        return self.to_reader()

    def df(self) -> Any:  # Any: pandas is an extra
        """What is left, as a pandas DataFrame."""
        return pandas_frame(self)

    def pl(self) -> Any:  # Any: Polars is an extra
        """What is left, as a Polars DataFrame."""
        needs("polars", "polars")
        import polars

        return polars.from_arrow(self.read_all())

    def fetchall(self) -> list[tuple[Any, ...]]:  # Any: the values of the columns
        """What is left, as tuples."""
        return [row for batch in self for row in _tuples(batch)]

    def fetchone(self) -> tuple[Any, ...] | None:
        """The first row of what is left, and the end of the query; None where there is none."""
        with self:
            batch = self.next()
            return None if batch is None else _tuples(batch.slice(0, 1))[0]


def _tuples(batch: pa.RecordBatch) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in batch.columns), strict=True))
