"""What the log says of a Delta table, asked of Delta on Spark: version, schema, partitioning, properties.

Why not `DESCRIBE DETAIL`: it counts the files, which on a large table without a `.crc` reads the whole
log.
Contract: the answer is of the newest version; None where there is no Delta table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from lazydelta.spark.failures import spark_failures
from lazydelta.spark.quoting import delta_table_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType


class TableState(msgspec.Struct, frozen=True, kw_only=True):
    """A table at its newest version."""

    version: int
    schema: Any  # pyspark's StructType; Any: importing it would load PySpark
    partition_columns: list[str]
    properties: dict[str, str]


class Commit(msgspec.Struct, frozen=True, kw_only=True):
    """One commit and what Delta measured of it."""

    version: int
    files: int
    rows: int
    bytes_written: int


def table_state(spark: SparkSession, path: str) -> TableState | None:
    """The table at `path`, or None."""
    from pyspark.sql.types import StructType, _parse_datatype_json_string

    snapshot = _delta_log(spark, path).update(False, _none(spark), _none(spark))
    if snapshot.version() < 0:
        return None
    metadata = snapshot.metadata()
    schema = _parse_datatype_json_string(metadata.schemaString())
    assert isinstance(schema, StructType)
    return TableState(
        version=snapshot.version(),
        schema=schema,
        partition_columns=list(_as_java(spark, metadata.partitionColumns())),
        properties=dict(_as_java(spark, metadata.configuration())),
    )


def create_table(
    spark: SparkSession,
    path: str,
    *,
    schema: StructType,
    partition_by: str | None,
    properties: Mapping[str, str],
) -> None:
    """Make an empty table; where another writer was faster, its table stays."""
    from delta.tables import DeltaTable

    builder = DeltaTable.createIfNotExists(spark).location(path).addColumns(schema)
    if partition_by is not None:
        builder = builder.partitionedBy(partition_by)
    for name, value in properties.items():
        builder = builder.property(name, value)
    try:
        builder.execute()
    except spark_failures() as problem:
        if table_state(spark, path) is not None:
            return
        if "DELTA_TABLE_NOT_FOUND" not in str(problem):
            raise
        # Delta's builder takes every folder that is not empty for a table; its writer does not.
        _create_by_writing(spark, path, schema=schema, partition_by=partition_by, properties=properties)


def _create_by_writing(
    spark: SparkSession,
    path: str,
    *,
    schema: StructType,
    partition_by: str | None,
    properties: Mapping[str, str],
) -> None:
    """The same by writing no row, for a folder whose log has no commit; most properties need a second one."""
    taken = {name: value for name, value in properties.items() if name.startswith("delta.")}
    writer = spark.createDataFrame([], schema).write.format("delta").mode("append").options(**taken)
    if partition_by is not None:
        writer = writer.partitionBy(partition_by)
    try:
        writer.save(path)
    except spark_failures():
        if table_state(spark, path) is None:
            raise
        return
    others = {name: value for name, value in properties.items() if name not in taken}
    if others:
        set_properties(spark, path, others)


def set_properties(spark: SparkSession, path: str, properties: Mapping[str, str]) -> None:
    """One commit that sets these properties."""
    pairs = ", ".join(f"{_literal(name)} = {_literal(value)}" for name, value in properties.items())
    spark.sql(f"ALTER TABLE {delta_table_name(path)} SET TBLPROPERTIES ({pairs})")


def find_commit(spark: SparkSession, path: str, *, mark: str, newest: int = 20) -> Commit | None:
    """The commit that carries `mark` as its user metadata, among the newest ones."""
    from delta.tables import DeltaTable

    history = DeltaTable.forPath(spark, path).history(newest)
    found = history.where(history.userMetadata == mark).select("version", "operationMetrics").collect()
    if not found:
        return None
    metrics = found[0].operationMetrics
    return Commit(
        version=found[0].version,
        files=int(metrics.get("numFiles", 0)),
        rows=int(metrics.get("numOutputRows", 0)),
        bytes_written=int(metrics.get("numOutputBytes", 0)),
    )


def bytes_per_row(spark: SparkSession, path: str, *, newest: int = 10) -> float | None:
    """What a row took in the newest writes, where there were any."""
    from delta.tables import DeltaTable

    history = (
        DeltaTable.forPath(spark, path).history(newest).select("operation", "operationMetrics").collect()
    )
    writes = [row.operationMetrics for row in history if row.operation in ("WRITE", "STREAMING UPDATE")]
    rows = sum(int(metrics.get("numOutputRows", 0)) for metrics in writes)
    written = sum(int(metrics.get("numOutputBytes", 0)) for metrics in writes)
    return written / rows if rows and written else None


def checkpoint_newest(spark: SparkSession, path: str) -> int | None:
    """Make Delta write a checkpoint of the newest version; that version, or None where there is no table."""
    log = _delta_log(spark, path)
    snapshot = log.update(False, _none(spark), _none(spark))
    version = int(snapshot.version())
    if version < 0:
        return None
    log.checkpoint(snapshot, _none(spark))
    return version


def checkpoint_version(spark: SparkSession, path: str) -> int | None:
    """The version of the newest checkpoint, by the log's own hint."""
    hint = _delta_log(spark, path).readLastCheckpointFile()
    return int(hint.get().version()) if hint.isDefined() else None


def _delta_log(spark: SparkSession, path: str) -> Any:  # Any: an object of the JVM
    jvm: Any = spark._jvm
    return jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, path)


def _none(spark: SparkSession) -> Any:  # Any: an object of the JVM
    jvm: Any = spark._jvm
    return jvm.scala.Option.empty()


def _as_java(spark: SparkSession, collection: Any) -> Any:  # Any: objects of the JVM
    """A sequence or map of Scala, as py4j takes one."""
    jvm: Any = spark._jvm
    return jvm.scala.jdk.javaapi.CollectionConverters.asJava(collection)


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
