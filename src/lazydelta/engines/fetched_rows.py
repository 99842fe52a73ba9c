"""Rows that can become a data frame or tuples, batch by batch or one by one.

Contract: as `LazyRecordBatchIterator`; what `fetchone` leaves of a batch comes next, whoever asks.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from lazydelta.engines.frames import needs, pandas_frame
from lazydelta.engines.python_values import Row, python_rows
from lazydelta.log.file_rows import Batches
from lazydelta.rows.iterator import LazyRecordBatchIterator


class FetchedRows(LazyRecordBatchIterator):
    """An iterator of `pa.RecordBatch`, with DuckDB's names for what becomes of it."""

    def __init__(
        self, schema: pa.Schema, batches: Batches, *, where: str, stop: Callable[[], None] | None = None
    ) -> None:
        super().__init__(schema, batches, where=where, stop=stop)
        self._rest: pa.RecordBatch | None = None  # of a batch of which rows were fetched
        self._fetching = threading.Lock()

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
