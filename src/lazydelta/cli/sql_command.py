"""`lazydelta sql`: the rows of a query, streamed.

Contract: rows are written as they come; a reader of the pipe that has enough ends the query. A file given by
`--output` appears when it is complete, or not at all.
"""

from __future__ import annotations

from typing import Annotated

import typer

from lazydelta.cli import arguments as arg
from lazydelta.cli.outcome import told_at_the_end
from lazydelta.errors import InvalidRequestError

EXAMPLES = """\b
Examples:
  lazydelta sql ./orders "select count(*) from t"
  lazydelta sql s3://lake/orders "select * from t where value > 3 limit 10"
  lazydelta sql ./orders "from t join d using (id)" --table d=./devices
  lazydelta sql ./orders "from t select date, avg(value) group by all" --json
  lazydelta sql ./orders "select * from t" --output orders.parquet
  lazydelta sql ./orders "select max(ts) from t where value > 3" --explain

The table is called t, this, and by the name of its folder. The language is DuckDB's SQL;
times without a zone are UTC. On a terminal: a table. On a pipe: CSV with a header, or what
--format says. Nested values are JSON in a table and in CSV.
"""

FORMATS = ("table", "csv", "json", "jsonl", "parquet")
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
        help="table, csv, json, jsonl or parquet. Default: by the file's name, else by who reads.",
        show_default=False,
        autocompletion=lambda: list(FORMATS),
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
    more = dict(named_url(text) for text in table or ())
    for name in {"t", "this"} & {name.lower() for name in more}:
        raise InvalidRequestError(
            f"the table of the address is called {name} already",
            "--table",
            "give the other table another name",
        )
    options = arg.option_pairs(storage_option)
    this = arg.open_table(url, version, timestamp, storage_option, debug=debug)
    from lazydelta.queries import query_tables
    from lazydelta.table_queries import folder_name

    folder = folder_name(this.url)
    names = ["t", "this"]
    if folder and folder.lower() not in (name.lower() for name in (*names, *more)):
        names.append(folder)
    found = query_tables(
        query,
        {**dict.fromkeys(names, this), **more},
        memory_limit=memory_limit,
        temp_directory=temp_directory,
        storage_options=options,
    )
    with found, told_at_the_end(found.explain, is_wanted=explain):
        show_rows(found, format_=chosen, output=output)


def named_url(text: str) -> tuple[str, str]:
    """A table of `--table NAME=URL`."""
    name, equals, url = text.partition("=")
    if not (name.strip() and equals and url):
        raise InvalidRequestError("a --table is not NAME=URL", "--table", "write --table devices=./devices")
    return name.strip(), url
