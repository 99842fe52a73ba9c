"""The rows of one query: an Arrow stream that can become a data frame.

Contract: as `LazyRecordBatchIterator`: the query runs when its first batch is asked for and is pulled from
then on, once; what `fetchone` leaves of a batch comes next, whoever asks. Leaving, dropping and closing it
ends the query and the scans below it.
"""

from __future__ import annotations

import threading
from typing import Any

import pyarrow as pa

from lazydelta.engines.frames import needs, pandas_frame
from lazydelta.engines.python_values import Row, python_rows
from lazydelta.engines.query_report import QueryReport
from lazydelta.engines.running_query import RunningQuery
from lazydelta.rows.iterator import LazyRecordBatchIterator


class SqlResult(LazyRecordBatchIterator):
    """An iterator of `pa.RecordBatch`, with DuckDB's names for what becomes of it."""

    def __init__(self, schema: pa.Schema, running: RunningQuery, *, where: str) -> None:
        super().__init__(schema, running.batches(), where=where, stop=running.stop)
        self._running = running
        self._rest: pa.RecordBatch | None = None  # of a batch of which rows were fetched
        self._fetching = threading.Lock()

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

    def fetchall(self) -> list[Row]:
        """What is left, as tuples."""
        return [row for batch in self for row in python_rows(batch, self._where)]

    def fetchone(self) -> Row | None:
        """The next row; None where there is none."""
        with self._fetching:
            batch = self._left()
            if batch is None:
                return None
            self._rest = batch.slice(1) if batch.num_rows > 1 else None
        return python_rows(batch.slice(0, 1), self._where)[0]

    def has_next(self) -> bool:
        """Whether there is another batch, or the rest of one; reads it, if need be."""
        with self._fetching:
            return self._rest is not None or super().has_next()

    def close(self) -> None:
        """End the query; what was not handed out is lost."""
        self._rest = None
        super().close()

    def __next__(self) -> pa.RecordBatch:
        with self._fetching:
            batch = self._left()
        if batch is None:
            raise StopIteration
        return batch

    def _left(self) -> pa.RecordBatch | None:
        rest, self._rest = self._rest, None
        if rest is not None:
            return rest
        try:
            return super().__next__()
        except StopIteration:
            return None
