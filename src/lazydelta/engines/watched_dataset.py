"""A table as one query in DuckDB reads it: a dataset whose scans are watched.

Contract: as `LazyDataset`. Besides, the watch is told what is asked and what goes wrong, it can end the
scans, and what it knows of the query's plan makes them read less.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

import pyarrow as pa

from lazydelta.engines.dataset import Filter, LazyDataset
from lazydelta.engines.projection import Columns
from lazydelta.engines.scanner import LazyScanner
from lazydelta.engines.watch import Asked, Watch
from lazydelta.rows.iterator import LazyRecordBatchIterator
from lazydelta.rows.source import RowSource


class WatchedDataset(LazyDataset):
    """A table as one query reads it."""

    def __init__(self, name: str, source: RowSource, watch: Watch) -> None:
        super().__init__(source)
        self._name = name
        self._watch = watch

    def scanner(
        self,
        columns: Columns = None,
        filter: Filter = None,  # noqa: A002  # pyarrow's name
        batch_size: int | None = None,
        **_: Any,  # Any: further options of pyarrow
    ) -> LazyScanner:
        """A scan of these columns where the filter is true, exactly; nothing is read yet."""
        self._watch.begin(Asked(self._name, columns, filter))
        try:
            batch_rows = batch_size or self._watch.batch_rows
            return _WatchedScanner(
                self._source, self._watch, columns=columns, filter=filter, batch_size=batch_rows
            )
        except Exception as error:
            self._watch.note(error)
            raise


class _WatchedScanner(LazyScanner):
    """A scan whose reader is watched; DuckDB asks for nothing else."""

    def __init__(
        self, source: RowSource, watch: Watch, **how: Any
    ) -> None:  # Any: as `LazyScanner` takes them
        super().__init__(source, **how)
        self._watch = watch
        self._rows = source
        self._is_unfiltered = how.get("filter") is None

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as a stream that C libraries can pull."""
        found = self.to_batches(limit=self._watch.row_limit)
        if self._watch.counts_only and self._is_unfiltered:
            # DuckDB asks for some column, where it needs none.
            found = _counted(LazyScanner(self._rows, columns=[]).to_batches(), self.projected_schema)
        batches = _watched(found, self._watch)
        rows = LazyRecordBatchIterator(self.projected_schema, batches, where="the query")
        self._watch.add(rows)
        return rows.to_reader()


def _counted(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Generator[pa.RecordBatch, None, None]:
    """As many rows, all null."""
    for batch in batches:
        nulls = [pa.nulls(batch.num_rows, field.type) for field in schema]
        yield pa.RecordBatch.from_arrays(nulls, schema=schema)


def _watched(batches: Iterator[pa.RecordBatch], watch: Watch) -> Generator[pa.RecordBatch, None, None]:
    try:
        yield from batches
    except Exception as error:
        watch.note(error)
        raise
