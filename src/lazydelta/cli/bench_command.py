"""`lazydelta bench`: the ladder on the user's own table. Nothing is written to it."""

from __future__ import annotations

from typing import Annotated

import typer

from lazydelta.cli import arguments as arg
from lazydelta.cli.outcome import log_to_stderr
from lazydelta.cli.progress_lines import ProgressLines

EXAMPLES = """\b
Examples:
  lazydelta bench s3://lake/orders
  lazydelta bench ./orders --where "date = '2026-02-08'" --seconds 20
  lazydelta bench ./orders --json | jq '.rungs[] | [.name, .run.total_ms]'

Each rung is one question, asked in processes of its own: open, the newest file, 100 files,
100 rows, the files that a filter leaves (from the checkpoint, from the sidecar, from the
cache), every file. Without --where the filter asks for the newest period. Times are from
before the table is opened, imports done; memory is the peak over the imported process. Of
several --rounds the one in the middle is told. Where the time is up, counts have a "+".
"""


def bench(
    url: arg.Url,
    *,
    where: Annotated[
        str | None,
        typer.Option(metavar="SQL", help="Measure this filter, not the newest period.", show_default=False),
    ] = None,
    seconds: Annotated[
        float, typer.Option(metavar="N", min=1.0, max=86_400.0, help="Stop after about N seconds.")
    ] = 60.0,
    rounds: Annotated[int, typer.Option(metavar="N", min=1, max=100, help="Ask each question N times.")] = 1,
    version: arg.Version = None,
    storage_option: arg.StorageOptions = None,
    as_json: arg.Json = False,
    debug: arg.Debug = False,
) -> None:
    """Measure what queries of a table cost, step by step."""
    log_to_stderr(is_wanted=debug)
    from lazydelta.cli.prompt_exit import raise_on_interrupt
    from lazydelta.cli.show_bench import show_ladder
    from lazydelta.ladder.climb import climb

    raise_on_interrupt()
    with ProgressLines(is_shown=not debug) as progress:
        report = climb(
            url,
            where=where,
            version=version,
            storage_options=arg.option_pairs(storage_option),
            seconds=seconds,
            rounds=rounds,
            progress=progress,
        )
    show_ladder(report, as_json=as_json)
