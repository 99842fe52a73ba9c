"""`lazydelta.spark.ingest` and `ingest_stream`: from settings to summary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from lazydelta.errors import InvalidRequestError
from lazydelta.settings import process_environment
from lazydelta.spark.after_commit import SidecarOutcome, after_commit
from lazydelta.spark.config import IngestConfig, check_config
from lazydelta.spark.ingest import BatchResult, write_batch
from lazydelta.spark.pipeline_settings import load_config
from lazydelta.spark.session import check_delta, get_session
from lazydelta.spark.source import open_source
from lazydelta.spark.table_url import with_spark_urls
from lazydelta.upkeep.progress import Progress, silent

if TYPE_CHECKING:
    import threading
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from lazydelta.spark.stream import StreamSummary

RUN_VERSION = 0  # a run id names one batch


class IngestSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What an ingest did, and where."""

    source: str
    target: str
    rejects: str
    batch: BatchResult
    sidecar: SidecarOutcome


def ingest(
    source: str,
    target: str,
    *,
    event_time: str | None = None,
    session: SparkSession | None = None,
    config_file: str | None = None,
    spark: Mapping[str, str] | None = None,
    progress: Progress = silent,
    **settings: object,
) -> IngestSummary:
    """Ingest `source` into the Delta table `target`, by the period of the column `event_time`.

    `settings` are those of the [ingest] table: `granularity="day"`, `merge_schema=True`, `format="csv"`, …;
    what is left out comes from the environment, the settings file, the defaults. `session` is used as it is.
    """
    given = {"source": source, "target": target, "event_time": event_time, **settings}
    config = check_config(
        load_config(given, spark=spark, config_file=config_file, environment=process_environment())
    )
    if config.stream is not None:
        raise InvalidRequestError(
            f"the settings ask for a stream ({config.stream}), and this writes one batch",
            "ingest()",
            "call lazydelta.spark.ingest_stream, or leave the setting stream out",
        )
    return run_batch(_session(session, config), config, progress)


def ingest_stream(
    source: str,
    target: str,
    *,
    checkpoint_location: str | None = None,
    stream: Literal["available-now", "continuous"] = "available-now",
    event_time: str | None = None,
    session: SparkSession | None = None,
    config_file: str | None = None,
    spark: Mapping[str, str] | None = None,
    progress: Progress = silent,
    stop: threading.Event | None = None,
    read_again: bool = False,
    **settings: object,
) -> StreamSummary:
    """Ingest what arrives at `source`, every row once: what is there now, or until `stop` is set.

    `checkpoint_location` is a folder of its own that is kept between runs; `settings` are as for `ingest`.
    """
    from lazydelta.spark.stream import run_stream

    given = {"source": source, "target": target, "event_time": event_time, **settings}
    given |= {"checkpoint_location": checkpoint_location, "stream": stream}
    config = check_config(
        load_config(given, spark=spark, config_file=config_file, environment=process_environment())
    )
    return run_stream(
        _session(session, config),
        config,
        mode=stream,
        progress=progress,
        stop=stop,
        read_again=read_again,
    )


def run_batch(spark: SparkSession, config: IngestConfig, progress: Progress = silent) -> IngestSummary:
    """Read the source, write one batch, see to the sidecar."""
    run = with_spark_urls(check_config(config))
    if run.stream is not None:
        raise InvalidRequestError(
            "the settings ask for a stream, not for a batch",
            "ingest.stream",
            "call ingest_stream, or leave `stream` out of the settings",
        )
    if config.run_id is not None:
        run = msgspec.structs.replace(run, app_id=f"{config.app_id}/{config.run_id}")
    frame = open_source(spark, run)
    batch_id = None if run.run_id is None else RUN_VERSION
    batch = write_batch(spark, frame, run, batch_id=batch_id, progress=progress)
    sidecar = after_commit(spark, run, progress)
    return IngestSummary(
        source=run.source, target=run.target, rejects=run.rejects_path, batch=batch, sidecar=sidecar
    )


def _session(given: SparkSession | None, config: IngestConfig) -> SparkSession:
    return get_session(config) if given is None else check_delta(given)
