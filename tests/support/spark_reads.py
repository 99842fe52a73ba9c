"""A table as every reader in Spark gives it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lazydelta.spark import read

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def by_each_reader(spark: SparkSession, table: str | Path, **asked: Any) -> Iterator[DataFrame]:
    """What `read` gives; where that leaves the rows to Spark's own reader, ours as well."""
    frame = read(spark, table, **asked)
    yield frame
    if is_by_spark(frame):
        yield read(spark, table, **asked, native=False)


def is_by_spark(frame: DataFrame) -> bool:
    """Whether Spark's own reader reads; nothing is planned for the answer."""
    return "RelationV2" not in frame._jdf.queryExecution().analyzed().toString()
