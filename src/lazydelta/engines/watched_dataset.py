"""A dataset for one query in DuckDB: remembers what went wrong in it, and can be stopped.

Why: an error that is raised inside a scan comes out of DuckDB as text, and a query that is left may still
hold scans that wait for the store. Contract: the first error of any scan is kept in the watch as it was;
after `stop` every scan of the watch ends.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Generator, Iterator
from typing import Any

import pyarrow as pa

from lazydelta import limits
from lazydelta.engines.dataset import Filter, LazyDataset
from lazydelta.engines.projection import Columns
from lazydelta.engines.scanner import LazyScanner
from lazydelta.rows.iterator import LazyRecordBatchIterator
from lazydelta.rows.source import RowSource


class Watch:
    """The scans of one query."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._error: Exception | None = None
        self._readers: weakref.WeakSet[LazyRecordBatchIterator] = weakref.WeakSet()
        self._is_stopped = False

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

    def __init__(self, source: RowSource, watch: Watch) -> None:
        super().__init__(source)
        self._watch = watch

    def scanner(
        self,
        columns: Columns = None,
        filter: Filter = None,  # noqa: A002  # pyarrow's name
        batch_size: int = limits.DATA_BATCH_ROWS,
        **_: Any,  # Any: further options of pyarrow
    ) -> LazyScanner:
        """A scan of these columns where the filter is true, exactly; nothing is read yet."""
        try:
            return _WatchedScanner(
                self._source, self._watch, columns=columns, filter=filter, batch_size=batch_size
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

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as a stream that C libraries can pull."""
        batches = _watched(self.to_batches(), self._watch)
        rows = LazyRecordBatchIterator(self.projected_schema, batches, where="the query")
        self._watch.add(rows)
        return rows.to_reader()


def _watched(batches: Iterator[pa.RecordBatch], watch: Watch) -> Generator[pa.RecordBatch, None, None]:
    try:
        yield from batches
    except Exception as error:
        watch.note(error)
        raise
