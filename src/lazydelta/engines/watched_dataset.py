"""A dataset for one query in DuckDB: remembers what went wrong in it, and can be stopped.

Why: an error that is raised inside a scan comes out of DuckDB as text, and a query that is left may still
hold scans that wait for the store. Contract: the first error of any scan is kept in the watch as it was;
after `stop` every scan of the watch ends.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import pyarrow as pa

from lazydelta import limits
from lazydelta.engines.dataset import Filter, LazyDataset
from lazydelta.engines.projection import Columns
from lazydelta.engines.scanner import LazyScanner
from lazydelta.rows.iterator import LazyRecordBatchIterator
from lazydelta.rows.source import RowSource


class Asked(msgspec.Struct, frozen=True, eq=False):
    """What a query asks of a table."""

    table: str
    columns: Columns
    filter: Filter


class ProbeEndedError(Exception):
    """A probe has learnt what it was sent for."""


class Watch:
    """The scans of one query."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._error: Exception | None = None
        self._readers: weakref.WeakSet[LazyRecordBatchIterator] = weakref.WeakSet()
        self._is_stopped = False
        self._asked: list[Asked] | None = None
        self.row_limit: int | None = None  # of every scan
        self.counts_only = False  # whatever the values are, only the number of rows matters
        self.batch_rows = limits.DATA_BATCH_ROWS

    def hurry(self, *, row_limit: int | None) -> None:
        """The query may stop early: rows come in smaller batches, and no more than can be needed."""
        self.row_limit = row_limit
        self.batch_rows = limits.BATCH_ROWS

    @contextmanager
    def probing(self) -> Iterator[list[Asked]]:
        """Meanwhile no scan begins: what was asked is noted, and the query fails."""
        self._asked = []
        try:
            yield self._asked
        finally:
            self._asked = None

    def begin(self, asked: Asked) -> None:
        """A scan is about to begin."""
        if self._asked is not None:
            self._asked.append(asked)
            raise ProbeEndedError

    def error(self) -> Exception | None:
        """What went wrong first, if anything did."""
        return self._error

    def note(self, error: Exception) -> None:
        """Remember it, unless another came first or the scans were stopped."""
        with self._lock:
            if self._error is None and not self._is_stopped:
                self._error = error

    def add(self, reader: LazyRecordBatchIterator) -> None:
        """One more scan."""
        with self._lock:
            self._readers.add(reader)
            is_stopped = self._is_stopped
        if is_stopped:
            reader.close()

    def stop(self) -> None:
        """End every scan."""
        with self._lock:
            self._is_stopped = True
            readers = list(self._readers)
        for reader in readers:
            reader.close()


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
