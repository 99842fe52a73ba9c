"""Watch: the scans of one query, kept an eye on together.

Why: an error that is raised inside a scan comes out of DuckDB as text, and a query that is left may still
hold scans that wait for the store. Contract: the first error of any scan is kept as it was; after `stop`
every scan ends, and one that begins later ends at once. Safe to use from several threads.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from lazydelta import limits
from lazydelta.engines.projection import Columns
from lazydelta.engines.scanner import Filter, LazyScanner
from lazydelta.rows.iterator import LazyRecordBatchIterator
from lazydelta.scan import FileScan
from lazydelta.storage import StoppedError

_REMEMBERED_MAX = 100  # scans that a query told of: a recursive one begins them by the thousand


class Asked(msgspec.Struct, frozen=True, eq=False):
    """What a query asks of a table."""

    table: str
    columns: Columns
    filter: Filter


class Begun(msgspec.Struct, frozen=True, eq=False):
    """A scan that a query began."""

    asked: Asked
    scanner: LazyScanner
    row_limit: int | None  # of the query, told to the scan


class Watch:
    """The scans of one query."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._error: Exception | None = None
        self._readers: weakref.WeakSet[LazyRecordBatchIterator] = weakref.WeakSet()
        self._begun: list[Begun] = []
        self._walks: list[FileScan] = []
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
        """Meanwhile scans give no rows: what is asked of them is noted."""
        self._asked = []
        try:
            yield self._asked
        finally:
            self._asked = None

    def is_probe(self, asked: Asked) -> bool:
        """Whether this is asked for the sake of the question."""
        with self._lock:
            if self._asked is None:
                return False
            self._asked.append(asked)
            return True

    def error(self) -> Exception | None:
        """What went wrong first, if anything did."""
        return self._error

    def note(self, error: Exception) -> None:
        """Remember it, unless another came first or the scans were stopped."""
        with self._lock:
            if self._error is None and not self._is_stopped:
                self._error = error

    def begun(self) -> list[Begun]:
        """The scans so far, in the order they began."""
        with self._lock:
            return list(self._begun)

    def add(self, begun: Begun, reader: LazyRecordBatchIterator) -> None:
        """One more scan."""
        with self._lock:
            self._readers.add(reader)
            if len(self._begun) < _REMEMBERED_MAX:
                self._begun.append(begun)
            is_stopped = self._is_stopped
        if is_stopped:
            begun.scanner.stop()
            reader.close()

    def walk(self, files: FileScan) -> FileScan:
        """A walk through files besides, which ends with the scans; raises once they have."""
        with self._lock:
            if self._is_stopped:
                raise StoppedError(files.snapshot.storage.root)
            self._walks.append(files)
        return files

    def stop(self) -> None:
        """End every scan."""
        with self._lock:
            self._is_stopped = True
            begun, readers = list(self._begun), list(self._readers)
        for files in self._walks:
            files.stop()
        for one in begun:
            one.scanner.stop()
        for reader in readers:
            reader.close()
