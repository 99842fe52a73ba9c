"""The commands. Heavy imports wait until a command runs, so that `lazydelta --help` answers at once.

Contract: data on stdout, talk on stderr; the JSON of a command keeps its shape within a major version.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import closing
from importlib.metadata import version as installed_version
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from lazydelta.cli import arguments as arg
from lazydelta.cli import (
    bench_command,
    doctor_command,
    ingest_command,
    kql_command,
    maintenance_commands,
    sample_command,
    serve_command,
    sql_command,
    stats_command,
    ui_command,
)
from lazydelta.cli.outcome import outcome, told_at_the_end
from lazydelta.cli.progress_lines import ProgressLines
from lazydelta.cli.sidecar_commands import sidecar_app
from lazydelta.cli.streams import prepare_streams, write_json_lines, write_lines, write_told

_FILES_EXAMPLES = """\b
Examples:
  lazydelta files s3://lake/orders --limit 100
  lazydelta files ./orders --where "date = '2026-02-08' and value > 3"
  lazydelta files ./orders --order desc --limit 10
  lazydelta files ./orders --columns size,path | sort -n
  lazydelta files ./orders --json | jq .partition_values
  cd orders && lazydelta files . | xargs -d '\\n' ls -l

On a pipe: one path per line, or the columns asked for, separated by tabs; nested
values are JSON, nulls are empty, control characters are escaped. On a terminal: a
table. With --json: path, size, modification_time, partition_values and
deletion_vector (and stats), always all of them, null where there is none.

Paths are relative to the table, or absolute URIs where the file lies outside it.
"""
_EXPLAIN_EXAMPLES = """\b
Examples:
  lazydelta explain s3://lake/orders --where "ts >= '2026-01-01'"
  lazydelta explain ./orders --limit 100 --json | jq .requests
"""
_INFO_EXAMPLES = """\b
Examples:
  lazydelta info abfss://lake@account/telemetry
  lazydelta info ./orders --version 12
  lazydelta info ./orders --json | jq .num_files
"""
_HISTORY_EXAMPLES = """\b
Examples:
  lazydelta history ./orders --limit 10
  lazydelta history ./orders --json | jq 'select(.operation == "MERGE")'

On a pipe: version, timestamp, operation, bytes, "yes" where there is a checkpoint,
engine and user, separated by tabs.
"""
_APP_EXAMPLES = """Exit codes: 0 done (or the reader of the pipe had enough), 1 other error, 2 wrong
request, 3 no table, 4 no such version, 5 damaged log, 6 unsupported table, 7 storage
failed, 8 credentials refused, 9 damaged data file, 10 doctor found something to do,
130 interrupted, 143 terminated.
"""
# As a newcomer needs them: look, ask, show to others, try and judge, look after.
_ORDER = (
    *("info", "files", "history", "stats", "explain", "sql", "kql", "ui", "serve", "serve-token"),
    *("sample", "doctor", "bench", "sidecar", "ingest", "optimize", "vacuum"),
)


class _Group(TyperGroup):
    """Commands whose end is always told by an exit code."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Their names, as help lists them."""
        return sorted(super().list_commands(ctx), key=_ORDER.index)

    # Any: typer's own context class has no public name.
    def make_context(self, *args: Any, **extra: Any) -> Any:
        """Read the arguments before the command; help is written here."""
        with outcome():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        with outcome():
            return super().invoke(ctx)


app = typer.Typer(
    name="lazydelta",
    cls=_Group,
    help="Stream the live files of Delta Lake tables, newest first.",
    epilog=_APP_EXAMPLES,
    add_completion=True,
    rich_markup_mode=None,  # plain help: the same text everywhere, and rich is not loaded for it
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,  # they may hold credentials
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


app.add_typer(sidecar_app)
app.command(epilog=doctor_command.EXAMPLES)(doctor_command.doctor)
app.command(epilog=bench_command.EXAMPLES)(bench_command.bench)
app.command(epilog=sample_command.EXAMPLES)(sample_command.sample)
app.command(epilog=ingest_command.EXAMPLES)(ingest_command.ingest)
app.command(epilog=stats_command.EXAMPLES)(stats_command.stats)
app.command(epilog=sql_command.EXAMPLES)(sql_command.sql)
app.command(epilog=kql_command.EXAMPLES)(kql_command.kql)
app.command(epilog=serve_command.EXAMPLES)(serve_command.serve)
app.command(epilog=ui_command.EXAMPLES)(ui_command.ui)
app.command("serve-token", epilog=serve_command.TOKEN_EXAMPLES)(serve_command.serve_token)
maintenance_commands.register(app)


def run(arguments: Sequence[str]) -> None:
    """Run the command that the arguments name, and exit."""
    try:
        with outcome():
            prepare_streams()
            texts = arg.as_texts(arguments)
    except typer.Exit as end:
        sys.exit(end.exit_code)
    # The command itself, without typer's hook that would dress up a bug's traceback.
    typer.main.get_command(app)(texts, prog_name="lazydelta")


def _show_version(is_asked: bool) -> None:
    if is_asked:
        write_lines([f"lazydelta {installed_version('lazydelta')}"])
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", is_eager=True, callback=_show_version),
    ] = False,
) -> None:
    assert not version, "the callback ends the program"


@app.command(epilog=_FILES_EXAMPLES)
def files(
    url: arg.Url,
    *,
    where: arg.Where = None,
    limit: arg.Limit = None,
    strategy: arg.Strategy = None,
    order: arg.Order = None,
    columns: arg.Columns = None,
    with_stats: arg.WithStats = False,
    version: arg.Version = None,
    timestamp: arg.Timestamp = None,
    storage_option: arg.StorageOptions = None,
    as_json: arg.Json = False,
    explain: arg.Explain = False,
    debug: arg.Debug = False,
) -> None:
    """List the live files as they are found.

    The newest come first where a limit, a recent partition or a sidecar makes that the quick way, and always
    with --strategy reverse.
    """
    table = arg.open_table(url, version, timestamp, storage_option, debug=debug)
    scan = table.scan(where, limit=limit, strategy=strategy, order=order)
    from lazydelta.cli.show_files import show_files, usual_columns

    names = arg.column_names(columns, usual=usual_columns(as_json=as_json), with_stats=with_stats)
    with told_at_the_end(scan.explain, is_wanted=explain), closing(scan.file_batches(names)) as batches:
        show_files(batches, as_json=as_json)


@app.command(epilog=_EXPLAIN_EXAMPLES)
def explain(
    url: arg.Url,
    *,
    where: arg.Where = None,
    limit: arg.Limit = None,
    strategy: arg.Strategy = None,
    order: arg.Order = None,
    columns: arg.Columns = None,
    with_stats: arg.WithStats = False,
    version: arg.Version = None,
    timestamp: arg.Timestamp = None,
    storage_option: arg.StorageOptions = None,
    as_json: arg.Json = False,
    debug: arg.Debug = False,
) -> None:
    """Run a scan and say what it read, what it skipped, and why."""
    table = arg.open_table(url, version, timestamp, storage_option, debug=debug)
    scan = table.scan(where, limit=limit, strategy=strategy, order=order)
    names, seen = arg.column_names(columns, usual=["path"], with_stats=with_stats), 0
    total = table.info().num_files if where is None and limit is None else limit
    with ProgressLines(only_bar=True) as progress:
        for batch in scan.file_batches(names):
            seen += batch.num_rows
            progress("scanning", files=seen, total=total)
    report = scan.explain()
    if as_json:
        write_json_lines([report])
    else:
        write_told(str(report))


@app.command(epilog=_INFO_EXAMPLES)
def info(
    url: arg.Url,
    *,
    version: arg.Version = None,
    timestamp: arg.Timestamp = None,
    storage_option: arg.StorageOptions = None,
    as_json: arg.Json = False,
    debug: arg.Debug = False,
) -> None:
    """Show version, schema, features, counts and sizes.

    The file list is not read: counts and sizes come from the log's hints, where it has them.
    """
    table = arg.open_table(url, version, timestamp, storage_option, debug=debug)
    from lazydelta.cli.show_info import show_info

    show_info(table, as_json=as_json)


@app.command(epilog=_HISTORY_EXAMPLES)
def history(
    url: arg.Url,
    *,
    limit: arg.CommitLimit = None,
    version: arg.Version = None,
    timestamp: arg.Timestamp = None,
    storage_option: arg.StorageOptions = None,
    as_json: arg.Json = False,
    debug: arg.Debug = False,
) -> None:
    """List the commits that are still there, newest first."""
    table = arg.open_table(url, version, timestamp, storage_option, debug=debug)
    from lazydelta.cli.show_history import show_history

    show_history(table.history(limit), as_json=as_json)
