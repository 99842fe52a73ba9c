"""Maintenance on Spark: compaction within periods, and VACUUM together with what is left of old sidecars.

Contract: `optimize` refuses a table whose files may hold more than one period: compaction stays within
partitions, so the time column must be one. The data is safe before a sidecar is touched: a sidecar that
cannot be written is told in the report, and the command has succeeded all the same. `vacuum` deletes what
Delta's VACUUM deletes; a retention shorter than Delta allows needs `force`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from lazydelta import limits
from lazydelta.errors import InvalidRequestError, LazyDeltaError, TableNotFoundError
from lazydelta.settings import build_settings, process_environment
from lazydelta.sidecar.format.config import SidecarConfig
from lazydelta.sidecar.format.layout import TIME_COLUMN_PROPERTY
from lazydelta.spark.checkpoint import ensure_sidecar
from lazydelta.spark.delta_table import TableState, table_state
from lazydelta.spark.failures import explained
from lazydelta.spark.quoting import delta_table_name
from lazydelta.spark.session import check_delta
from lazydelta.spark.sidecar_frame import job_session
from lazydelta.spark.table_url import spark_url
from lazydelta.storage import open_storage
from lazydelta.upkeep.build import BuildReport
from lazydelta.upkeep.clean import RETENTION_HOURS, CleanReport, checked_hours, clean_sidecars
from lazydelta.upkeep.progress import Progress, silent

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"
# Delta may be set to go by the table's own retention whatever the command says; here the command counts.
_IGNORE = "spark.databricks.delta.vacuum.retentionWindowIgnore.enabled"
_HISTORY_ROWS = 3  # VACUUM END is among the newest commits, if Delta logs it at all


class OptimizeReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a compaction did."""

    table: str
    time_column: str
    version: int  # the newest one afterwards
    files_added: int
    files_removed: int
    bytes_added: int
    bytes_removed: int
    partitions_optimized: int
    sidecar: BuildReport | None  # None where nothing was compacted and there is no checkpoint, or on error
    sidecar_error: str | None
    elapsed_ms: float


class VacuumReport(msgspec.Struct, frozen=True, kw_only=True):
    """What went, or would go."""

    table: str
    is_dry_run: bool
    retention_hours: float
    files: tuple[str, ...]  # of a dry run: what Delta would delete
    files_deleted: int | None  # None where Delta does not log its VACUUMs, and in a dry run
    sidecars: CleanReport
    elapsed_ms: float


def optimize(
    spark: SparkSession,
    url: str,
    *,
    where: str | None = None,
    target_file_size: int = limits.INGEST_FILE_BYTES,
    storage_options: Mapping[str, str] | None = None,
    config: SidecarConfig = SidecarConfig(),  # noqa: B008 - frozen
    write_sidecar: bool = True,
    progress: Progress | None = None,
) -> OptimizeReport:
    """Compact small files within their periods, then write checkpoint and sidecar.

    `where` is SQL on partition columns: the periods to compact.
    """
    started = time.perf_counter()
    tell = progress or silent
    if target_file_size < 1:
        raise InvalidRequestError(
            f"the target file size is {target_file_size}", "optimize", "give a positive number of bytes"
        )
    path = spark_url(url, storage_options)
    column = _period_column(_state(spark, path), path)
    tell("optimizing", table=path, where=where)
    metrics = _compact(spark, path, where, target_file_size)
    tell("optimized", files_added=metrics.numFilesAdded, files_removed=metrics.numFilesRemoved)
    has_changed = metrics.numFilesAdded + metrics.numFilesRemoved > 0
    sidecar, problem = None, None
    if write_sidecar:
        sidecar, problem = _sidecar(
            spark,
            url,
            storage_options=storage_options,
            config=config,
            checkpoint=has_changed,
            progress=tell,
        )
    return OptimizeReport(
        table=path,
        time_column=column,
        version=_state(spark, path).version,
        files_added=metrics.numFilesAdded,
        files_removed=metrics.numFilesRemoved,
        bytes_added=metrics.filesAdded.totalSize or 0,
        bytes_removed=metrics.filesRemoved.totalSize or 0,
        partitions_optimized=metrics.partitionsOptimized,
        sidecar=sidecar,
        sidecar_error=problem,
        elapsed_ms=(time.perf_counter() - started) * 1000,
    )


def vacuum(
    spark: SparkSession,
    url: str,
    *,
    retention_hours: float = RETENTION_HOURS,
    dry_run: bool = False,
    force: bool = False,
    storage_options: Mapping[str, str] | None = None,
    config: SidecarConfig = SidecarConfig(),  # noqa: B008 - frozen
    progress: Progress | None = None,
) -> VacuumReport:
    """Delete data files that no version within the retention needs, and old sidecars likewise.

    `force` allows a retention that Delta takes for dangerous: readers and writers under way may fail.
    """
    started = time.perf_counter()
    tell = progress or silent
    hours = checked_hours(retention_hours)
    path = spark_url(url, storage_options)
    before = _state(spark, path).version
    tell("vacuuming", table=path, retention_hours=hours, dry_run=dry_run)
    files = _vacuum(spark, path, hours, dry_run=dry_run, force=force)
    deleted = None if dry_run else _deleted_files(spark, path, before)
    settings = build_settings(storage_options, environment=process_environment())
    cleaned = clean_sidecars(
        open_storage(url, settings), config=config, retention_hours=hours, dry_run=dry_run
    )
    return VacuumReport(
        table=path,
        is_dry_run=dry_run,
        retention_hours=hours,
        files=tuple(files) if dry_run else (),
        files_deleted=deleted,
        sidecars=cleaned,
        elapsed_ms=(time.perf_counter() - started) * 1000,
    )


def _state(spark: SparkSession, path: str) -> TableState:
    with explained("opening the table", path):
        found = table_state(check_delta(spark), path)
    if found is None:
        raise TableNotFoundError("no Delta table here", path, "check the address")
    return found


def _period_column(state: TableState, path: str) -> str:
    """The time column, if every file holds one period of it."""
    column = state.properties.get(TIME_COLUMN_PROPERTY)
    if column is None:
        raise InvalidRequestError(
            f"the table has no property {TIME_COLUMN_PROPERTY}, so its periods are not known",
            path,
            f"set it to the partition column that holds them, as `lazydelta ingest` does: ALTER TABLE … SET "
            f"TBLPROPERTIES ('{TIME_COLUMN_PROPERTY}' = '…'), or use Delta's own OPTIMIZE",
        )
    if column not in state.partition_columns:
        parts = ", ".join(state.partition_columns) or "nothing"
        raise InvalidRequestError(
            f"the table is not partitioned by its time column {column!r} but by {parts}: a compacted file "
            "would span periods",
            path,
            "ingest into a table that is, or use Delta's own OPTIMIZE",
        )
    return column


def _compact(spark: SparkSession, path: str, where: str | None, target_file_size: int) -> Any:  # a row
    """Delta's OPTIMIZE; its metrics."""
    from delta.tables import DeltaTable

    sizes = {
        "spark.databricks.delta.optimize.maxFileSize": str(target_file_size),
        "spark.databricks.delta.optimize.minFileSize": str(target_file_size),
    }
    with explained("OPTIMIZE", path):
        builder = DeltaTable.forPath(job_session(spark, sizes), path).optimize()
        if where is not None:
            builder = builder.where(where)
        return builder.executeCompaction().collect()[0].metrics


def _sidecar(
    spark: SparkSession,
    url: str,
    *,
    storage_options: Mapping[str, str] | None,
    config: SidecarConfig,
    checkpoint: bool,
    progress: Progress,
) -> tuple[BuildReport | None, str | None]:
    """The sidecar of the newest checkpoint, or why there is none."""
    try:
        report = ensure_sidecar(
            spark,
            url,
            storage_options=storage_options,
            config=config,
            checkpoint=checkpoint,
            progress=progress,
        )
    except LazyDeltaError as problem:
        error = f"{problem.what} ({problem.where}): {problem.fix}"
        progress("sidecar_failed", error=error)
        return None, error
    return report, None


def _vacuum(spark: SparkSession, path: str, hours: float, *, dry_run: bool, force: bool) -> list[str]:
    """Delta's VACUUM; the paths that a dry run lists."""
    session = job_session(spark, {_IGNORE: "false"} | ({_CHECK: "false"} if force else {}))
    ending = " DRY RUN" if dry_run else ""
    with explained("VACUUM", path):
        try:
            rows = session.sql(f"VACUUM {delta_table_name(path)} RETAIN {hours!r} HOURS{ending}").collect()
        except Exception as problem:
            if "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT" in str(problem):
                raise _too_short(path, hours) from problem
            raise
    return sorted(row[0] for row in rows)


def _too_short(path: str, hours: float) -> InvalidRequestError:
    return InvalidRequestError(
        f"a retention of {hours:g} hours is shorter than the table allows",
        path,
        "keep files longer; or, if nobody reads older versions or writes right now, give --force",
    )


def _deleted_files(spark: SparkSession, path: str, before: int) -> int | None:
    """How many files the VACUUM after version `before` deleted, where Delta logged it."""
    from delta.tables import DeltaTable

    with explained("reading the history", path):
        commits = DeltaTable.forPath(spark, path).history(_HISTORY_ROWS).collect()
    for commit in commits:
        if commit.version > before and commit.operation == "VACUUM END":
            return int(commit.operationMetrics.get("numDeletedFiles", 0))
    return None
