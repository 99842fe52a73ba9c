"""The rows of a query in KQL, with Kusto's types of its columns.

Contract: as `FetchedRows`: rows are pulled, once, and leaving ends the query and its scans. Every column has
the Arrow type of its Kusto type (`columns.ARROW_TYPES`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from lazydelta.engines.fetched_rows import FetchedRows
from lazydelta.engines.kql.columns import KqlColumn
from lazydelta.engines.kql.report import KqlReport, kql_report
from lazydelta.engines.kql.translate import Translated
from lazydelta.engines.running_query import RunningQuery
from lazydelta.log.file_rows import Batches


class KqlResult(FetchedRows):
    """An iterator of `pa.RecordBatch`, with DuckDB's names for what becomes of it."""

    def __init__(
        self,
        schema: pa.Schema,
        running: RunningQuery,
        batches: Batches,
        *,
        translated: Translated,
        columns: tuple[KqlColumn, ...],
    ) -> None:
        where = " ".join(translated.text.split())[:200]
        super().__init__(schema, batches, where=where, stop=running.stop)
        self._running = running
        self._translated = translated
        self._columns = columns

    @property
    def columns(self) -> tuple[KqlColumn, ...]:
        """Names and Kusto's types."""
        return self._columns

    @property
    def visualization(self) -> Mapping[str, Any] | None:  # Any: text, numbers, true and false
        """What `render` asks for, as Kusto's answers have it; None: nothing."""
        return self._translated.visualization

    def report(self) -> KqlReport:
        """The SQL, what reached the scans, and what was read so far."""
        return kql_report(self._translated, self._running.report())

    def explain(self) -> KqlReport:
        """The same, by the name that it has elsewhere."""
        return self.report()
