"""One rung in a process of its own, so that its memory is its own and nothing is warm but the disk.

`python -m lazydelta.ladder.rung_process` takes a `RungRequest` as JSON on stdin and writes a `RungRun`.
Contract: the clock starts after the imports and before the table is opened. Nothing is written to the table.
An error that lazydelta can explain is a result, too.
"""

from __future__ import annotations

import gc
import sys
import time
from contextlib import closing, suppress
from pathlib import Path

import msgspec

# What is loaded at first use is loaded before the clock.
import lazydelta.predicate.sql
import lazydelta.storage.remote  # noqa: F401
from lazydelta.errors import LazyDeltaError
from lazydelta.ladder.rungs import Rung, RungName, RungRequest, RungRun
from lazydelta.scan.report import ScanReport
from lazydelta.table import Table
from lazydelta.table import open as open_table
from lazydelta.table_scan import Scan

_STATUS = Path("/proc/self/status")


def main() -> None:
    """Run what stdin asks for."""
    request = msgspec.json.decode(sys.stdin.buffer.read(), type=RungRequest)
    sys.stdout.buffer.write(msgspec.json.encode(run_rung(request)) + b"\n")


def run_rung(request: RungRequest) -> RungRun:
    """Ask once, or twice where the second time counts."""
    if request.rung.is_again:
        with suppress(LazyDeltaError):
            _ask(request, _Clock(request.seconds))
    gc.collect()
    clock = _Clock(request.seconds)
    try:
        return _ask(request, clock)
    except LazyDeltaError as trouble:
        return RungRun(
            first_ms=None,
            total_ms=clock.elapsed_ms(),
            count=0,
            is_cut=clock.is_up(),
            requests=0,
            bytes_read=0,
            round_trips=0,
            peak_bytes=clock.peak_bytes(),
            source="",
            error=trouble.what,
        )


def _ask(request: RungRequest, clock: _Clock) -> RungRun:
    rung = request.rung
    table = open_table(request.url, version=request.version, storage_options=_options(request))
    if rung.name is RungName.OPEN:
        table.info()
        return _opened(table, clock)
    scan = table.scan(request.where if rung.has_filter else None, limit=rung.limit)
    count, first_ms, is_cut = 0, None, False
    try:
        with closing(_batches(scan, rung)) as batches:
            for batch in batches:
                count += batch.num_rows
                first_ms = clock.elapsed_ms() if first_ms is None and count else first_ms
                if clock.is_up():
                    is_cut = True
                    break
    except LazyDeltaError:
        if not clock.is_up():
            raise
        is_cut = True  # by the scan's own timeout: nothing had come for long
    total_ms, peak = clock.elapsed_ms(), clock.peak_bytes()
    return _told(scan.explain(), first_ms, total_ms, count, peak, is_cut=is_cut)


def _batches(scan: Scan, rung: Rung):  # type: ignore[no-untyped-def]  # of files or of rows: both close
    return scan.batches() if rung.gives == "rows" else scan.file_batches(["path", "size"])


def _options(request: RungRequest) -> dict[str, str]:
    own = {"delta.scan.timeout_seconds": str(max(request.seconds, 0.1))}
    if not request.rung.uses_sidecar:
        own["delta.sidecar.enabled"] = "false"
    return {**request.storage_options, **own}


def _opened(table: Table, clock: _Clock) -> RungRun:
    total_ms, peak = clock.elapsed_ms(), clock.peak_bytes()
    scan = table.scan(limit=0)
    for _ in scan.file_batches(["path"]):
        pass
    return _told(scan.explain(), total_ms, total_ms, 0, peak, is_cut=False)


def _told(
    report: ScanReport, first_ms: float | None, total_ms: float, count: int, peak: int | None, *, is_cut: bool
) -> RungRun:
    rows = report.rows
    return RungRun(
        first_ms=first_ms,
        total_ms=total_ms,
        count=count,
        is_cut=is_cut,
        requests=report.requests + (0 if rows is None else rows.requests),
        bytes_read=report.bytes_read + (0 if rows is None else rows.bytes_read),
        round_trips=report.round_trips,
        peak_bytes=peak,
        source=report.source,
    )


class _Clock:
    """Time and memory since it was made."""

    def __init__(self, seconds: float) -> None:
        with suppress(OSError):  # Linux: the peak so far is forgotten
            Path("/proc/self/clear_refs").write_text("5")
        self._before = _memory("VmRSS")
        self._seconds = seconds
        self._started = time.perf_counter()

    def elapsed_ms(self) -> float:
        return (time.perf_counter() - self._started) * 1000

    def is_up(self) -> bool:
        return self.elapsed_ms() >= self._seconds * 1000

    def peak_bytes(self) -> int | None:
        peak = _memory("VmHWM")
        return None if peak is None or self._before is None else max(0, peak - self._before)


def _memory(name: str) -> int | None:
    """A figure of this process, as Linux tells it; None elsewhere."""
    try:
        told = _STATUS.read_text("ascii").partition(f"{name}:")[2]
    except OSError:
        return None
    return 1024 * int(told.split(None, 1)[0]) if told else None


if __name__ == "__main__":
    main()
