"""The table of rows that could not be placed in time: never dropped, always with the reason.

Contract: one row per rejected record: `reason`, `record` (the source's own text where there is one, else
the row as JSON), `app_id` and `batch_id` of the run, `rejected_at`. With a batch id the write is
idempotent, as the target's is.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from lazydelta.errors import InvalidRequestError
from lazydelta.spark.delta_table import create_table, table_state
from lazydelta.spark.layout_check import check_free
from lazydelta.spark.record_columns import RAW_TEXT, REASON

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lazydelta.spark.config import IngestConfig

COLUMNS = {
    "reason": "string",
    "record": "string",
    "app_id": "string",
    "batch_id": "long",
    "rejected_at": "timestamp",
}


def check_rejects(spark: SparkSession, config: IngestConfig) -> None:
    """Raise where the rejects cannot go to their place, before anything is written."""
    state = table_state(spark, config.rejects_path)
    if state is None:
        check_free(spark, config.rejects_path)
    elif not set(COLUMNS) <= set(state.schema.names):
        raise InvalidRequestError(
            "the table for rejects has other columns", config.rejects_path, "give --rejects another path"
        )


def write_rejects(frame: DataFrame, config: IngestConfig, *, batch_id: int | None, mark: str) -> None:
    """Append the rows of `frame` that have a reason."""
    from pyspark.sql import functions as fn

    rows = frame.where(fn.col(REASON).isNotNull()).select(
        fn.col(REASON).alias("reason"),
        fn.col(RAW_TEXT).alias("record"),
        fn.lit(config.app_id).alias("app_id"),
        fn.lit(batch_id).cast("bigint").alias("batch_id"),
        fn.lit(dt.datetime.now(dt.UTC)).alias("rejected_at"),
    )
    _ensure_table(rows.sparkSession, config.rejects_path)
    writer = rows.write.format("delta").mode("append").option("userMetadata", mark)
    if batch_id is not None:
        writer = writer.option("txnAppId", config.app_id).option("txnVersion", batch_id)
    writer.save(config.rejects_path)


def _ensure_table(spark: SparkSession, path: str) -> None:
    """The log comes before the files: a kill in between would leave a folder that is no table."""
    from pyspark.sql.types import StructType

    if table_state(spark, path) is None:
        schema = StructType()
        for name, kind in COLUMNS.items():
            schema = schema.add(name, kind)
        create_table(spark, path, schema=schema, partition_by=None, properties={})
