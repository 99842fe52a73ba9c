"""How many bytes of Parquet a row takes: from the table's newest writes, else from a sample in memory."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from lazydelta import limits
from lazydelta.spark.delta_table import bytes_per_row
from lazydelta.spark.record_columns import INTERNAL, REASON

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lazydelta.spark.config import IngestConfig
    from lazydelta.spark.time_column import DatedFrame


def measured_row_bytes(spark: SparkSession, config: IngestConfig, dated: DatedFrame) -> float:
    """An estimate; a file is split by rows, so a poor one gives smaller or larger files, nothing worse."""
    known = bytes_per_row(spark, config.target)
    return known if known is not None else _sampled(dated)


def _sampled(dated: DatedFrame) -> float:
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as fn

    good = dated.frame.where(fn.col(REASON).isNull()).drop(*INTERNAL, dated.period)
    try:
        sample = good.limit(limits.INGEST_SAMPLE_ROWS).toArrow()
    except PySparkException:  # a type that Arrow does not know
        return float(limits.INGEST_ROW_BYTES)
    body = io.BytesIO()
    pq.write_table(sample, body, compression="snappy")
    return float(body.tell() / max(1, sample.num_rows))
