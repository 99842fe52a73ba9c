"""One batch into the table: dated, counted, bad rows set aside, the rest written in files of one period.

Why one function for batches and streams: exactly-once is one rule, the idempotent write of a batch id.
Contract: `write_batch` makes at most one commit with data in the target and one in the rejects; killed
anywhere, the same batch id again completes it and makes no second commit. Rejects go first: a run without
an id that fails in between and is repeated may repeat rejects, never rows.
Events of one batch: `reading`, `counted` (rows, rejected, periods), `rejects` (version, rows), `writing`
(tasks, files planned), `committed` (version, files, bytes) or `replayed`; `running` (tasks done, tasks) comes
in between, while Spark works.
"""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING, Any

import msgspec

from lazydelta.errors import InvalidRequestError
from lazydelta.spark.config import IngestConfig
from lazydelta.spark.delta_table import Commit, find_commit, set_properties, table_state
from lazydelta.spark.failures import explained
from lazydelta.spark.file_plan import FilePlan, plan_files
from lazydelta.spark.known_schema import PROPERTY as SCHEMA_PROPERTY
from lazydelta.spark.known_schema import conformed, kept_schema, reconciled
from lazydelta.spark.layout_check import prepare_target
from lazydelta.spark.quoting import quoted
from lazydelta.spark.record_columns import INTERNAL, REASON
from lazydelta.spark.rejects import check_rejects, write_rejects
from lazydelta.spark.row_size import measured_row_bytes
from lazydelta.spark.source import rows_of
from lazydelta.spark.ticker import ticking
from lazydelta.spark.time_column import DatedFrame, column_of, with_period
from lazydelta.upkeep.progress import Progress, silent

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from lazydelta.spark.delta_table import TableState

_TASK = "_lazydelta_task"


class BatchResult(msgspec.Struct, frozen=True, kw_only=True):
    """What one batch did. `version` is None where it made no commit: a replay, or no row to write."""

    batch_id: int | None
    rows_read: int
    rows_written: int
    rows_rejected: int
    rejected_by_reason: dict[str, int]
    files: int
    bytes_written: int
    periods: int
    period_first: str | None
    period_last: str | None
    version: int | None
    rejects_version: int | None
    is_replay: bool
    elapsed_ms: int


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of a batch."""

    by_period: dict[str, int]
    by_reason: dict[str, int]


_NOTHING = Counts(by_period={}, by_reason={})


def write_batch(
    spark: SparkSession,
    frame: DataFrame,
    config: IngestConfig,
    *,
    batch_id: int | None,
    progress: Progress = silent,
) -> BatchResult:
    """Write what `open_source` or a batch of `open_stream` gave; see the module's contract."""
    began = time.monotonic()
    mark = f"lazydelta {uuid.uuid4().hex}"
    with explained("the batch", config.target), ticking(spark, progress):
        progress("reading", source=config.source, batch_id=batch_id)
        found = rows_of(spark, frame, config)
        if not found.columns:  # files without a line
            return _result(_NOTHING, None, None, batch_id=batch_id, elapsed_ms=0)
        dated, source_schema = _dated(spark, found, config)
        target = _checked_target(spark, config, dated, source_schema)
        check_rejects(spark, config)
        rows = dated.frame.persist()
        try:
            counts = _count(rows, dated)
            progress("counted", **_told(counts))
            rejects = _write_rejects(
                spark, rows, config, counts, batch_id=batch_id, mark=mark, progress=progress
            )
            kept = msgspec.structs.replace(dated, frame=rows)
            commit = _write_rows(spark, kept, config, counts, batch_id=batch_id, mark=mark, progress=progress)
        finally:
            rows.unpersist()
        if commit is not None:
            _keep_schema(spark, config, target, source_schema)
    return _result(
        counts, commit, rejects, batch_id=batch_id, elapsed_ms=round((time.monotonic() - began) * 1000)
    )


def _dated(spark: SparkSession, frame: DataFrame, config: IngestConfig) -> tuple[DatedFrame, StructType]:
    """The rows with their periods, and the source's schema as it is to be kept."""
    from pyspark.sql.types import StructType

    found = StructType([field for field in frame.schema.fields if field.name not in INTERNAL])
    _check_names(found, config)
    kept = kept_schema(table_state(spark, config.target), config)
    schema = reconciled(kept, found, config)
    rows = frame
    if kept is not None:
        rows = conformed(frame, schema, keep=INTERNAL, where=config.source or config.target)
    return with_period(rows, config), schema


def _check_names(found: StructType, config: IngestConfig) -> None:
    for name in found.names:
        if name.lower() == config.time_column_name.lower():
            raise InvalidRequestError(
                f"the source has a column {name} already, which the pipeline is to make",
                config.source or config.target,
                "give --time-column another name, or leave that column out of the source",
            )


def _checked_target(
    spark: SparkSession, config: IngestConfig, dated: DatedFrame, source_schema: StructType
) -> TableState:
    return prepare_target(
        spark,
        config,
        schema=dated.frame.drop(*INTERNAL).schema,
        source_schema=source_schema,
        event_time=".".join(dated.event_time),
    )


def _count(rows: DataFrame, dated: DatedFrame) -> Counts:
    counted = rows.groupBy(quoted(dated.period), REASON).count().collect()
    by_period = {period: count for period, reason, count in counted if reason is None}
    by_reason: dict[str, int] = {}
    for _, reason, count in counted:
        if reason is not None:
            by_reason[reason] = by_reason.get(reason, 0) + count
    return Counts(by_period=by_period, by_reason=by_reason)


def _write_rejects(
    spark: SparkSession,
    rows: DataFrame,
    config: IngestConfig,
    counts: Counts,
    *,
    batch_id: int | None,
    mark: str,
    progress: Progress,
) -> Commit | None:
    if not counts.by_reason:
        return None
    write_rejects(rows, config, batch_id=batch_id, mark=mark)
    commit = find_commit(spark, config.rejects_path, mark=mark)
    version = None if commit is None else commit.version
    progress("rejects", version=version, rows=sum(counts.by_reason.values()), table=config.rejects_path)
    return commit


def _write_rows(
    spark: SparkSession,
    dated: DatedFrame,
    config: IngestConfig,
    counts: Counts,
    *,
    batch_id: int | None,
    mark: str,
    progress: Progress,
) -> Commit | None:
    if not counts.by_period:
        return None
    plan = plan_files(
        counts.by_period,
        bytes_per_row=measured_row_bytes(spark, config, dated),
        file_bytes=config.target_file_size,
        parallelism=spark.sparkContext.defaultParallelism,
    )
    progress("writing", files=plan.files, tasks=plan.tasks, periods=len(plan.shares))
    spread = _spread(spark, dated, plan)
    writer = (
        spread.write.format("delta")
        .mode("append")
        .partitionBy(dated.period)
        .option("maxRecordsPerFile", plan.rows_per_file_max)
        .option("userMetadata", mark)
        .option("mergeSchema", str(config.merge_schema).lower())
    )
    if batch_id is not None:
        writer = writer.option("txnAppId", config.app_id).option("txnVersion", batch_id)
    writer.save(config.target)
    commit = find_commit(spark, config.target, mark=mark)
    if commit is None:
        progress("replayed", batch_id=batch_id)
    else:
        progress(
            "committed",
            version=commit.version,
            files=commit.files,
            rows=commit.rows,
            bytes=commit.bytes_written,
        )
    return commit


def _spread(spark: SparkSession, dated: DatedFrame, plan: FilePlan) -> DataFrame:
    """The good rows, dealt to the tasks of the plan, sorted by period and event time."""
    from pyspark.sql import functions as fn

    good = dated.frame.where(fn.col(REASON).isNull()).drop(*INTERNAL)
    shares = spark.createDataFrame(
        [(share.period, share.first_task, share.pieces) for share in plan.shares],
        f"`{_TASK}_period` string, `{_TASK}_first` int, `{_TASK}_pieces` int",
    )
    period = fn.col(quoted(dated.period))
    dealt = good.join(fn.broadcast(shares), period == fn.col(f"{_TASK}_period"))
    piece = fn.pmod(fn.xxhash64(*_hashable(good)), fn.col(f"{_TASK}_pieces"))
    task = (fn.col(f"{_TASK}_first") + piece).cast("int")
    placed = dealt.withColumn(_TASK, task).repartitionById(plan.tasks, _TASK)
    ordered: DataFrame = placed.sortWithinPartitions(period, column_of(dated.event_time))
    return ordered.drop(_TASK, f"{_TASK}_period", f"{_TASK}_first", f"{_TASK}_pieces")


def _hashable(frame: DataFrame) -> list[Any]:  # Any: columns
    """Columns that tell rows apart; the hash must not depend on the task that computes it."""
    from pyspark.sql import functions as fn
    from pyspark.sql import types as ty

    plain = [field.name for field in frame.schema.fields if isinstance(field.dataType, ty.AtomicType)]
    return [fn.col(quoted(name)) for name in plain]


def _keep_schema(spark: SparkSession, config: IngestConfig, target: TableState, schema: StructType) -> None:
    """Keep the columns that came with this batch."""
    text = schema.json()
    if config.merge_schema and target.properties.get(SCHEMA_PROPERTY) != text:
        set_properties(spark, config.target, {SCHEMA_PROPERTY: text})


def _told(counts: Counts) -> dict[str, object]:
    rejected = sum(counts.by_reason.values())
    return {
        "rows": sum(counts.by_period.values()) + rejected,
        "rejected": rejected,
        "periods": len(counts.by_period),
        "period_first": min(counts.by_period, default=None),
        "period_last": max(counts.by_period, default=None),
    }


def _result(
    counts: Counts, commit: Commit | None, rejects: Commit | None, *, batch_id: int | None, elapsed_ms: int
) -> BatchResult:
    rejected = sum(counts.by_reason.values())
    good = sum(counts.by_period.values())
    return BatchResult(
        batch_id=batch_id,
        rows_read=good + rejected,
        rows_written=0 if commit is None else commit.rows,
        rows_rejected=rejected,
        rejected_by_reason=counts.by_reason,
        files=0 if commit is None else commit.files,
        bytes_written=0 if commit is None else commit.bytes_written,
        periods=len(counts.by_period),
        period_first=min(counts.by_period, default=None),
        period_last=max(counts.by_period, default=None),
        version=None if commit is None else commit.version,
        rejects_version=None if rejects is None else rejects.version,
        is_replay=bool(good) and commit is None and batch_id is not None,
        elapsed_ms=elapsed_ms,
    )
