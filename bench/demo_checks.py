"""The demo's checks: nothing lost, nothing doubled, every file of one hour, the sidecar true and of use.

Contract: rows are counted twice, by Spark over the data and by lazydelta over the log's statistics; both
must agree with what the source was made with.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

import lazydelta as ld
from bench.telemetry import Batch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lazydelta.spark.config import IngestConfig
    from lazydelta.spark.ingest import BatchResult


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """One check and what it was judged by."""

    check: str
    passed: bool
    measured: str


class ListedFile(msgspec.Struct, frozen=True, kw_only=True):
    """What the log says of a file."""

    path: str
    size: int
    hour: str
    num_records: int
    first_event: str
    last_event: str


def run_checks(
    spark: SparkSession,
    config: IngestConfig,
    batches: Sequence[Batch],
    results: Sequence[BatchResult],
    *,
    verified: bool,
) -> list[Outcome]:
    """Every check, in the order of the pipeline."""
    sent, bad = sum(batch.rows for batch in batches), sum(batch.bad_rows for batch in batches)
    kept, rejected = (_spark_rows(spark, path) for path in (config.target, config.rejects_path))
    files = listed_files(config.target, config.time_column_name, event_time=config.event_time)
    by_log = sum(file.num_records for file in files)
    commits = sum(result.files for result in results)
    strays = stray_files(files)
    return [
        Outcome(
            check="every row that came in is in the table or among the rejects",
            passed=sent == kept + rejected,
            measured=f"{sent:,} = {kept:,} + {rejected:,}",
        ),
        Outcome(
            check="rejects are the rows without a time, and no other",
            passed=rejected == bad == sum(result.rows_rejected for result in results),
            measured=f"{rejected:,} of {bad:,}",
        ),
        Outcome(
            check="the log's statistics count the same rows",
            passed=by_log == kept and len(files) == commits,
            measured=f"{by_log:,} rows in {len(files):,} files",
        ),
        Outcome(
            check="every file holds rows of one hour, the hour of its folder",
            passed=bool(files) and not strays,
            measured=", ".join(strays[:3]) if strays else f"{len(files):,} files",
        ),
        Outcome(
            check="every command ended well, and the newest sidecar is true to the log",
            passed=verified,
            measured="exit codes 0" if verified else "see above",
        ),
    ]


def one_row_group(table: str, where: str) -> Outcome:
    """Whether a scan for one hour reads one row group of the sidecar and leaves the others alone."""
    scan = ld.open(table, storage_options={"delta.cache.bytes": "0"}).scan(where)
    files = sum(1 for _ in scan.files())
    report = scan.explain()
    read, skipped = report.row_groups_read, report.row_groups_skipped
    return Outcome(
        check="a scan for the newest hour reads one row group of many",
        passed=files > 0 and read == 1 < skipped,
        measured=f"{read:,} of {read + skipped:,}",
    )


def listed_files(table: str, time_column: str, *, event_time: str) -> list[ListedFile]:
    """Every live file of a table that is small enough for that."""
    files = []
    for batch in ld.open(table).scan().file_batches(["path", "size", "partition_values", "stats"]):
        for row in batch.to_pylist():
            stats = msgspec.json.decode(row["stats"])
            files.append(
                ListedFile(
                    path=row["path"],
                    size=row["size"],
                    hour=dict(row["partition_values"])[time_column],
                    num_records=stats["numRecords"],
                    first_event=stats["minValues"][event_time],
                    last_event=stats["maxValues"][event_time],
                )
            )
    return files


def stray_files(files: Iterable[ListedFile]) -> list[str]:
    """Files whose smallest or greatest event time is not of the hour that partitions them."""
    return [file.path for file in files if {_hour(file.first_event), _hour(file.last_event)} != {file.hour}]


def _hour(moment: str) -> str:
    """`2026-02-10T22:15:00.125Z` as `2026021022`."""
    return moment[:13].replace("-", "").replace("T", "")


def _spark_rows(spark: SparkSession, path: str) -> int:
    return spark.read.format("delta").load(path).count()
