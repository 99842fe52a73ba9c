"""`lazydelta kql`: the rows of a query in KQL, streamed; without a query, a prompt.

Contract: as `lazydelta sql`: rows are written as they come, and a reader of the pipe that has enough ends the
query. A query that is not given is read from stdin, or asked for where stdin is a terminal.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lazydelta.cli import arguments as arg
from lazydelta.cli.outcome import told_at_the_end
from lazydelta.cli.sql_command import (
    Format,
    MemoryLimit,
    Output,
    Tables,
    TempDirectory,
    named_url,
)
from lazydelta.errors import InvalidRequestError

if TYPE_CHECKING:
    import pyarrow as pa

    from lazydelta.engines.kql.result import KqlResult
    from lazydelta.rows.iterator import LazyRecordBatchIterator

EXAMPLES = """\b
Examples:
  lazydelta kql ./TelemetryDelta "external_table('TelemetryDelta') | take 10"
  lazydelta kql ./orders "t | where ts > ago(1h) | summarize count() by id"
  lazydelta kql ./orders "t | join (d) on id" --table d=./devices
  lazydelta kql ./orders "declare query_parameters(n:long); t | take n" \\
    --parameter n=5
  lazydelta kql ./orders "t | where value > 3" --explain --json | jq .
  lazydelta kql ./orders < query.kql
  lazydelta kql ./orders

The table is called t, this, and has the name of its folder, or what --name says; each
of them also as external_table('…') and table('…'). On a terminal: a table. On a pipe:
CSV with a header, or what --format says. Without a query: what stdin says, or a prompt
with history and completion, where an empty line runs the query and #help tells more.
"""

Query = Annotated[
    str | None,
    typer.Argument(metavar="KQL", help="The query. Default: stdin, or a prompt.", show_default=False),
]
Name = Annotated[
    str | None,
    typer.Option("--name", metavar="NAME", help="What queries call the table, besides.", show_default=False),
]
Parameters = Annotated[
    list[str] | None,
    typer.Option(
        "--parameter",
        metavar="NAME=VALUE",
        help="Of declare query_parameters; may be given more than once.",
        show_default=False,
    ),
]


def kql(
    url: arg.Url,
    query: Query = None,
    *,
    table: Tables = None,
    name: Name = None,
    parameter: Parameters = None,
    format_: Format = None,
    output: Output = None,
    memory_limit: MemoryLimit = None,
    temp_directory: TempDirectory = None,
    version: arg.Version = None,
    timestamp: arg.Timestamp = None,
    storage_option: arg.StorageOptions = None,
    explain: arg.Explain = False,
    as_json: arg.Json = False,
    debug: arg.Debug = False,
) -> None:
    """Run a query in KQL and write its rows as they come."""
    from lazydelta.cli.show_rows import chosen_format

    chosen = chosen_format("jsonl" if as_json else format_, output)
    more = dict(named_url(text) for text in table or ())
    values = dict(_parameter(text) for text in parameter or ())
    options = arg.option_pairs(storage_option)
    is_prompt = query is None and sys.stdin is not None and sys.stdin.isatty()
    if query is None and not is_prompt:
        query = "" if sys.stdin is None else sys.stdin.read()
    this = arg.open_table(url, version, timestamp, storage_option, debug=debug)
    from lazydelta.queries import kql_tables
    from lazydelta.table_queries import folder_name

    names = [given for given in ("t", "this", folder_name(this.url), name) if given]
    tables: dict[str, Any] = {**dict.fromkeys(names, this), **more}  # Any: a table, or its address
    _check_names(names, more)

    def ask(text: str) -> KqlResult:
        return kql_tables(
            text,
            tables,
            parameters=values,
            memory_limit=memory_limit,
            temp_directory=temp_directory,
            storage_options=options,
        )

    if query is None:
        from lazydelta.cli.kql_prompt import Prompt

        columns = {given: list(this.schema.names) for given in names} | {given: [] for given in more}
        Prompt(ask, columns, format_=chosen, is_explained=explain).run()
        return
    with ask(query) as found, told_at_the_end(found.report, is_wanted=explain):
        show_kql_rows(found, format_=chosen, output=output)


def show_kql_rows(found: KqlResult, *, format_: str, output: str | None) -> None:
    """Write every batch as it comes, timespans as Kusto writes them."""
    from lazydelta.cli.show_rows import show_rows

    json_columns = frozenset(column.name for column in found.columns if column.type == "dynamic")
    show_rows(_with_texts(found), format_=format_, output=output, json_columns=json_columns)


def _with_texts(found: KqlResult) -> LazyRecordBatchIterator:
    """The rows with timespans as text."""
    import pyarrow as pa

    from lazydelta.engines.kql.timespans import timespan_texts
    from lazydelta.rows.iterator import LazyRecordBatchIterator

    spans = [at for at, column in enumerate(found.columns) if column.type == "timespan"]
    schema = found.schema
    for at in spans:
        schema = schema.set(at, schema.field(at).with_type(pa.string()))

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in found:
            arrays = list(batch.columns)
            for at in spans:
                arrays[at] = timespan_texts(arrays[at])
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    return LazyRecordBatchIterator(
        schema, (batch for batch in batches()), where="the query", stop=found.close
    )


def _check_names(names: list[str], more: Mapping[str, str]) -> None:
    for name in more:
        if name in names:
            raise InvalidRequestError(
                f"the table of the address is called {name} already",
                "--table",
                "give the other table another name",
            )


def _parameter(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name.strip() and equals):
        raise InvalidRequestError("a --parameter is not NAME=VALUE", "--parameter", "write --parameter n=5")
    return name.strip(), value
