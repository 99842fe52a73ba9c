"""The pipeline on Spark (ingest, checkpoint with sidecar, maintenance), and tables read in Spark.

PySpark is loaded when a function needs it.
"""

from lazydelta.spark.config import IngestConfig
from lazydelta.spark.ingest import BatchResult
from lazydelta.spark.reading.frame import read, register
from lazydelta.spark.run import IngestSummary, ingest, ingest_stream

__all__ = ["BatchResult", "IngestConfig", "IngestSummary", "ingest", "ingest_stream", "read", "register"]
