"""A table as one query in DuckDB reads it: a dataset whose scans are watched.

Contract: as `LazyDataset`. Besides, the watch is told what is asked, what begins and what goes wrong, it can
end the scans, and what it knows of the query's plan makes them read less.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

import pyarrow as pa

from lazydelta.engines.dataset import LazyDataset
from lazydelta.engines.projection import Columns
from lazydelta.engines.scanner import Filter, LazyScanner
from lazydelta.engines.watch import Asked, Begun, Watch
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
        asked = Asked(self._name, columns, filter)
        try:
            return _WatchedScanner(self._source, self._watch, asked, batch_size)
        except Exception as error:
            self._watch.note(error)
            raise


class _WatchedScanner(LazyScanner):
    """A scan whose reader is watched; DuckDB asks for nothing else."""

    def __init__(self, source: RowSource, watch: Watch, asked: Asked, batch_size: int | None) -> None:
        batch_rows = batch_size or watch.batch_rows
        super().__init__(source, columns=asked.columns, filter=asked.filter, batch_size=batch_rows)
        self._table = source
        self._watch = watch
        self._asked = asked
        self._is_probe = watch.is_probe(asked)

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as a stream that C libraries can pull."""
        schema = self.projected_schema
        if self._is_probe:
            return pa.RecordBatchReader.from_batches(schema, [])
        scanner: LazyScanner = self
        found = self.to_batches(limit=self._watch.row_limit)
        if self._watch.counts_only:
            # DuckDB asks for some column, where it needs none.
            scanner = LazyScanner(self._table, columns=[], filter=self._asked.filter)
            found = _counted(scanner.to_batches(), schema)
        rows = LazyRecordBatchIterator(schema, _watched(found, self._watch), where="the query")
        self._watch.add(Begun(self._asked, scanner, self._watch.row_limit), rows)
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
