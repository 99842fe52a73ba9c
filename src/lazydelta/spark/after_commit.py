"""After a commit: a checkpoint where one is asked for, and the stats sidecar of the newest.

Contract: rows are committed when this runs, so nothing here raises and an ingest does not fail for it; what
went wrong is in `SidecarOutcome.sidecar_error` and told as the event `sidecar_failed`.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec

from lazydelta.errors import LazyDeltaError
from lazydelta.spark.delta_table import checkpoint_newest, checkpoint_version, table_state
from lazydelta.spark.failures import explain, spark_failures
from lazydelta.spark.table_url import reader_url

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lazydelta.spark.config import IngestConfig
    from lazydelta.upkeep.progress import Progress


class SidecarOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What there is after a commit. `sidecar_kind` is how it was built: full, incremental, present, …"""

    checkpoint_version: int | None = None
    sidecar_version: int | None = None
    sidecar_kind: str | None = None
    sidecar_error: str | None = None


def after_commit(spark: SparkSession, config: IngestConfig, progress: Progress) -> SidecarOutcome:
    """Write what the config asks for: a checkpoint, and the sidecar of the newest where it has none."""
    began = time.monotonic()
    try:
        return _with_sidecar(spark, config, progress)
    except Exception as problem:  # noqa: BLE001 - whatever it is, the rows are committed
        error = _in_words(problem, config)
    progress("sidecar_failed", error=error, elapsed_ms=round((time.monotonic() - began) * 1000))
    return SidecarOutcome(sidecar_error=error)


def _with_sidecar(spark: SparkSession, config: IngestConfig, progress: Progress) -> SidecarOutcome:
    report = None
    if config.write_sidecar:
        from lazydelta.spark.checkpoint import ensure_sidecar

        report = ensure_sidecar(
            spark,
            reader_url(config.target),
            storage_options=config.storage_options,
            config=config.sidecar,
            checkpoint=config.checkpoint,
        )
    elif config.checkpoint:
        newest = table_state(spark, config.target)
        if newest is not None and newest.version != checkpoint_version(spark, config.target):
            checkpoint_newest(spark, config.target)
    checkpoint = checkpoint_version(spark, config.target)
    if report is None:
        return SidecarOutcome(checkpoint_version=checkpoint)
    progress("sidecar", checkpoint_version=checkpoint, **msgspec.structs.asdict(report))
    return SidecarOutcome(
        checkpoint_version=checkpoint, sidecar_version=report.version, sidecar_kind=report.kind
    )


def _in_words(problem: Exception, config: IngestConfig) -> str:
    if isinstance(problem, spark_failures()):
        what = "sidecar" if config.write_sidecar else "checkpoint"
        problem = explain(problem, f"writing the {what}", config.target)
    if isinstance(problem, LazyDeltaError):
        return f"{problem.what} ({problem.where}): {problem.fix}"
    return f"{type(problem).__name__}: {problem}"
