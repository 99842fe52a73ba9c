"""`lazydelta ingest`: settings from flags, environment and file, then a batch or a stream on Spark.

Contract: progress on stderr, the summary on stdout; with --json both as one object per line on stdout,
each with its `event`, the summary last. A sidecar that could not be written is a warning on stderr, not a
failure.
"""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING

import msgspec

from lazydelta.cli import arguments as arg
from lazydelta.cli import ingest_arguments as own
from lazydelta.cli.outcome import log_to_stderr
from lazydelta.cli.progress_lines import ProgressLines
from lazydelta.cli.prompt_exit import raise_on_interrupt
from lazydelta.cli.streams import write_json_lines, write_lines
from lazydelta.cli.text import human_bytes, one_line
from lazydelta.redaction import redacted

if TYPE_CHECKING:
    from lazydelta.spark import IngestConfig, IngestSummary
    from lazydelta.upkeep.progress import Progress

EXAMPLES = """\b
Examples:
  lazydelta ingest ./arrived ./telemetry --event-time timestamp
  lazydelta ingest s3a://in/2026-02-10 s3a://lake/telemetry --event-time ts \\
    --granularity day
  lazydelta ingest ./arrived ./telemetry --event-time ts \\
    --stream available-now --checkpoint-location ./telemetry.progress
  lazydelta ingest --config telemetry.toml --print-config

Every file holds the rows of one period of the time column. Rows whose time is null or
cannot be read, and malformed records, go to the table TARGET_rejects, with the reason.
Text and numbers are stored as timestamps, to the microsecond.

The schema is inferred once and kept in the table; a column that it lacks is an error
unless --merge-schema is given. With --schema exactly its columns are read.

Settings may stand in the [ingest], [sidecar] and [spark] tables of --config (or of the
file that LAZYDELTA_CONFIG names) and in variables (LAZYDELTA_INGEST_EVENT_TIME); flags
win over variables, and those over the file.
"""


def ingest(
    source: own.Source = None,
    target: own.Target = None,
    *,
    event_time: own.EventTime = None,
    granularity: own.Granularity = None,
    time_column: own.TimeColumn = None,
    time_zone: own.TimeZone = None,
    event_time_format: own.EventTimeFormat = None,
    event_time_unit: own.EventTimeUnit = None,
    format_: own.Format = None,
    option: own.Options = None,
    schema: own.Schema = None,
    merge_schema: own.MergeSchema = None,
    target_file_size: own.FileSize = None,
    rejects: own.Rejects = None,
    table_property: own.Properties = None,
    run_id: own.RunId = None,
    stream: own.Stream = None,
    checkpoint_location: own.CheckpointLocation = None,
    trigger_interval: own.TriggerInterval = None,
    read_again: own.ReadAgain = False,
    sidecar: own.Sidecar = None,
    checkpoint: own.Checkpoint = None,
    storage_option: arg.StorageOptions = None,
    spark_conf: own.SparkConf = None,
    config: own.Config = None,
    print_config: own.PrintConfig = False,
    as_json: arg.Json = False,
    debug: arg.Debug = False,
) -> None:
    """Write a source into a Delta table by the hour, with Spark."""
    log_to_stderr(is_wanted=debug)
    given = {
        "source": source, "target": target, "event_time": event_time, "granularity": granularity,
        "time_column": time_column, "time_zone": time_zone, "event_time_format": event_time_format,
        "event_time_unit": event_time_unit, "format": format_, "options": _pairs(option, "--option"),
        "schema": schema, "merge_schema": merge_schema, "target_file_size": target_file_size,
        "rejects": rejects, "properties": _pairs(table_property, "--property"), "run_id": run_id,
        "stream": stream, "checkpoint_location": checkpoint_location, "trigger_interval": trigger_interval,
        "write_sidecar": sidecar, "checkpoint": checkpoint,
        "storage_options": _pairs(storage_option, "--storage-option"),
    }  # fmt: skip
    from lazydelta.settings import process_environment
    from lazydelta.spark.pipeline_settings import load_config

    settings = load_config(
        given,
        spark=arg.option_pairs(spark_conf, option="--spark-conf"),
        config_file=config,
        environment=process_environment(),
    )
    if print_config:
        from lazydelta.spark.config import check_values
        from lazydelta.spark.settings_text import settings_text

        write_lines([settings_text(check_values(settings))])
        return
    _run(settings, as_json=as_json, read_again=read_again)


def _pairs(given: list[str] | None, option: str) -> dict[str, str] | None:
    """`KEY=VALUE` texts as a mapping; None where there are none, so that other settings hold."""
    return arg.option_pairs(given, option=option) or None


def _run(config: IngestConfig, *, as_json: bool, read_again: bool) -> None:
    from lazydelta.spark.config import check_config

    check_config(config)
    raise_on_interrupt()  # what takes long to import is there
    with ProgressLines(is_shown=not as_json) as lines:
        progress = _listener(lines, as_json=as_json)
        progress("starting", target=config.target)
        _run_with(config, progress, as_json=as_json, read_again=read_again)


def _run_with(config: IngestConfig, progress: Progress, *, as_json: bool, read_again: bool) -> None:
    from lazydelta.spark.session import get_session
    from lazydelta.spark.stopping import children_deaf_to_sigterm

    # A batch can be finished only if Java outlives the wish to stop.
    with children_deaf_to_sigterm() if config.stream is not None else nullcontext():
        session = get_session(config)
    try:
        if config.stream is not None:
            _stream(session, config, progress, as_json=as_json, read_again=read_again)
        else:
            _batch(session, config, progress, as_json=as_json)
    finally:
        session.stop()


def _batch(session: object, config: IngestConfig, progress: Progress, *, as_json: bool) -> None:
    from lazydelta.spark.run import run_batch

    summary = run_batch(session, config, progress)  # type: ignore[arg-type]  # PySpark is not imported here
    if as_json:
        write_json_lines([summary_fields(summary)])
    else:
        write_lines(_summary_lines(summary))


def _stream(
    session: object, config: IngestConfig, progress: Progress, *, as_json: bool, read_again: bool
) -> None:
    from lazydelta.spark.stopping import stop_on_signals
    from lazydelta.spark.stream import run_stream

    assert config.stream is not None
    with stop_on_signals() as stop:
        summary = run_stream(
            session,  # type: ignore[arg-type]  # PySpark is not imported here
            config,
            mode=config.stream,
            progress=progress,
            stop=stop,
            read_again=read_again,
        )
    fields = msgspec.to_builtins(summary)
    fields |= fields.pop("totals")
    if as_json:
        write_json_lines([{"event": "summary", "target": config.target, **fields}])
    else:
        told = {name.replace("_", " "): value for name, value in fields.items() if value is not None}
        write_lines(one_line(f"{name:<20}{_shown(value)}") for name, value in told.items())


def summary_fields(summary: IngestSummary) -> dict[str, object]:
    """The summary of a batch as one flat object."""
    fields = msgspec.to_builtins(summary)
    return {"event": "summary", **fields.pop("batch"), **fields.pop("sidecar"), **fields}


def _summary_lines(summary: IngestSummary) -> list[str]:
    batch, sidecar = summary.batch, summary.sidecar
    at = "no new version" if batch.version is None else f"version {batch.version:,}"
    if batch.is_replay:
        at += " (this run was written before)"
    lines = [
        f"table       {summary.target}, {at}",
        f"rows        {batch.rows_read:,} read, {batch.rows_written:,} written, "
        f"{batch.rows_rejected:,} rejected",
        f"files       {batch.files:,}, {human_bytes(batch.bytes_written)}",
        f"periods     {batch.periods:,}{_between(batch.period_first, batch.period_last)}",
    ]
    if batch.rows_rejected:
        reasons = ", ".join(
            f"{reason} {count:,}" for reason, count in sorted(batch.rejected_by_reason.items())
        )
        lines.append(f"rejects     {summary.rejects}: {reasons}")
    found = "none" if sidecar.checkpoint_version is None else f"at {sidecar.checkpoint_version:,}"
    lines.append(f"checkpoint  {found}")
    if sidecar.sidecar_error is not None:
        lines.append(f"sidecar     failed: {sidecar.sidecar_error}")
    elif sidecar.sidecar_version is not None:
        lines.append(f"sidecar     at {sidecar.sidecar_version:,} ({sidecar.sidecar_kind})")
    lines.append(f"time        {batch.elapsed_ms / 1000:.1f} s")
    return [one_line(line) for line in lines]


def _between(first: str | None, last: str | None) -> str:
    if first is None:
        return ""
    return f", {first}" if first == last else f", {first} to {last}"


def _shown(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _listener(lines: ProgressLines, *, as_json: bool) -> Progress:

    def hear(event: str, /, **given: object) -> None:
        fields = {name: redacted(value) if isinstance(value, str) else value for name, value in given.items()}
        if event == "sidecar_failed":
            print(one_line(f"warning: no sidecar was written: {fields['error']}"), file=sys.stderr)
        if as_json:
            write_json_lines([{"event": event, **fields}])
        else:
            lines(event, **fields)

    return hear
