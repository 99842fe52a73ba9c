"""Structured Streaming into the table: every row once, whatever is killed and whenever.

Why a stream of files only *names* them: the files of a batch are then read by the same code as a batch
ingest reads them. Text that is no JSON, unknown keys, new Parquet columns and other CSV headers are seen; and
Spark's stream reader, which reads a file twice when another file of the batch has a glob character in its
name, is kept away from the rows. Other formats (Kafka, …) are streamed as they are.
Contract: batch N is written with the transaction (id of the checkpoint location, N) to the rejects and to
the target; Spark notes N as done only afterwards. A batch that was cut off is done again from the same files,
and what it had written already is left out. An error leaves the batch undone. Asked to stop, the stream
finishes the batch under way within `limits.STREAM_STOP_SECONDS`; past that it gives the batch up, and the
next start does it again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from lazydelta import limits
from lazydelta.errors import InvalidRequestError
from lazydelta.spark.config import IngestConfig
from lazydelta.spark.failures import explain, explained
from lazydelta.spark.stream_batches import StreamBatches
from lazydelta.spark.stream_source import absolute, open_limited_stream, source_name, with_format
from lazydelta.spark.stream_state import open_stream_state
from lazydelta.spark.stream_totals import StreamTotals
from lazydelta.spark.table_url import with_spark_urls
from lazydelta.upkeep.progress import Progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

Mode = Literal["available-now", "continuous"]
# "given up": a batch under way took too long to wait for; the next start does it again.
StreamEnd = Literal["drained", "stopped", "given up"]

_POLL_SECONDS = 0.1
_DEFAULT_INTERVAL = "10 seconds"


class StreamSummary(msgspec.Struct, frozen=True, kw_only=True):
    """How one run of a stream ended and what it did."""

    ended: StreamEnd
    totals: StreamTotals
    checkpoint_location: str
    elapsed_ms: int


def run_stream(
    spark: SparkSession,
    config: IngestConfig,
    *,
    mode: Mode,
    progress: Progress,
    stop: threading.Event | None = None,
    read_again: bool = False,
) -> StreamSummary:
    """Ingest until the source is drained ("available-now") or `stop` is set.

    `read_again` allows a new checkpoint location though the target has rows of this source.
    """
    began = time.monotonic()
    config = with_spark_urls(config)
    location = _checkpoint_location(config)
    stop = stop or threading.Event()
    name = source_name(config)
    config = with_format(spark, config)
    with explained("opening the stream", name):
        state = open_stream_state(spark, config, source=name, location=location, read_again=read_again)
    batches = StreamBatches(spark, config, state, progress=progress, stop=stop)
    with _without_callback_logs():
        query = _start(spark, config, batches, mode=mode, location=location)
        progress("stream_started", mode=mode, checkpoint_location=location, app_id=state.app_id)
        end, failure = _end_of(query, batches, stop)
    if end != "given up":
        _raise_failure(failure, batches, name)
        batches.write_last_checkpoint()
    elapsed_ms = round((time.monotonic() - began) * 1000)
    return StreamSummary(
        ended=end, totals=batches.totals, checkpoint_location=location, elapsed_ms=elapsed_ms
    )


def _start(
    spark: SparkSession, config: IngestConfig, batches: StreamBatches, *, mode: Mode, location: str
) -> StreamingQuery:
    with explained("opening the stream", source_name(config)):
        writer: Any = open_limited_stream(
            spark, config
        ).writeStream  # Any: `trigger` takes one of many keywords
        writer = writer.foreachBatch(batches.write).option("checkpointLocation", location)
        if mode == "available-now":
            writer = writer.trigger(availableNow=True)
        else:
            writer = writer.trigger(processingTime=config.trigger_interval or _DEFAULT_INTERVAL)
        query: StreamingQuery = writer.start()
        return query


def _end_of(
    query: StreamingQuery, batches: StreamBatches, stop: threading.Event
) -> tuple[StreamEnd, BaseException | None]:
    """How the stream ended, and Spark's word for why."""
    from py4j.protocol import Py4JError

    try:
        return _watch(query, batches, stop), query.exception()
    except (Py4JError, ConnectionError) as problem:
        if not stop.is_set():
            raise explain(problem, "the stream", "Spark") from problem
        # Whoever asked this process to stop may have asked Java, too, and Java does not wait.
        return "given up", None


def _watch(query: StreamingQuery, batches: StreamBatches, stop: threading.Event) -> StreamEnd:
    """Wait for the end, or bring it about once `stop` is set."""
    while query.isActive:
        if stop.wait(_POLL_SECONDS):
            return _stop(query, batches)
    return "stopped" if batches.is_refusing else "drained"


def _stop(query: StreamingQuery, batches: StreamBatches) -> StreamEnd:
    """Let the batch under way end, then stop; from now on `batches` begins no other."""
    deadline = time.monotonic() + limits.STREAM_STOP_SECONDS
    while query.isActive and time.monotonic() < deadline:
        # The trigger is over only when Spark has noted the batch as done.
        if not batches.is_busy and not query.status["isTriggerActive"]:
            break
        time.sleep(_POLL_SECONDS)
    is_cut = query.isActive and batches.is_busy
    query.stop()
    return "given up" if is_cut else "stopped"


def _raise_failure(failure: BaseException | None, batches: StreamBatches, name: str) -> None:
    """Raise what ended the stream as what it was before it went through Java and back."""
    if batches.error is not None:
        with explained("the stream", name):
            raise batches.error
    if failure is not None and not batches.is_refusing:
        raise explain(failure, "the stream", name) from failure


def _checkpoint_location(config: IngestConfig) -> str:
    """The checkpoint location, where it is one."""
    location = config.checkpoint_location
    if not location:
        raise InvalidRequestError(
            "a stream needs a checkpoint location, to know after a stop what it has read",
            "--checkpoint-location",
            "name a folder of its own that is kept between runs",
        )
    places = (
        ("source", config.source, "it would be read"),
        ("target", config.target, "VACUUM would delete it"),
    )
    for place, folder, danger in places:
        if folder and _is_data_of(folder, location):
            raise InvalidRequestError(
                f"the checkpoint location lies inside the {place}, where {danger}",
                location,
                "name a folder of its own beside it",
            )
    return location


def _is_data_of(folder: str, location: str) -> bool:
    """Whether a folder holds the location in plain sight; names with `_` or `.` first are nobody's data."""
    inside = f"{absolute(location)}/".partition(f"{absolute(folder)}/")
    return not inside[0] and bool(inside[1]) and not inside[2].startswith(("_", "."))


@contextmanager
def _without_callback_logs() -> Iterator[None]:
    """Keep py4j from printing the traceback of an error that is raised from here anyway."""

    def is_other(record: logging.LogRecord) -> bool:
        return "executing the Python Proxy" not in record.getMessage()

    loggers = [logging.getLogger(f"py4j.{module}") for module in ("clientserver", "java_gateway")]
    for logger in loggers:
        logger.addFilter(is_other)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(is_other)
