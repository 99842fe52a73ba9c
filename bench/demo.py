"""`make demo`: the pipeline end to end on one machine: rows in, a table with sidecars out, scans, checks.

Contract: prints to stdout, in words a newcomer understands; a few minutes on two cores. The rows are made
once and kept in the project's cache; the table is made anew each time. The exit code is 1 if any check
fails.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from bench.demo_checks import Outcome, one_row_group, run_checks
from bench.demo_layout import show_layout
from bench.tables import cache_folder
from bench.telemetry import Batch, TelemetrySpec, make_telemetry, newest_hour
from bench.terminal import show_command
from lazydelta.sidecar import SidecarConfig
from lazydelta.spark.config import IngestConfig

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lazydelta.spark.after_commit import SidecarOutcome
    from lazydelta.spark.ingest import BatchResult

TABLE = "telemetry"
CHECKPOINT_INTERVAL = 5  # commits; two of them, so that the second sidecar builds upon the first
# Small, so that pruning shows on a table of a few hundred files; the default suits millions.
ROW_GROUP_ROWS = 20
_LINES_MAX = 30
# Two cores and little data: fewer tasks and one collector's thread take less time.
_SPARK = {
    "spark.master": "local[2]",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC",
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "1",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Show it; returns the exit code."""
    spec = _spec(arguments)
    began = time.monotonic()
    place = cache_folder() / "demo"
    source, batches = _make_rows(spec, place)
    config = _config(place / TABLE)
    results, spark = _ingest_all(config, source, batches)
    _title("The table")
    show_layout(config, newest_hour(spec))
    _title("Scans: the log is streamed, files that cannot match are left out")
    verified = _show_commands(place, spec)
    _title("Checks")
    outcomes = run_checks(spark, config, batches, results, verified=verified)
    outcomes.append(one_row_group(config.target, _of_newest_hour(spec)))
    failed = _show_outcomes(outcomes)
    print(f"\n{time.monotonic() - began:.0f} s in all. The table stays here:\n  {place / TABLE}\n")
    return int(failed)


def _spec(arguments: Sequence[str] | None) -> TelemetrySpec:
    parser = argparse.ArgumentParser(prog="python -m bench.demo", description=__doc__.split("\n\n", 1)[0])
    default = TelemetrySpec()
    parser.add_argument("--batches", type=int, default=default.batches)
    parser.add_argument("--rows-per-batch", type=int, default=default.rows_per_batch)
    given = vars(parser.parse_args(arguments))
    return msgspec.structs.replace(default, **given)


def _config(table: Path) -> IngestConfig:
    return IngestConfig(
        target=str(table),
        event_time="timestamp",
        format="json",
        properties={"delta.checkpointInterval": str(CHECKPOINT_INTERVAL)},
        sidecar=SidecarConfig(row_group_rows=ROW_GROUP_ROWS),
        spark=_SPARK,
    )


def _make_rows(spec: TelemetrySpec, place: Path) -> tuple[Path, list[Batch]]:
    _title("Rows: telemetry as JSON files, one folder for each batch")
    place.mkdir(parents=True, exist_ok=True)
    source, batches = make_telemetry(spec, place)
    rows, size = sum(batch.rows for batch in batches), sum(batch.source_bytes for batch in batches)
    days = spec.batches * spec.hours_per_batch / 24
    print(f"  {rows:,} rows of {days:.3g} days in {len(batches)} batches, {size / 1e6:,.0f} MB")
    late, bad = (sum(getattr(batch, name) for batch in batches) for name in ("late_rows", "bad_rows"))
    print(f"  {late:,} of them come late, hours after their time; {bad:,} have no time that can be read")
    with (source / batches[0].name / "part-00000.json").open() as file:
        print(f"  the first one: {file.readline().strip()}")
    return source, batches


def _ingest_all(
    config: IngestConfig, source: Path, batches: Sequence[Batch]
) -> tuple[list[BatchResult], SparkSession]:
    """Every batch in turn; the table and its rejects are made anew."""
    from lazydelta.spark.session import get_session

    _title("Ingest: Spark on this machine, one commit for each batch")
    for path in (config.target, config.rejects_path):
        shutil.rmtree(path, ignore_errors=True)
    began = time.monotonic()
    spark = get_session(config)
    print(f"  Spark started in {time.monotonic() - began:.0f} s\n")
    print("  batch     rows   rejected  hours  files  version  seconds")
    results = []
    for number, batch in enumerate(batches):
        # A run id makes a batch that is sent again no second commit.
        mine = msgspec.structs.replace(config, source=str(source / batch.name), run_id=batch.name)
        results.append(_ingest_one(spark, mine, number))
    return results, spark


def _ingest_one(spark: SparkSession, config: IngestConfig, number: int) -> BatchResult:
    from lazydelta.spark.run import run_batch

    began = time.monotonic()
    done = run_batch(spark, config)
    batch, spent = done.batch, time.monotonic() - began
    counts = f"{batch.rows_read:>9,}  {batch.rows_rejected:>8,}  {batch.periods:>5}  {batch.files:>5}"
    line = f"  {number + 1:>5}{counts}  {batch.version!s:>7}  {spent:>7.1f}{_sidecar_told(done.sidecar)}"
    print(line, flush=True)
    return batch


def _sidecar_told(sidecar: SidecarOutcome) -> str:
    if sidecar.sidecar_error is not None:
        return f"  NO SIDECAR: {sidecar.sidecar_error}"
    if sidecar.sidecar_kind in (None, "present"):
        return ""
    return f"  checkpoint {sidecar.checkpoint_version} and its sidecar ({sidecar.sidecar_kind})"


def _show_commands(place: Path, spec: TelemetrySpec) -> bool:
    """Run what a user would type; returns whether the sidecar was verified."""
    where = f'--where "{_of_newest_hour(spec)}"'
    codes = {}
    for what, command in (
        ("the newest hour's files", f"lazydelta files {TABLE} {where} --columns size,path"),
        (
            "three files, whatever their hour",
            f"lazydelta files {TABLE} --limit 3 --columns size,path",
        ),
        ("what a scan for that hour read, and what it left out", f"lazydelta explain {TABLE} {where}"),
        ("the same with a limit", f"lazydelta explain {TABLE} {where} --limit 1"),
        ("the sidecars: parts, row groups, ranges", f"lazydelta sidecar show {TABLE}"),
        ("the newest sidecar against the log, file by file", f"lazydelta sidecar verify {TABLE}"),
    ):
        print(f"  # {what}\n  $ {command}")
        codes[command], shown = show_command(command, place)
        lines = shown.splitlines()
        left = [f"… {len(lines) - _LINES_MAX} more lines"] if len(lines) > _LINES_MAX else []
        print("".join(f"  {line}\n" for line in [*lines[:_LINES_MAX], *left]), flush=True)
    return not any(codes.values())


def _of_newest_hour(spec: TelemetrySpec) -> str:
    return f"_event_hour = '{newest_hour(spec)}'"


def _show_outcomes(outcomes: Sequence[Outcome]) -> bool:
    """One line for each check; returns whether one failed."""
    for outcome in outcomes:
        print(f"  {'ok  ' if outcome.passed else 'FAIL'}  {outcome.check}: {outcome.measured}")
    return not all(outcome.passed for outcome in outcomes)


def _title(text: str) -> None:
    print(f"\n{text}\n{'-' * len(text)}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
