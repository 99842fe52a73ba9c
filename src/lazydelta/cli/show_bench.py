"""A climbed ladder on stdout: a table that fits the terminal, tab-separated lines, or one JSON object."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lazydelta.cli.streams import AlignedRows, is_terminal, write_json_lines, write_lines, write_told
from lazydelta.cli.text import human_bytes, one_line

if TYPE_CHECKING:
    from lazydelta.ladder.rungs import LadderReport, RungResult

HEADERS = ("rung", "first", "complete", "found", "requests", "bytes", "memory", "from")
_RIGHT = set(HEADERS[1:7])


def show_ladder(report: LadderReport, *, as_json: bool) -> None:
    """Write what was measured."""
    if as_json:
        write_json_lines([report])
        return
    rows = list(map(_cells, report.rungs))
    if is_terminal():
        AlignedRows(HEADERS, right=_RIGHT, whole={"rung"}).write(rows)
    else:
        write_lines(map("\t".join, [HEADERS, *rows]))
    told = [*(_unmeasured(report) if is_terminal() else ()), *_failed_rounds(report), *_about(report)]
    write_told("\n".join(f"{label:<8} {one_line(text)}" for label, text in told))


def _cells(result: RungResult) -> tuple[str, ...]:
    run = result.run
    if run is None or run.error is not None:
        why = one_line(f"not run: {result.skipped}" if run is None else f"failed: {run.error}")
        return (result.name.value, "", "", "", "", "", "", why)
    more = "+" if run.is_cut else ""
    return (
        result.name.value,
        "" if run.first_ms is None else _time(run.first_ms),
        _time(run.total_ms) + more,
        f"{run.count:,}{more}",
        f"{run.requests:,}",
        human_bytes(run.bytes_read),
        "" if run.peak_bytes is None else human_bytes(run.peak_bytes),
        "the tail" if run.source == "none" else one_line(run.source),
    )


def _unmeasured(report: LadderReport) -> Iterator[tuple[str, str]]:
    """What has no figures, and why: the whole of it, for which the table of a terminal has no room."""
    for result in report.rungs:
        if result.run is None:
            yield "not run", f"{result.name.value}: {result.skipped}"
        elif result.run.error is not None:
            yield "failed", f"{result.name.value}: {result.run.error}"


def _failed_rounds(report: LadderReport) -> Iterator[tuple[str, str]]:
    """Rounds without figures of rungs that have some: only the rounds before were counted."""
    for result in report.rungs:
        if result.failed is not None:
            yield "failed", f"{result.name.value}, in round {result.rounds}: {result.failed}"


def _about(report: LadderReport) -> Iterator[tuple[str, str]]:
    files = "" if report.files_known is None else f", {report.files_known:,} files"
    yield "table", f"{report.table} @ {report.version:,}{files}"
    yield "filter", f"{report.where or 'none'} ({report.where_from})"
    up = "; the time was up" if report.is_time_up else ""
    rounds = max(result.rounds for result in report.rungs)
    asked = "each question once" if rounds == 1 else f"each question up to {rounds} times"
    yield "took", f"{report.seconds:,.1f} s, {asked}{up}"


def _time(ms: float) -> str:
    return f"{ms / 1000:,.2f} s" if ms >= 1000 else f"{ms:,.1f} ms"
