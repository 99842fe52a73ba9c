"""The rows of one query in SQL: an Arrow stream that can become a data frame.

Contract: as `LazyRecordBatchIterator`: the query runs when its first batch is asked for and is pulled from
then on, once. Leaving, dropping and closing it ends the query and the scans below it.
"""

from __future__ import annotations

import pyarrow as pa

from lazydelta.engines.fetched_rows import FetchedRows
from lazydelta.engines.query_report import QueryReport
from lazydelta.engines.running_query import RunningQuery


class SqlResult(FetchedRows):
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
