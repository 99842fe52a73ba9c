"""`lazydelta sidecar …`: build, verify, show and clean the stats sidecars of a table.

Heavy imports wait until a command runs. Contract: progress on stderr, one summary on stdout; a verification
that finds a difference ends with exit code 5 after it has told what it found.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from lazydelta.cli import arguments as arg
from lazydelta.cli.ingest_arguments import SparkConf
from lazydelta.cli.outcome import log_to_stderr
from lazydelta.cli.progress_lines import ProgressLines
from lazydelta.errors import InvalidRequestError

if TYPE_CHECKING:
    from lazydelta.sidecar.format.config import SidecarConfig
    from lazydelta.storage import Storage
    from lazydelta.upkeep.build import BuildReport

_BUILD_EXAMPLES = """\b
Examples:
  lazydelta sidecar build s3://lake/orders
  lazydelta sidecar build ./orders --time-column order_hour --json
  lazydelta sidecar build ./orders --spark --checkpoint

A sidecar belongs to a checkpoint: the newest one at or below --version. Where that one
has a sidecar already, it stays. What the sidecar before it holds is used again, unless --full
is given. Commits after the checkpoint are gathered in delta files, once there are 50 of them.
Without Spark the memory stays bounded, whatever the table's size.
"""
_VERIFY_EXAMPLES = """\b
Examples:
  lazydelta sidecar verify s3://lake/orders
  lazydelta sidecar verify ./orders --version 120
  lazydelta sidecar verify ./orders --json | jq .differences

Every live file of the version must be in the sidecar once, with the statistics, size,
partition values and deletion vector of the log; what the manifest says of its parts must
be true. A difference names the file; the exit code is 5 then.
"""
_SHOW_EXAMPLES = """\b
Examples:
  lazydelta sidecar show ./orders
  lazydelta sidecar show ./orders --json | jq 'select(.is_valid).version'

On a pipe: version, kind (sidecar, part or delta), level, rows, removed rows, row groups,
bytes, least and greatest value of the order column, file, and for a sidecar "valid" or why
it is not, separated by tabs. With --json: one object per sidecar, parts inside, and one per
delta file.
"""
_CLEAN_EXAMPLES = """\b
Examples:
  lazydelta sidecar clean ./orders --dry-run
  lazydelta sidecar clean s3://lake/orders --retention-hours 24

What goes: sidecars that a newer one replaced longer ago than the retention, manifests that
do not belong to the log, parts that no manifest names, delta files that a sidecar covers,
and files of killed writers. Anything younger than 24 hours may belong to a build under way
and stays. The newest valid sidecar and files under other names are never touched.
On a pipe: bytes, kind, file and reason, separated by tabs.
"""

Directory = Annotated[
    str | None,
    typer.Option(
        metavar="FOLDER",
        help="Where the sidecars are, below the table. Default: _delta_log/_lazy, or what "
        "delta.sidecar.directory says.",
        show_default=False,
    ),
]
SidecarVersion = Annotated[
    int | None,
    typer.Option("--version", metavar="N", help="The sidecar of this version.", show_default=False),
]

sidecar_app = typer.Typer(
    name="sidecar",
    help="Build, verify, show and clean stats sidecars.",
    rich_markup_mode=None,
    no_args_is_help=True,
)


@sidecar_app.command(epilog=_BUILD_EXAMPLES)
def build(
    url: arg.Url,
    *,
    version: Annotated[
        int | None,
        typer.Option(metavar="N", help="Of the newest checkpoint up to N.", show_default=False),
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Use nothing of earlier sidecars.")] = False,
    time_column: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Sort by this column. Default: the table's property lazydelta.time.column, else the "
            "partition column _event_hour, else the first one.",
            show_default=False,
        ),
    ] = None,
    row_group_rows: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Rows of a row group. Default: 10000.", show_default=False),
    ] = None,
    directory: Directory = None,
    spark: Annotated[bool, typer.Option("--spark", help="Build on Spark.")] = False,
    checkpoint: Annotated[
        bool, typer.Option("--checkpoint", help="Let Delta on Spark write a checkpoint first.")
    ] = False,
    spark_conf: SparkConf = None,
    storage_option: arg.StorageOptions = None,
    as_json: arg.Json = False,
    debug: arg.Debug = False,
) -> None:
    """Write the sidecar of the newest checkpoint."""
    log_to_stderr(is_wanted=debug)
    from lazydelta.cli.show_sidecar import show_build
    from lazydelta.upkeep.build import build_sidecar
    from lazydelta.upkeep.deltas import write_delta_files

    storage, config = _opened(url, storage_option, directory)
    config = msgspec.structs.replace(config, time_column=time_column)
    if row_group_rows is not None:
        config = msgspec.structs.replace(config, row_group_rows=row_group_rows)
    is_on_spark = spark or checkpoint or bool(spark_conf)
    if is_on_spark and version is not None:
        raise InvalidRequestError(
            "--version does not go with Spark",
            "lazydelta sidecar build",
            "leave it out to build the newest, or build that version without Spark",
        )
    report: BuildReport | None = None
    with ProgressLines(is_shown=not debug) as progress:
        if is_on_spark:
            report = _build_on_spark(
                url,
                config,
                arg.option_pairs(storage_option),
                settings=arg.option_pairs(spark_conf, option="--spark-conf"),
                checkpoint=checkpoint,
                full=full,
                progress=progress,
            )
        if report is None:
            report = build_sidecar(storage, config=config, version=version, full=full, progress=progress)
        deltas = write_delta_files(storage, config=config, version=version, anew=full, progress=progress)
    show_build(report, deltas, as_json=as_json)


@sidecar_app.command(epilog=_VERIFY_EXAMPLES)
def verify(
    url: arg.Url,
    *,
    version: SidecarVersion = None,
    directory: Directory = None,
    storage_option: arg.StorageOptions = None,
    as_json: arg.Json = False,
    debug: arg.Debug = False,
) -> None:
    """Compare a sidecar with the log, file by file."""
    log_to_stderr(is_wanted=debug)
    from lazydelta.cli.show_sidecar import show_verification
    from lazydelta.upkeep.verify import verify_sidecar

    storage, config = _opened(url, storage_option, directory)
    with ProgressLines(is_shown=not debug) as progress:
        report = verify_sidecar(storage, config=config, version=version, progress=progress)
    show_verification(report, as_json=as_json)
    if not report.is_ok:
        raise report.error()


@sidecar_app.command(epilog=_SHOW_EXAMPLES)
def show(
    url: arg.Url,
    *,
    directory: Directory = None,
    storage_option: arg.StorageOptions = None,
    as_json: arg.Json = False,
    debug: arg.Debug = False,
) -> None:
    """List the sidecars: versions, parts, ranges, sizes."""
    log_to_stderr(is_wanted=debug)
    from lazydelta.cli.show_sidecar import show_sidecars
    from lazydelta.upkeep.show import describe_sidecars

    storage, config = _opened(url, storage_option, directory)
    show_sidecars(describe_sidecars(storage, config), as_json=as_json)


@sidecar_app.command(epilog=_CLEAN_EXAMPLES)
def clean(
    url: arg.Url,
    *,
    retention_hours: Annotated[
        float,
        typer.Option(metavar="N", help="How long a sidecar stays after a newer one replaced it."),
    ] = 168,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Delete nothing, say what would go.")] = False,
    directory: Directory = None,
    storage_option: arg.StorageOptions = None,
    as_json: arg.Json = False,
    debug: arg.Debug = False,
) -> None:
    """Delete what is left of older sidecars and killed builds."""
    log_to_stderr(is_wanted=debug)
    from lazydelta.cli.show_sidecar import show_clean
    from lazydelta.upkeep.clean import clean_sidecars

    storage, config = _opened(url, storage_option, directory)
    report = clean_sidecars(storage, config=config, retention_hours=retention_hours, dry_run=dry_run)
    show_clean(report, as_json=as_json)


def _build_on_spark(
    url: str,
    config: SidecarConfig,
    options: dict[str, str],
    *,
    settings: dict[str, str],
    checkpoint: bool,
    full: bool,
    progress: ProgressLines,
) -> BuildReport | None:
    """Let Spark write the checkpoint, if that is asked for, and the sidecar; None: there is no checkpoint."""
    from lazydelta.spark.config import SparkConfig
    from lazydelta.spark.session import get_session

    session = get_session(SparkConfig(spark=settings))
    from lazydelta.spark.checkpoint import ensure_sidecar

    return ensure_sidecar(
        session,
        url,
        storage_options=options,
        config=config,
        checkpoint=checkpoint,
        full=full,
        progress=progress,
        spark_files_min=0,  # whoever asks for Spark gets it, however small the table
    )


def _opened(
    url: str, storage_option: Sequence[str] | None, directory: str | None
) -> tuple[Storage, SidecarConfig]:
    """The table's store, and where its sidecars are: the folder that is given, else where readers look."""
    folder = None if directory is None else _checked_folder(directory)
    storage, settings = arg.open_store(url, storage_option)
    from lazydelta.sidecar.format.config import SidecarConfig
    from lazydelta.sidecar.format.names import sidecar_folder

    return storage, SidecarConfig(folder=folder or sidecar_folder(settings.sidecar_directory))


def _checked_folder(directory: str) -> str:
    from lazydelta.sidecar.format.config import is_below_table

    folder = directory.rstrip("/")
    if not is_below_table(folder):
        raise InvalidRequestError(
            f"the folder {directory!r} is not one below the table",
            "--directory",
            "give a path relative to the table, such as _delta_log/_lazy",
        )
    return folder
