"""`lazydelta sql`: the rows of a query, streamed.

Contract: rows are written as they come; a reader of the pipe that has enough ends the query. A file given by
`--output` appears when it is complete, or not at all.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from lazydelta.cli import arguments as arg
from lazydelta.errors import InvalidRequestError

if TYPE_CHECKING:
    from lazydelta.engines.sql_result import SqlResult

EXAMPLES = """\b
Examples:
  lazydelta sql ./orders "select count(*) from t"
  lazydelta sql s3://lake/orders "select * from t where value > 3 limit 10"
  lazydelta sql ./orders "select * from t join d using (id)" --table d=./devices
  lazydelta sql ./orders "from t select date, avg(value) group by all" --json | jq .
  lazydelta sql ./orders "select * from t" --output orders.parquet
  lazydelta sql ./orders "select max(ts) from t where value > 3" --explain

\b
The table is called t, and this. The language is DuckDB's SQL; times without a zone are
UTC. On a terminal: a table. On a pipe: CSV with a header, or what --format says. Nested
values are JSON in a table and in CSV.
"""

Query = Annotated[str, typer.Argument(metavar="SQL", help="The query.", show_default=False)]
Tables = Annotated[
    list[str] | None,
    typer.Option(
        "--table", metavar="NAME=URL", help="One more table; may be given more than once.", show_default=False
    ),
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="NAME",
        help="table, csv, jsonl or parquet. Default: by the file's name, else by who reads.",
        show_default=False,
    ),
]
Output = Annotated[
    str | None, typer.Option(metavar="FILE", help="Write to this file, not to stdout.", show_default=False)
]
MemoryLimit = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE", help="What the query may hold before it spills: 500MB, 2GiB.", show_default=False
    ),
]
TempDirectory = Annotated[
    str | None, typer.Option(metavar="FOLDER", help="Where it spills to.", show_default=False)
]


def sql(
    url: arg.Url,
    query: Query,
    *,
    table: Tables = None,
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
    """Run a query in SQL and write its rows as they come."""
    from lazydelta.cli.show_rows import chosen_format, show_rows

    chosen = chosen_format("jsonl" if as_json else format_, output)
    more = dict(_named(text) for text in table or ())
    for name in {"t", "this"} & {name.lower() for name in more}:
        raise InvalidRequestError(
            f"the table of the address is called {name} already",
            "--table",
            "give the other table another name",
        )
    options = arg.option_pairs(storage_option or ())
    this = arg.open_table(url, version, timestamp, storage_option, debug=debug)
    from lazydelta.queries import query_tables

    found = query_tables(
        query,
        {"t": this, "this": this, **more},
        memory_limit=memory_limit,
        temp_directory=temp_directory,
        storage_options=options,
    )
    with found, _explained(found, is_wanted=explain):
        show_rows(found, format_=chosen, output=output)


@contextmanager
def _explained(found: SqlResult, *, is_wanted: bool) -> Iterator[None]:
    """Tell what the query did once it is over: to its end, or because the reader of the pipe had enough."""
    try:
        yield
    except BrokenPipeError:
        if is_wanted:
            print(found.explain(), file=sys.stderr)
        raise
    if is_wanted:
        print(found.explain(), file=sys.stderr)


def _named(text: str) -> tuple[str, str]:
    name, equals, url = text.partition("=")
    if not (name.strip() and equals and url):
        raise InvalidRequestError("a --table is not NAME=URL", "--table", "write --table devices=./devices")
    return name.strip(), url
