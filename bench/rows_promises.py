"""The promises about rows, judged on a summed-up run.

Contract: pure. Every promise is told with the figure it was judged by; one that could not be measured fails
and says so. A peer that failed, or was stopped, counts with the seconds until then: its answer would have
come later.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence

import msgspec

from bench.promises import Check
from bench.rows_runs import EVENTS, Run
from bench.summary import Figure

FIRST_ROW_TIMES, KERNEL_TIMES = 50.0, 2.0
GROUP_MEMORY_MB, GROUP_TIMES = 500.0, 2.0
SCAN_SHARE, HIDDEN_SHARE = 0.9, 0.7
_PEERS = ("duckdb", "delta-rs", "polars")
_STOPPED = re.compile(r"stopped after ([\d,]+) s")
_IMPORTS_S = 10.0  # a process that was stopped had its imports before the clock; so many seconds at most


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One reader's answer to one case: medians over the rounds, or why there is none."""

    part: str
    case: str
    reader: str
    seconds: Figure | None = None
    peak_mb: Figure | None = None
    cpu_s: Figure | None = None
    rows: int | None = None
    handed_over: bool | None = None
    rounds: int = 0
    failure: str | None = None
    failed_s: float | None = None


def cells(runs: Sequence[Run]) -> list[Cell]:
    """In the order in which they were first met."""
    keys = dict.fromkeys((run.part, run.case, run.reader) for run in runs)
    return [_cell([run for run in runs if (run.part, run.case, run.reader) == key]) for key in keys]


def find(given: Sequence[Cell], part: str, case: str, reader: str) -> Cell | None:
    """The cell, if it was run."""
    wanted = (part, case, reader)
    return next((cell for cell in given if (cell.part, cell.case, cell.reader) == wanted), None)


def cases(given: Sequence[Cell], part: str) -> list[str]:
    """The cases of a part."""
    return list(dict.fromkeys(cell.case for cell in given if cell.part == part))


def judge_rows(given: Sequence[Cell]) -> list[Check]:
    """Every promise."""
    return [*_first_row(given), *_groups(given), *_scans(given), *_prefetch(given)]


def fastest_pyarrow(given: Sequence[Cell], case: str) -> Cell | None:
    """The faster of pyarrow's two ways to read the same files."""
    found = [find(given, "scan", case, reader) for reader in ("ParquetFile", "dataset")]
    answered = [cell for cell in found if cell is not None and cell.seconds is not None]
    return min(answered, key=lambda cell: cell.seconds.median if cell.seconds else 0.0, default=None)


def _first_row(given: Sequence[Cell]) -> list[Check]:
    checks = []
    for case in cases(given, "limit"):
        ours = find(given, "limit", case, "lazydelta")
        for reader in _PEERS:
            promise = f"select * limit 100, {case}: first row {FIRST_ROW_TIMES:g} times sooner than {reader}"
            peer = find(given, "limit", case, reader)
            checks.append(_times(promise, peer, ours, at_least=FIRST_ROW_TIMES))
        kernel = find(given, "limit", case, "kernel-rust")
        promise = f"select * limit 100, {case}: no slower than {KERNEL_TIMES:g} times kernel-rust"
        checks.append(_times(promise, ours, kernel, at_most=KERNEL_TIMES))
    return checks


def _groups(given: Sequence[Cell]) -> list[Check]:
    checks = []
    for case in cases(given, "groups"):
        theirs = find(given, "groups", case, "duckdb")
        if theirs is None:  # nothing to hold it beside: told, not judged
            continue
        ours = find(given, "groups", case, "lazydelta")
        promise = f"GROUP BY, {case}: under {GROUP_MEMORY_MB:g} MB over import"
        peak = None if ours is None else ours.peak_mb
        told = _why(ours) if peak is None else f"{peak.most:,.0f} MB at most"
        passed = peak is not None and peak.most < GROUP_MEMORY_MB
        checks.append(Check(promise=promise, passed=passed, measured=told))
        promise = f"GROUP BY, {case}: no slower than {GROUP_TIMES:g} times DuckDB on the same files"
        checks.append(_times(promise, ours, theirs, at_most=GROUP_TIMES))
    return checks


def _scans(given: Sequence[Cell]) -> list[Check]:
    checks = []
    for case in cases(given, "scan"):
        promise = f"every row, {case}: at least {SCAN_SHARE:g} of pyarrow's throughput"
        ours, best = find(given, "scan", case, "lazydelta"), fastest_pyarrow(given, case)
        checks.append(_times(promise, best, ours, at_least=SCAN_SHARE))
    return checks


def _prefetch(given: Sequence[Cell]) -> list[Check]:
    checks = []
    for case in cases(given, "prefetch"):
        promise = f"prefetch, {case}: hides at least {HIDDEN_SHARE:.0%} of the wait"
        ahead, none = (find(given, "prefetch", case, name) for name in ("prefetch", "no prefetch"))
        if ahead is None or none is None or ahead.seconds is None or none.seconds is None:
            checks.append(Check(promise=promise, passed=False, measured=_why(ahead)))
            continue
        hidden = hidden_share(ahead.seconds, none.seconds)
        told = f"{hidden:.0%}: {ahead.seconds.median:.3f} s of waiting, {none.seconds.median:.3f} s without"
        checks.append(Check(promise=promise, passed=hidden >= HIDDEN_SHARE, measured=told))
    return checks


def hidden_share(ahead: Figure, none: Figure) -> float:
    """How much of the wait without read-ahead the consumer does not see."""
    return 1 - ahead.median / none.median


def _times(
    promise: str,
    slow: Cell | None,
    quick: Cell | None,
    *,
    at_least: float | None = None,
    at_most: float | None = None,
) -> Check:
    """Judge how many times as long `slow` took as `quick`."""
    if quick is None or quick.seconds is None:
        return Check(promise=promise, passed=False, measured=_why(quick))
    if slow is None or slow.seconds is None:
        # A peer that gave up later than the bound would have broken it, had it gone on.
        given_up = None if slow is None or slow.failed_s is None else slow.failed_s / quick.seconds.median
        passed = given_up is not None and at_least is not None and given_up >= at_least
        told = _why(slow)
        if slow is not None and given_up is not None:
            told = f"more than {given_up:,.1f} times: {slow.reader} gave no row ({slow.failure})"
        return Check(promise=promise, passed=passed, measured=told)
    ratio = slow.seconds.median / quick.seconds.median
    spread = (
        f"{slow.seconds.least / quick.seconds.most:,.2f} to {slow.seconds.most / quick.seconds.least:,.2f}"
    )
    seconds = ", ".join(
        f"{cell.reader} {cell.seconds.median:,.3f} s" for cell in (slow, quick) if cell.seconds is not None
    )
    passed = ratio >= at_least if at_least is not None else ratio <= (at_most or 0.0)
    return Check(promise=promise, passed=passed, measured=f"{ratio:,.2f} times ({spread}): {seconds}")


def _why(cell: Cell | None) -> str:
    return "not measured" if cell is None else f"not measured ({cell.reader}: {cell.failure})"


def _cell(runs: list[Run]) -> Cell:
    first = runs[0]
    good = [run for run in runs if run.failure is None]
    cell = Cell(part=first.part, case=first.case, reader=first.reader)
    if not good:
        return msgspec.structs.replace(cell, failure=first.failure, failed_s=_failed_s(first))
    failed = len(runs) - len(good)
    return msgspec.structs.replace(
        cell,
        seconds=_figure(good, EVENTS[first.part]),
        peak_mb=_figure(good, "peak_mb"),
        cpu_s=_figure(good, "cpu_s"),
        rows=good[0].facts.get("rows"),
        handed_over=good[0].facts.get("handed_over"),
        rounds=len(good),
        failure=f"failed {failed} of {len(runs)} times" if failed else None,
    )


def _failed_s(run: Run) -> float | None:
    """How long a run went on before it failed, at least."""
    stopped = _STOPPED.match(run.failure or "")
    if run.failed_s is None and stopped is not None:
        return max(0.0, float(stopped[1].replace(",", "")) - _IMPORTS_S)
    return run.failed_s


def _figure(runs: list[Run], name: str) -> Figure | None:
    values = [float(value) for run in runs if isinstance(value := run.facts.get(name), int | float)]
    if not values:
        return None
    return Figure(median=statistics.median(values), least=min(values), most=max(values))
