"""The files of a checkpoint as a DataFrame, sorted for the parts of a sidecar.

Why in the JVM: Spark shuffles and sorts there; rows cross into Python once, to be decoded and written.
Contract: columns have the names and meanings of the log room's rows, so that `typed_rows` decodes what
either feeder reads. Columns that no file has are left out, and no map is null: Spark's Arrow writer takes ten
times as long over those. The sort key is Spark's own reading of the order column; whoever writes the rows
checks that their order is ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from lazydelta.log.file_rows import DELETION_VECTOR_TYPE, DELTA_FIELDS, RAW_PATH, STATS_PARSED
from lazydelta.sidecar.format.layout import SidecarLayout
from lazydelta.spark.sidecar_ranges import ORDER, RANGE, sort_columns

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

HAS_TAGS = "has_tags"
_STRING_MAP = "map<string,string>"
_DV_FIELDS = ("storageType", "pathOrInlineDv", "offset", "sizeInBytes", "cardinality")
_DV_TYPES = ("string", "string", "int", "int", "bigint")
# Columns that few tables have; whether a checkpoint has one is counted first.
_OPTIONAL = ("deletion_vector", "tags", "base_row_id", "default_row_commit_version", "clustering_provider")
_PLAIN_TYPES = {
    "size": "bigint",
    "modification_time": "bigint",
    "base_row_id": "bigint",
    "default_row_commit_version": "bigint",
    "clustering_provider": "string",
}
_JOB_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",  # of times without a zone, as in our decoder
    "spark.sql.caseSensitive": "true",  # statistics are looked up by physical names
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
}


class CheckpointFrame(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The adds of a checkpoint and what is known of them."""

    adds: Any  # a DataFrame of one column, `add`; Any: importing PySpark is left to those who use it
    fields: frozenset[str]  # of the struct `add`
    num_files: int
    total_bytes: int
    optional: frozenset[str]  # of the columns that need not be there those that some file has


def job_session(spark: SparkSession, settings: dict[str, str] | None = None) -> SparkSession:
    """A session of the same application with the caller's settings and these on top of them."""
    clone: Any = spark._jsparkSession.cloneSession()  # Any: an object of the JVM
    session: SparkSession = type(spark)(spark.sparkContext, clone)
    for key, value in (settings or {}).items():
        session.conf.set(key, value)
    return session


def open_frame(
    spark: SparkSession, paths: Sequence[str], layout: SidecarLayout, *, is_typed: bool
) -> CheckpointFrame:
    """The adds in these Parquet files, with what the layout asks for; `is_typed`: take `stats_parsed`."""
    from pyspark.sql import functions as fn

    session = job_session(spark, _JOB_SETTINGS)
    found = session.read.option("mergeSchema", "true").parquet(*paths).schema
    schema = _pruned(found, layout, is_typed=is_typed)
    adds = session.read.schema(schema).parquet(*paths).where("add.path is not null")
    fields = frozenset(schema["add"].dataType.fieldNames())  # type: ignore[attr-defined]  # a StructType
    optional = [name for name in _OPTIONAL if DELTA_FIELDS[name] in fields]
    counts = [fn.count(_marker(name)).alias(name) for name in optional]
    facts = adds.agg(fn.count("*").alias("n"), fn.sum("add.size").alias("bytes"), *counts).collect()[0]
    return CheckpointFrame(
        adds=adds,
        fields=fields,
        num_files=facts.n,
        total_bytes=facts.bytes or 0,
        optional=frozenset(name for name in optional if facts[name]),
    )


def keyed_rows(frame: CheckpointFrame, layout: SidecarLayout) -> DataFrame:
    """The rows with what they are sorted by."""
    columns = _columns(frame, layout)
    rows: DataFrame = frame.adds.select(*columns, _order_key(frame, layout).alias(ORDER))
    return rows


def sorted_rows(rows: DataFrame, range_count: int) -> DataFrame:
    """Rows that know their range: each range a partition, sorted."""
    return rows.repartitionById(range_count, RANGE).sortWithinPartitions(*sort_columns()).drop(ORDER)


def _columns(frame: CheckpointFrame, layout: SidecarLayout) -> list[Column]:
    """What crosses into Python, under the names of the log room."""
    from pyspark.sql import functions as fn

    columns = [_field("path").alias(RAW_PATH)]
    plain = ["size", "modification_time", *(name for name in _PLAIN_TYPES if name in frame.optional)]
    columns += [_field(DELTA_FIELDS[name]).cast(_PLAIN_TYPES[name]).alias(name) for name in plain]
    if layout.partitions:
        columns.append(_filled(_field("partitionValues")).alias("partition_values"))
    if "tags" in frame.optional:
        columns += [_filled(_field("tags")).alias("tags"), _field("tags").isNotNull().alias(HAS_TAGS)]
    if "deletion_vector" in frame.optional:
        vector = fn.struct(
            *(
                _field("deletionVector", name).cast(type_).alias(field.name)
                for name, type_, field in zip(_DV_FIELDS, _DV_TYPES, DELETION_VECTOR_TYPE, strict=True)
            )
        )
        columns.append(fn.when(_marker("deletion_vector").isNotNull(), vector).alias("deletion_vector"))
    statistics = STATS_PARSED if STATS_PARSED in frame.fields else "stats"
    if statistics in frame.fields:
        columns.append(_field(statistics).alias(statistics))
    return columns


def _order_key(frame: CheckpointFrame, layout: SidecarLayout) -> Column:
    """The order column's value, as far as Spark can tell it."""
    from pyspark.sql import functions as fn

    if layout.order_column is None or layout.order_path is None or layout.order_type is None:
        return fn.lit(None).cast("string")
    if any(column.column == layout.order_column for column in layout.partitions):
        text = fn.try_element_at(_field("partitionValues"), fn.lit(layout.order_path[0]))
    elif STATS_PARSED in frame.fields:
        return _field(STATS_PARSED, "minValues", *layout.order_path)
    elif "stats" in frame.fields:
        steps = "".join(f"['{name}']" for name in ("minValues", *layout.order_path))
        text = fn.get_json_object(_field("stats"), f"${steps}")
    else:
        return fn.lit(None).cast("string")
    return text if layout.order_type == "string" else text.try_cast(layout.order_type)


def _field(*path: str) -> Column:
    """A field of the add by its exact names."""
    from pyspark.sql import functions as fn

    column = fn.col("add")
    for name in path:
        column = column.getField(name)
    return column


def _marker(name: str) -> Column:
    """What is null exactly where a file has no such column."""
    return (
        _field("deletionVector", "storageType") if name == "deletion_vector" else _field(DELTA_FIELDS[name])
    )


def _filled(mapping: Column) -> Column:
    from pyspark.sql import functions as fn

    return fn.coalesce(mapping, fn.create_map().cast(_STRING_MAP))


def _pruned(found: StructType, layout: SidecarLayout, *, is_typed: bool) -> StructType:
    """The schema to read with: only the fields of `add` that a sidecar holds."""
    from pyspark.sql.types import StructField, StructType

    wanted = {DELTA_FIELDS[name] for name in ("path", *_PLAIN_TYPES, "partition_values", "tags")}
    wanted |= {"deletionVector", "stats"} - ({"stats"} if is_typed else set())
    adds = found["add"].dataType
    assert isinstance(adds, StructType)
    fields = []
    for field in adds.fields:
        if field.name == STATS_PARSED and is_typed:
            kept = _pruned_statistics(field.dataType, layout)
            fields.append(StructField(STATS_PARSED, kept))
        elif field.name == "deletionVector":
            fields.append(StructField(field.name, _vector_type()))
        elif field.name in wanted:
            fields.append(StructField(field.name, field.dataType))
    return StructType([StructField("add", StructType(fields))])


def _vector_type() -> StructType:
    """A deletion vector with every field; those that a file lacks are read as null."""
    from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

    kinds = {"string": StringType, "int": IntegerType, "bigint": LongType}
    pairs = zip(_DV_FIELDS, _DV_TYPES, strict=True)
    return StructType([StructField(name, kinds[type_]()) for name, type_ in pairs])


def _pruned_statistics(found: Any, layout: SidecarLayout) -> StructType:  # Any: a type of PySpark
    """The typed statistics of the layout's columns alone."""
    from pyspark.sql.types import StructField, StructType

    fields = []
    for field in found.fields:
        if field.name in ("numRecords", "tightBounds"):
            fields.append(StructField(field.name, field.dataType))
        elif field.name in ("minValues", "maxValues", "nullCount"):
            inside = _pruned_struct(field.dataType, set(layout.stats_paths))
            if inside.fields:
                fields.append(StructField(field.name, inside))
    return StructType(fields)


def _pruned_struct(found: Any, paths: set[tuple[str, ...]]) -> StructType:  # Any: a type of PySpark
    from pyspark.sql.types import StructField, StructType

    fields = []
    for field in found.fields:
        below = {path[1:] for path in paths if path[:1] == (field.name,)}
        if not below:
            continue
        if () in below or not isinstance(field.dataType, StructType):
            fields.append(StructField(field.name, field.dataType))
        elif (inside := _pruned_struct(field.dataType, below)).fields:
            fields.append(StructField(field.name, inside))
    return StructType(fields)
