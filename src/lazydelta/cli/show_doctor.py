"""What the doctor found, on stdout: findings as paragraphs that fit the terminal, or one JSON object."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lazydelta.cli.streams import is_terminal, terminal, write_json_lines, write_lines, written_at_once
from lazydelta.cli.text import human_bytes, one_line

if TYPE_CHECKING:
    from lazydelta.upkeep.doctor_findings import DoctorReport, Examined, Finding

_WIDTH_ON_PIPE = 100
_LABEL_WIDTH = 9
_STYLES = {"problem": "bold red", "warning": "bold yellow", "note": "bold"}


def show_report(report: DoctorReport, *, as_json: bool) -> None:
    """Write the findings, the worst first, and what was looked at."""
    if as_json:
        write_json_lines([report])
        return
    width = shutil.get_terminal_size((_WIDTH_ON_PIPE, 24)).columns if is_terminal() else _WIDTH_ON_PIPE
    if not is_terminal():
        write_lines(line for line, _ in _lines(report, width))
        return
    console = terminal()
    with written_at_once(console):
        for line, style in _lines(report, width):
            console.print(line, style=style)


def _lines(report: DoctorReport, width: int) -> Iterator[tuple[str, str | None]]:
    version = "" if report.version is None else f" @ {report.version:,}"
    yield one_line(f"{report.table}{version}"), None
    for finding in report.findings:
        yield "", None
        yield f"{finding.severity.value}: {finding.code.replace('_', ' ')}", _STYLES[finding.severity.value]
        for label, text in (("found", finding.what), ("why", finding.why), ("do", finding.fix)):
            for line in _paragraph(label, one_line(text), width):
                yield line, None
        if finding.remedy is not None:
            yield from _remedy(finding)
    if not report.findings:
        yield "", None
        yield "nothing to do", None
    if report.examined is not None:
        yield "", None
        for line in _paragraph("looked at", _examined(report.examined), width):
            yield line, None


def _remedy(finding: Finding) -> Iterator[tuple[str, str | None]]:
    """The command, never broken into lines: it is there to be copied."""
    assert finding.remedy is not None
    mark = "$" if finding.remedy.runs_in.value == "shell" else "spark-sql>"
    yield f"{'':<{_LABEL_WIDTH}}  {mark} {one_line(finding.remedy.command)}", None


def _paragraph(label: str, text: str, width: int) -> list[str]:
    return textwrap.wrap(
        text,
        width=max(width, 40),
        initial_indent=f"{label:<{_LABEL_WIDTH}}  ",
        subsequent_indent=" " * (_LABEL_WIDTH + 2),
        break_on_hyphens=False,
        break_long_words=False,
    )


def _examined(examined: Examined) -> str:
    if examined.is_sample_whole:
        files = f"all {examined.files_sampled:,} files"
    elif examined.files_known is None:
        files = f"the newest {examined.files_sampled:,} files (nobody knows of how many)"
    else:
        known = f"{examined.files_known:,} ({examined.files_known_from})"
        files = f"the newest {examined.files_sampled:,} files of {known}"
    names = f"{examined.log_files_listed:,} names of the log"
    if not examined.is_log_listed_whole:
        names = f"the first {names}"
    cost = f"{examined.requests:,} requests, {human_bytes(examined.bytes_read)}"
    return f"{files}; {names}; {cost}, {examined.elapsed_ms:,.0f} ms"
