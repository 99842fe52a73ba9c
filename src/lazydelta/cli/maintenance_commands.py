"""`lazydelta optimize` and `lazydelta vacuum`: maintenance on Spark.

Heavy imports wait until a command runs. Contract: progress on stderr, one summary on stdout. A sidecar that
could not be written is a warning: the data is as it should be.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from lazydelta.cli import arguments as arg
from lazydelta.cli.ingest_arguments import Config, FileSize, SparkConf
from lazydelta.cli.outcome import log_to_stderr
from lazydelta.cli.progress_lines import ProgressLines
from lazydelta.cli.streams import write_json_lines, write_lines
from lazydelta.cli.text import human_bytes, one_line

if TYPE_CHECKING:
    from lazydelta.spark.config import IngestConfig
    from lazydelta.spark.maintenance import OptimizeReport, VacuumReport

_OPTIMIZE_EXAMPLES = """\b
Examples:
  lazydelta optimize ./telemetry
  lazydelta optimize ./telemetry --where "_event_hour >= '2026020800'"
  lazydelta optimize s3://lake/telemetry --target-file-size 256MB --json

Small files become larger ones, never across periods: the table must be partitioned by its
time column (the property lazydelta.time.column), as `lazydelta ingest` makes it. Afterwards
Delta writes a checkpoint, and the stats sidecar follows.
"""
_VACUUM_EXAMPLES = """\b
Examples:
  lazydelta vacuum ./telemetry --dry-run
  lazydelta vacuum ./telemetry --retention-hours 336

Delta's VACUUM, then the sidecars that newer ones replaced longer ago than the retention;
what the newest sidecar refers to stays. On a pipe: with --dry-run one line for each file
that would go. A retention shorter than the table allows needs --force.
"""


def register(app: typer.Typer) -> None:
    """Add both commands."""
    app.command(epilog=_OPTIMIZE_EXAMPLES)(optimize)
    app.command(epilog=_VACUUM_EXAMPLES)(vacuum)


def optimize(
    url: arg.Url,
    *,
    where: Annotated[
        str | None,
        typer.Option(metavar="SQL", help="Which periods: a filter on partition columns.", show_default=False),
    ] = None,
    target_file_size: FileSize = None,
    sidecar: Annotated[
        bool,
        typer.Option("--sidecar/--no-sidecar", help="Write checkpoint and stats sidecar afterwards."),
    ] = True,
    spark_conf: SparkConf = None,
    config: Config = None,
    storage_option: arg.StorageOptions = None,
    as_json: arg.Json = False,
    debug: arg.Debug = False,
) -> None:
    """Compact small files within their periods."""
    log_to_stderr(is_wanted=debug)
    settings = _settings(spark_conf, config, storage_option, target_file_size=target_file_size)
    from lazydelta.spark.maintenance import optimize as run
    from lazydelta.spark.session import get_session

    with ProgressLines(is_shown=not debug) as progress:
        report = run(
            get_session(settings),
            url,
            where=where,
            target_file_size=settings.target_file_size,
            storage_options=settings.storage_options,
            config=settings.sidecar,
            write_sidecar=sidecar,
            progress=progress,
        )
    if as_json:
        write_json_lines([report])
    else:
        write_lines(_lines(_optimized(report)))
    if report.sidecar_error is not None:
        warning = f"warning: no sidecar was written: {report.sidecar_error}"
        print(one_line(warning), file=sys.stderr)


def vacuum(
    url: arg.Url,
    *,
    retention_hours: Annotated[
        float, typer.Option(metavar="N", help="Keep what versions of the last N hours need.")
    ] = 168,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Delete nothing, say what would go.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Allow a retention that Delta takes for dangerous.")
    ] = False,
    spark_conf: SparkConf = None,
    config: Config = None,
    storage_option: arg.StorageOptions = None,
    as_json: arg.Json = False,
    debug: arg.Debug = False,
) -> None:
    """Delete data files and sidecars past retention."""
    log_to_stderr(is_wanted=debug)
    settings = _settings(spark_conf, config, storage_option)
    from lazydelta.spark.maintenance import vacuum as run
    from lazydelta.spark.session import get_session

    with ProgressLines(is_shown=not debug) as progress:
        report = run(
            get_session(settings),
            url,
            retention_hours=retention_hours,
            dry_run=dry_run,
            force=force,
            storage_options=settings.storage_options,
            config=settings.sidecar,
            progress=progress,
        )
    if as_json:
        write_json_lines([report])
        return
    if dry_run:
        names = [*report.files, *(removal.name for removal in report.sidecars.removed)]
        write_lines(one_line(name) for name in names)
        for line in _lines(_vacuumed(report)):  # talk, so that the names stay data
            print(line, file=sys.stderr)
    else:
        write_lines(_lines(_vacuumed(report)))


def _settings(
    spark_conf: Sequence[str] | None,
    config_file: str | None,
    storage_options: Sequence[str] | None,
    *,
    target_file_size: str | None = None,
) -> IngestConfig:
    """The pipeline's settings, as far as maintenance uses them."""
    from lazydelta.settings import process_environment
    from lazydelta.spark.pipeline_settings import load_config

    return load_config(
        {
            "target_file_size": target_file_size,
            "storage_options": arg.option_pairs(storage_options) or None,
        },
        environment=process_environment(),
        spark=arg.option_pairs(spark_conf, option="--spark-conf"),
        config_file=config_file,
    )


def _optimized(report: OptimizeReport) -> Iterator[tuple[str, str]]:
    yield "table", f"{report.table} @ {report.version:,}"
    partitions = f"in {report.partitions_optimized:,} partitions, none across {report.time_column}"
    yield "compacted", f"{report.files_removed:,} files to {report.files_added:,}, {partitions}"
    yield "bytes", f"{human_bytes(report.bytes_removed)} to {human_bytes(report.bytes_added)}"
    if report.sidecar is not None:
        yield "sidecar", f"version {report.sidecar.version:,}, {report.sidecar.kind}"
    elif report.sidecar_error is not None:
        yield "sidecar", f"failed: {report.sidecar_error}"
    yield "time", f"{report.elapsed_ms / 1000:,.1f} s"


def _vacuumed(report: VacuumReport) -> Iterator[tuple[str, str]]:
    verb = "would go" if report.is_dry_run else "went"
    yield "table", f"{report.table}, retention {report.retention_hours:g} hours"
    count = len(report.files) if report.is_dry_run else report.files_deleted
    yield "data files", f"{'an unknown number' if count is None else f'{count:,}'} {verb}"
    removed = f"{len(report.sidecars.removed):,} files {verb}, {human_bytes(report.sidecars.bytes_removed)}"
    yield "sidecars", removed
    yield "time", f"{report.elapsed_ms / 1000:,.1f} s"


def _lines(pairs: Iterator[tuple[str, str]]) -> Iterator[str]:
    return (f"{label:<12} {one_line(text)}" for label, text in pairs)
