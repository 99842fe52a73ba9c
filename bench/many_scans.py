"""Many scans at once in one process: `python -m bench.many_scans --scans 200`.

Why: a service runs the queries of many; each has its limits, and together they must have one, too.
Contract: every scan runs in a thread of its own, all begin together, and each opens the table itself. Four
kinds of query take turns; each answer is checked. Memory is resident memory over the imported process, at its
peak. The verdict: memory within the budget, every answer right, and of each kind the slowest scan within five
times the median of its kind.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing

import msgspec
import pyarrow as pa

import lazydelta as ld
from bench.bars import save_bars
from bench.ladder_tables import HOUR, TAKEN, LadderTable, ladder_spec, ladder_table
from bench.peers.measure import status_kb
from bench.spec import TableSpec
from lazydelta.memory_budget import PROCESS_MEMORY, MemoryUse
from lazydelta.settings import Settings

ROWS_TAKEN = 20_000
SLOWEST_MAX = 5.0  # times the median of its kind
_LOOK_EVERY_S = 0.02


class Scanned(msgspec.Struct, frozen=True, kw_only=True):
    """One scan."""

    kind: str
    seconds: float
    found: int
    wanted: int
    waits: int
    wait_ms: float
    error: str | None = None


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """All of them, and what they took."""

    scans: list[Scanned]
    seconds: float
    peak_mb: float
    arrow_mb: float
    threads_max: int
    memory: MemoryUse

    def failures(self, *, allowed_mb: float) -> list[str]:
        """What is not as promised."""
        found = [f"{scan.kind}: {scan.error}" for scan in self.scans if scan.error is not None]
        wrong = [scan for scan in self.scans if scan.error is None and scan.found != scan.wanted]
        found += [f"{scan.kind}: {scan.found} found, {scan.wanted} are right" for scan in wrong]
        if self.peak_mb > allowed_mb:
            found.append(f"{self.peak_mb:,.0f} MB over import, and {allowed_mb:,.0f} are allowed")
        if self.memory.peak_bytes > self.memory.limit_bytes:
            found.append(f"{self.memory.peak_bytes:,} bytes were held of {self.memory.limit_bytes:,}")
        return found

    def starved(self) -> list[str]:
        """Kinds whose slowest scan took too long beside the others of its kind."""
        told = []
        for kind in dict.fromkeys(scan.kind for scan in self.scans):
            times = [scan.seconds for scan in self.scans if scan.kind == kind]
            ratio = max(times) / statistics.median(times)
            if ratio > SLOWEST_MAX:
                told.append(f"{kind}: the slowest took {ratio:.1f} times the median")
        return told


class Kind(msgspec.Struct, frozen=True):
    """A query, what it finds, and how it is asked; the answer comes with the scan that gave it."""

    name: str
    wanted: int
    ask: Callable[[ld.Table], tuple[int, ld.Scan]]


def many_spec(files: int) -> TableSpec:
    """The table of the ladder, with data for the newest commit."""
    return msgspec.structs.replace(ladder_spec(files), checkpoint_dv_every=0, data="newest")


def kinds_of(table: LadderTable) -> list[Kind]:
    """The four queries."""
    return [
        Kind(HOUR.title, table.answers[HOUR.name], lambda opened: _files(opened.scan(HOUR.where()))),
        Kind(f"take {TAKEN}", TAKEN, lambda opened: _files(opened.scan(limit=TAKEN))),
        Kind("everything", table.answers["all"], lambda opened: _files(opened.scan())),
        Kind(f"{ROWS_TAKEN:,} rows", ROWS_TAKEN, lambda opened: _rows(opened.scan(limit=ROWS_TAKEN))),
    ]


def run_many(url: str, kinds: list[Kind], scans: int, settings: Settings) -> Outcome:
    """All scans at once."""
    base_kb, arrow_base = status_kb("VmRSS"), pa.total_allocated_bytes()
    together = threading.Barrier(scans + 1)
    done: list[Scanned] = []
    threads = [
        threading.Thread(target=_scan, args=(url, kinds[number % len(kinds)], settings, together, done))
        for number in range(scans)
    ]
    for thread in threads:
        thread.start()
    together.wait()
    began = time.perf_counter()
    peak_kb, arrow_peak, threads_max = base_kb, 0, 0
    while any(thread.is_alive() for thread in threads):
        peak_kb = max(peak_kb, status_kb("VmRSS"))
        arrow_peak = max(arrow_peak, pa.total_allocated_bytes() - arrow_base)
        threads_max = max(threads_max, threading.active_count())
        time.sleep(_LOOK_EVERY_S)
    return Outcome(
        scans=done,
        seconds=time.perf_counter() - began,
        peak_mb=(peak_kb - base_kb) / 1024,
        arrow_mb=arrow_peak / (1 << 20),
        threads_max=threads_max,
        memory=PROCESS_MEMORY.use(),
    )


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    options = _parser().parse_args(arguments)
    table = ladder_table(many_spec(options.files))
    settings = Settings(memory_bytes=options.memory_mib << 20, cache_bytes=0)
    ld.open(table.table.path, settings=settings).scan(
        limit=1
    ).explain()  # what is loaded once is not a scan's
    outcome = run_many(str(table.table.path), kinds_of(table), options.scans, settings)
    print(report(outcome))
    print(save_bars("many-scans", _slowest(outcome)))
    if options.json:
        print(json.dumps(msgspec.to_builtins(outcome)))
    failures = [*outcome.failures(allowed_mb=options.memory_mib), *outcome.starved()]
    for failure in failures:
        print(f"NOT KEPT: {failure}")
    sys.exit(1 if failures else 0)


def _slowest(outcome: Outcome) -> dict[str, dict[str, float]]:
    kinds = dict.fromkeys(scan.kind for scan in outcome.scans)
    seconds = {kind: [scan.seconds for scan in outcome.scans if scan.kind == kind] for kind in kinds}
    return {
        "seconds, median": {kind: statistics.median(times) for kind, times in seconds.items()},
        "seconds, slowest": {kind: max(times) for kind, times in seconds.items()},
    }


def report(outcome: Outcome) -> str:
    """For people."""
    lines = [
        f"{'query':<14} {'scans':>5} {'median':>9} {'slowest':>9} {'ratio':>6} {'waits':>6} {'waited':>9}"
    ]
    for kind in dict.fromkeys(scan.kind for scan in outcome.scans):
        scans = [scan for scan in outcome.scans if scan.kind == kind]
        times = [scan.seconds for scan in scans]
        median, slowest = statistics.median(times), max(times)
        waits, waited = sum(scan.waits for scan in scans), sum(scan.wait_ms for scan in scans) / 1000
        lines.append(
            f"{kind:<14} {len(scans):>5} {median:>7.2f} s {slowest:>7.2f} s {slowest / median:>6.1f} "
            f"{waits:>6,} {waited:>7.1f} s"
        )
    use = outcome.memory
    lines.append(
        f"{len(outcome.scans)} scans in {outcome.seconds:.1f} s, {outcome.threads_max} threads at most; "
        f"{outcome.peak_mb:,.0f} MB over import ({outcome.arrow_mb:,.0f} of them Arrow's)"
    )
    lines.append(
        f"budget: {use.peak_bytes >> 20:,} of {use.limit_bytes >> 20:,} MiB held at most, "
        f"{use.waits:,} waits, {use.overdrafts:,} overdrafts"
    )
    return "\n".join(lines)


def _scan(url: str, kind: Kind, settings: Settings, together: threading.Barrier, done: list[Scanned]) -> None:
    together.wait()
    began = time.perf_counter()
    found, waits, wait_ms, error = 0, 0, 0.0, None
    try:
        found, scan = kind.ask(ld.open(url, settings=settings))
        told = scan.explain()
        rows = told.rows
        waits = told.memory_waits + (0 if rows is None else rows.memory_waits)
        wait_ms = told.memory_wait_ms + (0.0 if rows is None else rows.memory_wait_ms)
    except Exception as failure:  # noqa: BLE001 - told with the others
        error = repr(failure)
    done.append(
        Scanned(
            kind=kind.name,
            seconds=time.perf_counter() - began,
            found=found,
            wanted=kind.wanted,
            waits=waits,
            wait_ms=wait_ms,
            error=error,
        )
    )


def _files(scan: ld.Scan) -> tuple[int, ld.Scan]:
    with closing(scan.file_batches()) as batches:
        return sum(batch.num_rows for batch in batches), scan


def _rows(scan: ld.Scan) -> tuple[int, ld.Scan]:
    with scan.batches() as batches:
        return sum(batch.num_rows for batch in batches), scan


def _parser() -> argparse.ArgumentParser:
    about = __doc__.split("\n\n", 1)[0]
    parser = argparse.ArgumentParser(prog="python -m bench.many_scans", description=about)
    parser.add_argument("--scans", type=int, default=200)
    parser.add_argument("--files", type=int, default=1_000_000)
    parser.add_argument("--memory-mib", type=int, default=1024, help="the budget of the process")
    parser.add_argument("--json", action="store_true", help="print every scan, too")
    return parser


if __name__ == "__main__":
    main()
