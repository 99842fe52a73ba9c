"""A table as a DataFrame: the data source with its options filled in from the caller and the session."""

from __future__ import annotations

import atexit
import datetime as dt
import os
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from lazydelta.errors import InvalidRequestError
from lazydelta.predicate import parse_where
from lazydelta.rows.selection import column_list
from lazydelta.scan.config import check_number
from lazydelta.settings import PROVIDER_OPTION
from lazydelta.spark.reading.options import FORMAT, ReadOptions, option_texts
from lazydelta.spark.reading.plain_plan import NotPlainError
from lazydelta.spark.reading.table_read import TableRead, open_read
from lazydelta.spark.reading.time_zones import zone_name
from lazydelta.storage.scratch_folder import ScratchFolder
from lazydelta.telemetry import log_event

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read(
    spark: SparkSession,
    url: str | os.PathLike[str],
    *,
    where: Any = None,  # Any: SQL text, mapping, list or expression, as `Table.scan` takes them
    columns: Sequence[str] | None = None,
    limit: int | None = None,
    version: int | None = None,
    timestamp: dt.datetime | dt.date | str | None = None,
    storage_options: Mapping[str, Any] | None = None,  # Any: options of locations are mappings
    spill: str | None = None,
    native: bool | None = None,
) -> DataFrame:
    """The rows of a table that match, as a DataFrame pinned to one version; see docs/spark.md.

    `spill`: a folder that driver and executors reach, for file lists that are too long for a plan. `native`:
    whether Spark's own Parquet reader reads the files; None: where all of them are plain.
    """
    if not hasattr(spark, "_jsparkSession"):
        raise InvalidRequestError(
            "read() cannot use a session of Spark Connect",
            "the Spark session",
            f'register(spark), then spark.read.format("{FORMAT}") with options',
        )
    register(spark)
    check_number("limit", limit, 0, where="read()")
    check_number("version", version, 0, where="read()")
    chosen = column_list(columns)
    options = ReadOptions(
        path=os.fspath(url),
        where=None if where is None else str(parse_where(where)),
        columns=None if chosen is None else tuple(chosen),
        version=version,
        timestamp=timestamp.isoformat() if isinstance(timestamp, dt.date) else timestamp,
        partitionlimit=limit,
        timezone=_time_zone(spark),
        maxpartitionbytes=_bytes(spark, "spark.sql.files.maxPartitionBytes"),
        opencostbytes=_bytes(spark, "spark.sql.files.openCostInBytes"),
        minpartitions=spark.sparkContext.defaultParallelism,
        spill=spill or _own_spill(spark),
        storage_options=_plain(storage_options or {}),
    )
    table = open_read(options)  # here, so that what is wrong with the request is raised as it is
    frame = None if native is False else _by_spark(spark, table, is_required=native is True)
    if frame is None:
        options = msgspec.structs.replace(options, version=table.pin.version, timestamp=None)
        frame = spark.read.format(FORMAT).options(**option_texts(options)).load()
    return frame if limit is None else frame.limit(limit)


def register(spark: SparkSession) -> None:
    """Make `format("lazydelta")` known to this session."""
    from lazydelta.spark.reading.source import LazyDeltaSource

    spark.dataSource.register(LazyDeltaSource)


def _by_spark(spark: SparkSession, table: TableRead, *, is_required: bool) -> DataFrame | None:
    """The rows by Spark's own reader; None where some file needs ours."""
    from lazydelta.spark.reading.native_frame import native_frame

    try:
        return native_frame(spark, table, Path(_spill_folder()))
    except NotPlainError as reason:
        log_event("rows are not left to Spark's own reader", table=table.root, reason=str(reason))
        if not is_required:
            return None
        raise InvalidRequestError(
            f"Spark's own reader cannot read this: {reason}",
            table.root,
            "leave native out: lazydelta reads the rows then",
        ) from reason


def _time_zone(spark: SparkSession) -> str:
    """The session's, whose short names Spark alone knows."""
    jvm: Any = spark._jvm  # Any: objects of the JVM
    session: Any = spark._jsparkSession
    told = session.sessionState().conf().sessionLocalTimeZone()
    known = jvm.org.apache.spark.sql.catalyst.util.DateTimeUtils.getZoneId(told).normalized().getId()
    return zone_name(known, "spark.sql.session.timeZone")


def _bytes(spark: SparkSession, name: str) -> int:
    """A setting of Spark's that may be written as 128MB."""
    conf: Any = spark._jsparkSession.sessionState().conf()  # Any: an object of the JVM
    value = {
        "spark.sql.files.maxPartitionBytes": conf.filesMaxPartitionBytes,
        "spark.sql.files.openCostInBytes": conf.filesOpenCostInBytes,
    }[name]()
    return max(1, int(value))


def _plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options as data: what is a function cannot go where the table is opened."""
    given = [options, *(value for value in options.values() if isinstance(value, Mapping))]
    if any(PROVIDER_OPTION in one and not isinstance(one[PROVIDER_OPTION], str | None) for one in given):
        raise InvalidRequestError(
            f"{PROVIDER_OPTION} is an object of this process",
            "read()",
            "give keys or a token, or let driver and executors sign in by their environment (docs/spark.md)",
        )
    return dict(options)


def _own_spill(spark: SparkSession) -> str | None:
    """A folder of this process, where every task sees this machine's disk."""
    master = spark.sparkContext.master or ""
    return _spill_folder() if master.startswith("local") else None


@cache
def _spill_folder() -> str:
    folder = ScratchFolder(Path(tempfile.gettempdir()), "lazydelta-spark-plans-")
    atexit.register(folder.remove)
    return str(folder.path)
