"""Climb the ladder: every rung in processes of its own, round by round, within a time.

Contract: the whole takes about `seconds` at most, and no rung is killed before its share is long past; what
was not run, or whose process died, says so. Rounds go over all rungs, so that a disturbance does not hit one
rung alone; of each rung the round in the middle is told, with the fastest and the slowest. A rung that takes
long is asked once.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from statistics import median_low

import msgspec

from lazydelta.ladder.newest_period import newest_period
from lazydelta.ladder.rungs import RUNGS, LadderReport, Rung, RungRequest, RungResult, RungRun
from lazydelta.table import open as open_table
from lazydelta.upkeep.progress import Progress, silent

_SLOW_MS = 3_000.0  # a rung that takes longer is not repeated
_GRACE_SECONDS = 120.0  # for a process to start and to end on a busy machine, past its share
_LEFT_FOR_REST = 0.5  # of the time that is left, that one rung may take, but for the last


def climb(
    url: str,
    *,
    where: str | None = None,
    version: int | None = None,
    storage_options: Mapping[str, str] | None = None,
    seconds: float = 60.0,
    rounds: int = 1,
    progress: Progress = silent,
) -> LadderReport:
    """Measure the rungs on the table at `url`, with the filter `where`, else that of the newest period."""
    started = time.monotonic()
    options = dict(storage_options or {})
    table = open_table(url, version=version, storage_options=options)
    where_from = "the caller"
    if where is None:
        found = newest_period(table)
        where, where_from = (
            (None, "no column tells a time") if found is None else (found.where, found.told_by)
        )
    else:
        table.scan(where)  # a filter that makes no sense is an error before anything is measured
    runs: dict[Rung, list[RungRun]] = {rung: [] for rung in RUNGS}
    climbing = _Climb(url, options, version, where, until=started + seconds)
    for number, rung in _turns(runs, rounds, where=where):
        left = climbing.seconds_left()
        step = (number - 1) * len(RUNGS) + RUNGS.index(rung) + 1
        progress(
            "measuring",
            what=rung.name.value,
            step=step,
            steps=rounds * len(RUNGS),
            seconds_left=left,
            then=_next(rung),
        )
        if left <= 0:
            break
        runs[rung].append(climbing.ask(rung))
    return LadderReport(
        table=table.url,
        version=table.version,
        where=where,
        where_from=where_from,
        files_known=table.info().num_files,
        seconds=time.monotonic() - started,
        is_time_up=climbing.seconds_left() <= 0,
        rungs=tuple(_result(rung, found, where) for rung, found in runs.items()),
    )


def _next(rung: Rung) -> str:
    at = RUNGS.index(rung) + 1
    return RUNGS[at].name.value if at < len(RUNGS) else "the figures"


def _turns(
    runs: Mapping[Rung, Sequence[RungRun]], rounds: int, *, where: str | None
) -> Iterator[tuple[int, Rung]]:
    """Which rung is asked next: round by round, those that were slow or failed not again."""
    for number in range(1, rounds + 1):
        for rung, before in runs.items():
            if rung.has_filter and where is None:
                continue
            if not any(run.total_ms > _SLOW_MS or run.error is not None or run.is_cut for run in before):
                yield number, rung


def _result(rung: Rung, runs: Sequence[RungRun], where: str | None) -> RungResult:
    asked = where if rung.has_filter else None
    if not runs:
        why = (
            "no column tells a time; give --where" if rung.has_filter and where is None else "the time was up"
        )
        return RungResult(name=rung.name, about=rung.about, where=asked, rounds=0, run=None, skipped=why)
    measured = [run for run in runs if run.error is None] or runs
    totals = [run.total_ms for run in measured]
    middle = measured[totals.index(median_low(totals))]
    return RungResult(
        name=rung.name,
        about=rung.about,
        where=asked,
        rounds=len(runs),
        run=middle,
        total_ms_min=min(totals),
        total_ms_max=max(totals),
        failed=None if middle.error is not None else runs[-1].error,
    )


class _Climb:
    """One table, and the time that is left for it."""

    def __init__(
        self, url: str, options: dict[str, str], version: int | None, where: str | None, *, until: float
    ) -> None:
        self._url = url
        self._options = options
        self._version = version
        self._where = where
        self._until = until

    def seconds_left(self) -> float:
        return max(0.0, self._until - time.monotonic())

    def ask(self, rung: Rung) -> RungRun:
        share = self.seconds_left() * (1.0 if rung is RUNGS[-1] else _LEFT_FOR_REST)
        request = RungRequest(
            rung=rung,
            url=self._url,
            storage_options=self._options,
            version=self._version,
            where=self._where if rung.has_filter else None,
            seconds=share,
        )
        command = [sys.executable, "-m", "lazydelta.ladder.rung_process"]
        try:
            done = subprocess.run(
                command,
                input=msgspec.json.encode(request),
                capture_output=True,
                timeout=2 * share + _GRACE_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return _failed("its process did not end in its time")
        if done.returncode < 0:
            return _failed(f"its process was killed by signal {-done.returncode}")
        if done.returncode > 0:
            lines = done.stderr.decode(errors="replace").strip().splitlines()
            return _failed(f"its process failed: {lines[-1] if lines else f'exit code {done.returncode}'}")
        return msgspec.json.decode(done.stdout, type=RungRun)


def _failed(why: str) -> RungRun:
    """A run without figures: what the system killed for its memory, say, must not take the others with it."""
    return RungRun(
        first_ms=None,
        total_ms=0.0,
        count=0,
        is_cut=False,
        requests=0,
        bytes_read=0,
        round_trips=0,
        peak_bytes=None,
        source="none",
        error=why,
    )
