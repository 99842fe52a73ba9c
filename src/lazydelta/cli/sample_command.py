"""`lazydelta sample`: a small table to try things on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lazydelta.cli import arguments as arg
from lazydelta.cli.progress_lines import ProgressLines
from lazydelta.cli.streams import write_json_lines, write_lines
from lazydelta.cli.text import human_bytes, one_line

if TYPE_CHECKING:
    from lazydelta.sample.make import SampleReport

EXAMPLES = """\b
Examples:
  lazydelta sample telemetry
  lazydelta sample telemetry --files 1000 --hours 240 --seed 7
  lazydelta sample /tmp/t --json | jq .version

A Delta table of sensor readings, partitioned by the hour (_event_hour), with a checkpoint,
its stats sidecar and two commits after it. No Spark is needed, and the same arguments give
the same rows. Columns: device_id, event_time, value, status, city, _event_hour. In the last
hours sensor-042 drifts.
"""


def sample(
    path: Annotated[str, typer.Argument(metavar="PATH", help="A folder that is empty or not there.")],
    *,
    files: Annotated[int, typer.Option(metavar="N", help="Data files, over all hours.")] = 96,
    hours: Annotated[int, typer.Option(metavar="N", help="Hours, the last of them 2026-02-10 23:00.")] = 48,
    rows: Annotated[int, typer.Option(metavar="N", help="Rows of a file.")] = 500,
    seed: Annotated[int, typer.Option(metavar="N", help="Another seed gives other rows.")] = 1,
    as_json: arg.Json = False,
) -> None:
    """Make a small table of telemetry, without Spark."""
    from lazydelta.cli.prompt_exit import raise_on_interrupt
    from lazydelta.sample.make import SampleSpec, make_sample

    raise_on_interrupt()
    spec = SampleSpec(files=files, hours=hours, rows=rows, seed=seed)
    with ProgressLines(only_bar=True) as progress:
        report = make_sample(Path(path), spec, progress)
    if as_json:
        write_json_lines([report])
    else:
        write_lines(f"{label:<11} {one_line(text)}" for label, text in _lines(report))


def _lines(report: SampleReport) -> Iterator[tuple[str, str]]:
    yield "table", f"{report.table} @ {report.version:,}"
    yield "rows", f"{report.rows:,} in {report.files:,} files, {human_bytes(report.size_bytes)}"
    yield "hours", f"{report.first_hour} to {report.last_hour}"
    yield "checkpoint", f"version {report.checkpoint_version:,}, with a stats sidecar"
