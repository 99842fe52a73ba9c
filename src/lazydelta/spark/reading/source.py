"""The data source `lazydelta` of Spark: a table's rows, as a batch or as a stream.

Contract: the version is pinned when Spark asks for the schema, once for each DataFrame; every action on it
reads that version.
"""

from __future__ import annotations

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from lazydelta.spark.reading.batch_reader import LazyDeltaReader
from lazydelta.spark.reading.options import BATCH_ONLY, FORMAT, STREAM_ONLY, parse_options, refuse
from lazydelta.spark.reading.spark_schema import spark_schema
from lazydelta.spark.reading.stream_reader import LazyDeltaStreamReader
from lazydelta.spark.reading.table_read import Pin, open_read


class LazyDeltaSource(DataSource):
    """What `spark.dataSource.register` takes."""

    _pin: Pin | None = None

    @classmethod
    def name(cls) -> str:
        """What `format()` is given."""
        return FORMAT

    def schema(self) -> StructType:
        """The columns of the table, or those asked for; pins the version."""
        table = open_read(parse_options(self.options))
        self._pin = table.pin
        return spark_schema(table.rows.selection.output, table.schema_string, table.root)

    def reader(self, schema: StructType) -> DataSourceReader:
        """For `spark.read`."""
        options = parse_options(self.options)
        refuse(options, STREAM_ONLY, "it is for streams: use readStream, or leave it out")
        return LazyDeltaReader(options, self._pin, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  # Spark's name
        """For `spark.readStream`."""
        options = parse_options(self.options)
        refuse(options, BATCH_ONLY, "it is not for streams: give startingVersion, or leave it out")
        return LazyDeltaStreamReader(options, self._pin, schema)
