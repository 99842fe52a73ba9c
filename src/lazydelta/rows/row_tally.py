"""What a run of a scan of rows read and dropped, counted while it runs; told by `explain`."""

from __future__ import annotations

import threading
import time

from lazydelta.memory_share import MemoryShare
from lazydelta.scan.rows_report import RowsReport
from lazydelta.storage import IoCounters


class RowTally:
    """The numbers of a run; workers count beside each other."""

    def __init__(self, *, limit: int | None, ends_traversal: bool) -> None:
        self._lock = threading.Lock()
        self._started: float | None = None
        self._first: float | None = None
        self._ended: float | None = None
        self._limit = limit
        self._ends_traversal = ends_traversal
        self._io: IoCounters | None = None
        self.share = MemoryShare()
        self.files = 0
        self.row_groups_read = 0
        self.row_groups_skipped = 0
        self.row_groups_turned = 0
        self.rows_read = 0
        self.rows_matched = 0
        self.rows_out = 0
        self.batches_out = 0
        self.is_finished = False

    def begin(self, io: IoCounters) -> None:
        """The first row is asked for; `io` counts what is read of data files."""
        self._io = io
        self._started = time.perf_counter()

    def end(self) -> None:
        """The run is over, whether to its end or not."""
        if self._ended is None:
            self._ended = time.perf_counter()

    def opened(self) -> None:
        """Count a file."""
        with self._lock:
            self.files += 1

    def begun(self, *, is_turned: bool) -> None:
        """Count a row group."""
        with self._lock:
            self.row_groups_read += 1
            self.row_groups_turned += is_turned

    def loaded(self, read: int, matched: int) -> None:
        """Count rows that were decoded, and those of them that match."""
        with self._lock:
            self.rows_read += read
            self.rows_matched += matched

    def out(self, rows: int) -> None:
        """Count a batch that goes out."""
        if self._first is None:
            self._first = time.perf_counter()
        self.rows_out += rows
        self.batches_out += 1

    def report(self) -> RowsReport:
        """The numbers so far."""
        io = None if self._io is None else self._io.snapshot()
        return RowsReport(
            limit=self._limit,
            limit_ends_traversal=self._ends_traversal and self._limit is not None,
            is_finished=self.is_finished,
            files_opened=self.files,
            row_groups_read=self.row_groups_read,
            row_groups_skipped=self.row_groups_skipped,
            row_groups_turned=self.row_groups_turned,
            rows_read=self.rows_read,
            rows_filtered=self.rows_read - self.rows_matched,
            rows_emitted=self.rows_out,
            batches_emitted=self.batches_out,
            requests=0 if io is None else io.requests,
            bytes_read=0 if io is None else io.bytes_read,
            retries=0 if io is None else io.retries,
            memory_waits=self.share.waits,
            memory_wait_ms=self.share.wait_seconds * 1000,
            time_to_first_row_ms=self._milliseconds(self._first),
            elapsed_ms=self._milliseconds(self._ended or time.perf_counter()) or 0.0,
        )

    def _milliseconds(self, until: float | None) -> float | None:
        if self._started is None or until is None:
            return None
        return (until - self._started) * 1000
