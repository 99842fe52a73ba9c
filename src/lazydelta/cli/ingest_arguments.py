"""The arguments of `lazydelta ingest`: settings of the [ingest] table, None where they are not given."""

from __future__ import annotations

from typing import Annotated

import typer

Source = Annotated[
    str | None,
    typer.Argument(
        metavar="SOURCE", help="A folder, file or glob; a table with --format table.", show_default=False
    ),
]
Target = Annotated[
    str | None,
    typer.Argument(metavar="TARGET", help="The Delta table, made if need be.", show_default=False),
]
EventTime = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="The column that says when a row happened.", show_default=False),
]
EventTimeFormat = Annotated[
    str | None,
    typer.Option(
        metavar="PATTERN", help="Of text that is not ISO 8601: dd.MM.yyyy HH:mm.", show_default=False
    ),
]
EventTimeUnit = Annotated[
    str | None,
    typer.Option(metavar="UNIT", help="Of numbers since 1970: s, ms, us or ns.", show_default=False),
]
Granularity = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="month, day, hour (the default), minute or second.", show_default=False
    ),
]
TimeColumn = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The partition column; _event_hour for hours.", show_default=False),
]
TimeZone = Annotated[
    str | None, typer.Option(metavar="ZONE", help="Whose calendar: UTC unless said.", show_default=False)
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="NAME",
        help="json, csv, parquet, delta, table, … (else told from the files).",
        show_default=False,
    ),
]
Options = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="KEY=VALUE", help="An option of the Spark source.", show_default=False),
]
Schema = Annotated[
    str | None,
    typer.Option(
        metavar="DDL",
        help="The columns to read, as text or a file; else inferred once and kept.",
        show_default=False,
    ),
]
MergeSchema = Annotated[
    bool | None,
    typer.Option(
        "--merge-schema/--no-merge-schema", help="Add new columns of the source.", show_default=False
    ),
]
FileSize = Annotated[
    str | None,
    typer.Option("--target-file-size", metavar="SIZE", help="Of a data file: 128MB.", show_default=False),
]
Rejects = Annotated[
    str | None,
    typer.Option(metavar="PATH", help="The table of rows without a usable time.", show_default=False),
]
Properties = Annotated[
    list[str] | None,
    typer.Option("--property", metavar="KEY=VALUE", help="A property of a new table.", show_default=False),
]
RunId = Annotated[
    str | None,
    typer.Option(metavar="ID", help="The same run again makes no commit.", show_default=False),
]
Stream = Annotated[
    str | None,
    typer.Option(
        metavar="MODE",
        help="Stream: available-now (what is there, then end) or continuous.",
        show_default=False,
    ),
]
CheckpointLocation = Annotated[
    str | None, typer.Option(metavar="PATH", help="Where a stream keeps its progress.", show_default=False)
]
TriggerInterval = Annotated[
    str | None, typer.Option(metavar="TEXT", help="Of a continuous stream: 10 seconds.", show_default=False)
]
ReadAgain = Annotated[
    bool,
    typer.Option("--read-again", help="Start a stream anew though the table has rows of this source."),
]
Sidecar = Annotated[
    bool | None,
    typer.Option(
        "--sidecar/--no-sidecar", help="Write the stats sidecar of new checkpoints.", show_default=False
    ),
]
Checkpoint = Annotated[
    bool | None,
    typer.Option(
        "--checkpoint/--no-checkpoint", help="Write a checkpoint at the end in any case.", show_default=False
    ),
]
SparkConf = Annotated[
    list[str] | None,
    typer.Option(
        "--spark-conf",
        metavar="KEY=VALUE",
        help="A setting of Spark: spark.master=local[4].",
        show_default=False,
    ),
]
Config = Annotated[
    str | None,
    typer.Option("--config", metavar="FILE", help="The settings file (TOML).", show_default=False),
]
PrintConfig = Annotated[
    bool, typer.Option("--print-config", help="Show the effective settings as TOML, and end.")
]
