"""The batch side of the data source: a plan on the driver, rows on executors.

Contract: the reader is pickled to the executors before it plans, so that what they need is there from the
beginning; the file list travels in the partitions alone. Spark plans once for each DataFrame.
Why there is no `pushFilters`: Spark 4.2 keeps what one query of a DataFrame pushed for the others, so that
the two sides of a union or of a join with itself read one side's files (docs/spark.md).
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from lazydelta.errors import InvalidRequestError
from lazydelta.spark.reading.file_chunks import Chunk
from lazydelta.spark.reading.options import ReadOptions
from lazydelta.spark.reading.partition_rows import RowsOfPartition
from lazydelta.spark.reading.plan_files import plan_partitions
from lazydelta.spark.reading.spark_schema import arrow_of, conform, spark_schema
from lazydelta.spark.reading.spill import ChunkKeeper
from lazydelta.spark.reading.table_read import Pin, TableRead, open_read


class FilePartition(InputPartition):
    """The files of one task, and the version they are of."""

    def __init__(self, chunks: tuple[Chunk, ...], version: int) -> None:
        super().__init__(None)
        self.chunks = chunks
        self.version = version

    def __repr__(self) -> str:
        return f"FilePartition({sum(chunk.file_count for chunk in self.chunks)} files of {self.version})"


class LazyDeltaReader(DataSourceReader):
    """One version of one table."""

    def __init__(self, options: ReadOptions, pin: Pin | None, schema: StructType) -> None:
        self._options = options
        self._table = open_read(options, pin)
        self._of_partition: RowsOfPartition = self._table.of_partition()
        self._arrow: pa.Schema = arrow_of(checked_schema(self._table, schema))

    def partitions(self) -> list[InputPartition]:
        """The files that might match, in tasks."""
        table = self._table
        keeper = ChunkKeeper(self._options.spill, table.settings, where=table.root)
        planned = plan_partitions(table.file_batches(), table.sizing, keeper)
        if self._options.limit is not None and planned:
            planned = [tuple(chunk for chunks in planned for chunk in chunks)]  # one task counts exactly
        return [FilePartition(chunks, table.pin.version) for chunks in planned]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task; without files Spark hands over a partition of its own making."""
        if isinstance(partition, FilePartition):
            for rows in self._of_partition.read(partition.chunks, partition.version):
                yield conform(rows, self._arrow)

    def __getstate__(self) -> dict[str, object]:
        """What executors need; the table was opened for the driver."""
        return {"_of_partition": self._of_partition, "_arrow": self._arrow}


def checked_schema(table: TableRead, schema: StructType) -> StructType:
    """The schema that Spark asks for, which must be the table's."""
    own = spark_schema(table.rows.selection.output, table.schema_string, table.root)
    if own.names != schema.names or [f.dataType for f in own] != [f.dataType for f in schema]:
        raise InvalidRequestError(
            "the schema that was given is not the table's",
            table.root,
            "leave schema() out; choose columns by the option columns, and cast afterwards",
        )
    return own
