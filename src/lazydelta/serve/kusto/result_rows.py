"""The rows of a result as text, as many as it may have.

Contract: `query_take_max_records` ends a result without a word; past the limits of truncation it is an error,
after all rows that fit. Sizes are of the rows as text, before they are packed.
Spec: Kusto, "Query limits", "Limit on result set size".
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lazydelta.serve.kusto.refusals import ResultTooLargeError, too_many_bytes, too_many_records
from lazydelta.serve.kusto.requests import Settings
from lazydelta.serve.kusto.row_texts import fitting, joined, row_texts


class ResultRows:
    """One result, counted."""

    def __init__(self, kinds: Sequence[str], settings: Settings) -> None:
        self._kinds = kinds
        self._settings = settings
        self.rows = 0
        self.text_bytes = 0

    @property
    def is_done(self) -> bool:
        """Whether no more rows are wanted."""
        most = self._settings.take_max
        return most is not None and self.rows >= most

    def add(self, batch: pa.RecordBatch) -> tuple[bytes, ResultTooLargeError | None]:
        """The text of those that fit, and what is wrong with the rest."""
        settings, problem = self._settings, None
        if settings.take_max is not None:
            batch = batch.slice(0, max(0, settings.take_max - self.rows))
        if settings.records_max is not None and self.rows + batch.num_rows > settings.records_max:
            batch = batch.slice(0, settings.records_max - self.rows)
            problem = too_many_records(settings.records_max)
        texts = row_texts(batch, self._kinds)
        if settings.bytes_max is not None:
            fits = fitting(texts, settings.bytes_max - self.text_bytes)
            if fits < len(texts):
                texts, problem = texts.slice(0, fits), too_many_bytes(settings.bytes_max)
        found = joined(texts) if len(texts) else b""
        self.rows += len(texts)
        self.text_bytes += len(found)
        return found, problem
