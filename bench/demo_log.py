"""`make demo-log`: a million-file log, scanned lazily beside delta-rs, each in a process of its own.

Contract: prints to stdout, in words a newcomer understands; takes about a minute, most of it delta-rs. The
table is generated once and kept in the project's cache.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from bench.readers import OURS, READERS, Reader, run_once
from bench.tables import CachedTable, bench_spec, cached_table

FILES = 1_000_000
_TIMEOUT_S = 600


def main() -> int:
    """Show it; the exit code is 0 when both readers found the same files."""
    table = _prepare()
    delta_rs = next(reader for reader in READERS if reader.name == "delta-rs")
    print("\nlazydelta streams the log, newest commit first, while you already use the files:\n")
    hundred = _show("the first 100 files", OURS, table, "hundred")
    today = _show("100 files of today's partition", OURS, table, "today")
    everything = _show("every live file", OURS, table, "all")
    low = _show("files where value < 100.05 is possible", OURS, table, "predicate")
    print("\ndelta-rs loads the whole table first, then answers:\n")
    theirs = _show("the first file, or every file", delta_rs, table, "all")
    their_low = _show("files where value < 100.05 is possible", delta_rs, table, "predicate")
    print()
    _compare("first 100 files", hundred, theirs, ours_event="hundred_s")
    _compare("every live file", everything, theirs, ours_event="all_s")
    _compare("files that might match the predicate", low, their_low, ours_event="all_s")
    print(
        f"\nFor the first 100 files lazydelta read {hundred['bytes_read'] / 1000:,.0f} KB of a log of",
        end=" ",
    )
    print(f"{table.expected.log_bytes / 1e6:,.0f} MB, in {hundred['requests']} requests.")
    print(f"\nTry it yourself:\n  .venv/bin/lazydelta files '{table.path}' --limit 5\n")
    return _agree(table, everything, theirs, low, their_low, today)


def _prepare() -> CachedTable:
    started = time.perf_counter()
    print(f"A Delta table of {FILES:,} files (only its log; no data is needed to list files) …", flush=True)
    table = cached_table(bench_spec(FILES))
    spent = time.perf_counter() - started
    print(f"  ready in {spent:.0f} s: {table.path}")
    checkpoint_mb = table.expected.checkpoint_bytes / 1e6
    print(f"  {checkpoint_mb:,.0f} MB of checkpoint, then {table.spec.tail_commits} commits")
    print(f"  version {table.expected.version:,}, {table.expected.live_files:,} live files")
    return table


def _show(what: str, reader: Reader, table: CachedTable, query: str) -> dict[str, Any]:
    facts, failure = run_once(reader, table.path, query, timeout_s=_TIMEOUT_S)
    if failure is not None:
        sys.exit(f"{reader.name} failed on {what}: {failure}")
    seconds = facts["all_s"] or facts["hundred_s"]
    found = f"{facts['files']:,} files"
    print(f"  {what:<40} {_seconds(seconds):>10}  {facts['peak_mb']:>7,.0f} MB  {found:>16}", flush=True)
    return facts


def _compare(what: str, ours: dict[str, Any], theirs: dict[str, Any], *, ours_event: str) -> None:
    times = theirs["all_s"] / ours[ours_event]
    memory = theirs["peak_mb"] / max(ours["peak_mb"], 1)
    print(f"  {what:<40} lazydelta is {_times(times)} times faster, in {_times(memory)} times less memory")


def _agree(table: CachedTable, *answers: dict[str, Any]) -> int:
    counts = [answer["files"] for answer in answers]
    all_files, low_files = table.expected.live_files, table.expected.low_files
    if counts == [all_files, all_files, low_files, low_files, 100]:
        print("Both readers found exactly the same number of files.")
        return 0
    print(f"The readers disagree: {counts}; the table has {all_files:,} files, {low_files:,} may match.")
    return 1


def _times(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def _seconds(value: float) -> str:
    return f"{value * 1000:,.0f} ms" if value < 1 else f"{value:,.1f} s"


if __name__ == "__main__":
    sys.exit(main())
