"""`lazydelta doctor`: what is slow about a table, and what to do.

Contract: findings on stdout; the exit code is 10 where there is more than notes, so that a script can go by
it. A table that this reader refuses is told as a finding, too, and ends as any refusal does.
"""

from __future__ import annotations

from typing import Annotated

import typer

from lazydelta.cli import arguments as arg
from lazydelta.errors import UnsupportedTableError

EXIT_FINDINGS = 10
EXAMPLES = """\b
Examples:
  lazydelta doctor s3://lake/orders
  lazydelta doctor ./orders --where "device_id = 'sensor-42'"
  lazydelta doctor ./orders --json | jq -r '.findings[].code'

Looked at: the end of the log and its listing, the sidecar, and the newest 1,000 files; never
the whole list of files, so that it takes as long for ten million of them. Nothing is written.
The exit code is 10 where there is a warning or a problem, 0 where there are notes at most.
Commands that need Spark say so; give them the same --storage-option as this one.
"""


def doctor(
    url: arg.Url,
    *,
    where: Annotated[
        str | None,
        typer.Option(metavar="SQL", help="Also say how a query with this filter fares.", show_default=False),
    ] = None,
    version: arg.Version = None,
    timestamp: arg.Timestamp = None,
    storage_option: arg.StorageOptions = None,
    as_json: arg.Json = False,
    debug: arg.Debug = False,
) -> None:
    """Say what is slow about a table and what to do about it."""
    from lazydelta.cli.show_doctor import show_report

    try:
        table = arg.open_table(url, version, timestamp, storage_option, debug=debug)
    except UnsupportedTableError as refusal:
        from lazydelta.upkeep.doctor import refused

        show_report(refused(refusal.where, refusal), as_json=as_json)
        raise
    report = table.doctor(where)
    show_report(report, as_json=as_json)
    if report.needs_work:
        raise typer.Exit(EXIT_FINDINGS)
