"""CSV files by the names in their headers.

Why: Spark takes the first file's header for all and columns by their position. Here files are grouped by
header, and every group is read with its own columns; a column is what its name says, wherever it stands.
Contract: a frame of the schema's columns, the source folders' own, `RAW_TEXT` (of malformed lines only)
and `REASON`. Whole numbers are inferred as bigint; an event time is left as text, for its zone is known
later.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING
from urllib.parse import unquote

from lazydelta.spark.known_schema import checked_names, conformed, given_schema, new_fields, reconciled
from lazydelta.spark.record_columns import MALFORMED, RAW_TEXT, REASON
from lazydelta.spark.table_url import literal_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructField, StructType

    from lazydelta.spark.config import IngestConfig

_NUMBERS = ("bigint", "double")


def csv_records(
    spark: SparkSession,
    config: IngestConfig,
    places: list[str],
    *,
    options: dict[str, str],
    kept: StructType | None,
) -> DataFrame:
    """The rows of all files; a frame without columns where there is no line at all."""
    from pyspark.sql import functions as fn
    from pyspark.sql.types import StructType

    options = {"header": "true"} | options
    groups = _groups(spark, places, options)
    if len(groups) > 1 and literal_path(config.source) == config.source:
        options = {"basepath": config.source} | options  # so that folders like `day=1` stay columns
    if not groups:
        return spark.createDataFrame([], StructType([]))
    given = given_schema(config)
    known = given or kept
    plain = [spark.read.format("csv").options(**options).load(group).schema for group in groups]
    folders = [
        name for name in spark.read.format("text").options(**options).load(places).columns if name != "value"
    ]
    if options["header"].lower() != "true" and known is not None:
        plain = [known]
    found = [
        header
        if known is not None and not new_fields(known, header)
        else _inferred(spark, group, options, config)
        for group, header in zip(groups, plain, strict=True)
    ]
    schema = reconciled(kept, checked_names(given or reduce(_common, found), config.source), config)
    parts = [
        _rows(spark, group, options, _without(header, folders), schema=schema, where=config.source)
        for group, header in zip(groups, plain, strict=True)
    ]
    rows = reduce(lambda one, other: one.unionByName(other), parts)
    return rows.withColumn(REASON, fn.when(fn.col(RAW_TEXT).isNotNull(), MALFORMED))


def _groups(spark: SparkSession, places: list[str], options: dict[str, str]) -> list[list[str]]:
    """The files by their first line; all in one group where there are no headers."""
    from pyspark.sql import functions as fn

    text = spark.read.format("text").options(**options).load(places)
    is_line = fn.trim("value") != ""
    if options.get("comment"):
        is_line &= ~fn.col("value").startswith(options["comment"])
    lines = text.select(
        fn.col("_metadata.file_path").alias("file"),
        fn.col("_metadata.file_block_start").alias("start"),
        fn.col("value"),
    ).where(is_line)
    if options["header"].lower() != "true":
        return [] if lines.isEmpty() else [places]
    numbered = lines.where("start = 0").withColumn("number", fn.monotonically_increasing_id())
    firsts = numbered.groupBy("file").agg(fn.min_by("value", "number").alias("head")).collect()
    by_head: dict[str, list[str]] = {}
    for row in sorted(firsts, key=lambda row: str(row["file"])):
        by_head.setdefault(row["head"], []).append(literal_path(unquote(row["file"])))
    return [places] if len(by_head) == 1 else list(by_head.values())


def _inferred(
    spark: SparkSession, group: list[str], options: dict[str, str], config: IngestConfig
) -> StructType:
    from pyspark.sql.types import LongType, StringType, StructField, StructType

    fields = []
    reader = spark.read.format("csv").options(**options).option("inferSchema", "true")
    for field in reader.load(group).schema.fields:
        kind: DataType = field.dataType
        if kind.simpleString() == "int":
            kind = LongType()
        elif kind.simpleString() == "timestamp" and field.name.lower() == config.event_time.lower():
            kind = StringType()
        fields.append(StructField(field.name, kind))
    return StructType(fields)


def _without(header: StructType, folders: list[str]) -> StructType:
    """The columns that stand in the files."""
    from pyspark.sql.types import StructType

    return StructType([field for field in header.fields if field.name not in folders])


def _common(one: StructType, other: StructType) -> StructType:
    """The columns of both; a column that they type differently is text."""
    from pyspark.sql.types import StructType

    theirs = {field.name.lower(): field for field in other.fields}
    names = {field.name.lower() for field in one.fields}
    shared = [_wider(field, theirs.get(field.name.lower(), field)) for field in one.fields]
    return StructType([*shared, *(field for field in other.fields if field.name.lower() not in names)])


def _wider(one: StructField, other: StructField) -> StructField:
    from pyspark.sql.types import DoubleType, StringType, StructField

    kinds = {one.dataType.simpleString(), other.dataType.simpleString()}
    if len(kinds) == 1:
        return one
    return StructField(one.name, DoubleType() if kinds <= set(_NUMBERS) else StringType())


def _rows(
    spark: SparkSession,
    group: Sequence[str],
    options: dict[str, str],
    header: StructType,
    *,
    schema: StructType,
    where: str,
) -> DataFrame:
    from pyspark.sql.types import StringType, StructField, StructType

    kinds = {field.name.lower(): field.dataType for field in schema.fields}
    fields = [StructField(field.name, kinds.get(field.name.lower(), StringType())) for field in header.fields]
    reader = spark.read.format("csv").options(**options).option("columnNameOfCorruptRecord", RAW_TEXT)
    if options["header"].lower() == "true":
        reader = reader.option("enforceSchema", "false")
    wide = StructType([*fields, StructField(RAW_TEXT, StringType())])
    return conformed(reader.schema(wide).load(list(group)), schema, keep=(RAW_TEXT,), where=where)
