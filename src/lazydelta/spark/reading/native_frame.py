"""A table as a DataFrame of Spark's own Parquet reader, where all planned files are plain.

Contract: the same rows as the data source gives, at the same pinned version, or `NotPlainError`. Files are
planned here and now; the DataFrame keeps their list. A file that is missing or damaged is an error whatever
the session is set to, and its name in that error tells the version.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit
from uuid import uuid4

from lazydelta.spark.failures import spark_failures
from lazydelta.spark.quoting import quoted
from lazydelta.spark.reading.plain_plan import FILE_LIST, FileList, NotPlainError, check_table, file_list
from lazydelta.spark.reading.spark_condition import spark_condition
from lazydelta.spark.reading.spark_schema import spark_schema
from lazydelta.spark.reading.table_read import TableRead
from lazydelta.spark.table_url import spark_url

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_READER_OPTIONS = {
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
    "mergeSchema": "false",
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
}


def native_frame(spark: SparkSession, table: TableRead, scratch: Path) -> DataFrame:
    """The rows that match, read by Spark; `scratch` is a folder of this process."""
    check_table(table)
    root = _encoded(spark_url(table.url, table.settings.storage_options))
    files = file_list(table, root)
    _check_reach(spark, files, root)
    frame = _files_frame(spark, table, files, scratch)
    predicate = table.rows.files.predicate
    if predicate is not None:
        frame = frame.where(spark_condition(predicate.root))
    return frame.select(*map(quoted, table.rows.selection.output))


def _files_frame(spark: SparkSession, table: TableRead, files: FileList, scratch: Path) -> DataFrame:
    """Every column of these files that is needed, and the partition columns."""
    selection, snapshot = table.rows.selection, table.source.snapshot
    partitions = snapshot.state.metadata.partition_columns
    names = [*(field.name for field in selection.fields), *partitions]
    schema = spark_schema(list(dict.fromkeys(names)), table.schema_string, table.root)
    reader = spark.read.schema(schema).options(**_READER_OPTIONS)
    if not partitions or not files.file_count:
        reader = reader.option("recursiveFileLookup", "true")  # folders say nothing
    folder = scratch / f"files-{uuid4().hex}"
    (folder / FILE_LIST).parent.mkdir(parents=True)
    (folder / FILE_LIST).write_bytes(files.body)
    try:
        frame = reader.parquet(folder.as_uri())
        found = len(frame._jdf.inputFiles())
    finally:  # Spark has read it
        (folder / FILE_LIST).unlink()
        (folder / FILE_LIST).parent.rmdir()
        folder.rmdir()
    if found != files.file_count or set(frame.columns) != set(schema.names):
        raise NotPlainError("Spark does not take lists of files as its sink writes them")
    return frame


def _check_reach(spark: SparkSession, files: FileList, root: str) -> None:
    """Raise where Spark has no way to the store by itself."""
    if files.first is None or root.startswith("file:"):
        return
    jvm: Any = spark._jvm  # Any: objects of the JVM
    try:
        path = jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(files.first))
        session: Any = spark._jsparkSession
        path.getFileSystem(session.sessionState().newHadoopConf()).getFileStatus(path)
    except spark_failures() as problem:
        raise NotPlainError("Spark does not reach the table's files by itself") from problem


def _encoded(root: str) -> str:
    """An address that Spark has, as a URI."""
    if root.startswith("/"):
        return "file://" + quote(root.rstrip("/"), safe="/=")
    parts = urlsplit(root)
    rest = root[len(f"{parts.scheme}://{parts.netloc}") :]
    return f"{parts.scheme}://{parts.netloc}" + quote(rest.rstrip("/"), safe="/=")
