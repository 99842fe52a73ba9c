"""Records that may be malformed: JSON lines, JSON and XML documents.

Why JSON is read as text lines: the line is at hand for the rejects, and keys that the kept schema lacks
are seen instead of dropped. Contract: a frame of the schema's columns, the source folders' own,
`RAW_TEXT` and `REASON`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lazydelta.errors import InvalidRequestError
from lazydelta.spark.known_schema import checked_names, given_schema, reconciled, respelled
from lazydelta.spark.quoting import quoted
from lazydelta.spark.record_columns import MALFORMED, RAW_TEXT, REASON

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from lazydelta.spark.config import IngestConfig

_CORRUPT = "_lazydelta_corrupt"  # instead of Spark's `_corrupt_record`, which a source may well have itself


def json_lines(
    spark: SparkSession,
    config: IngestConfig,
    places: list[str],
    *,
    options: dict[str, str],
    kept: StructType | None,
) -> DataFrame:
    """One record per line; blank lines are none. A frame without columns where there is no line at all."""
    from pyspark.sql import functions as fn
    from pyspark.sql.types import StringType, StructField, StructType

    text = spark.read.format("text").options(**options).load(places)
    folders = [name for name in text.columns if name != "value"]  # partition columns of the source
    text = text.withColumn("value", _without_mark(fn.col("value"))).where(fn.trim("value") != "")
    found = given_schema(config) or _inferred(spark, text.select("value"), config.options)
    checked_names(found, config.source)
    schema = respelled(reconciled(kept and _without(kept, folders), found, config), found)
    if not schema.fields:
        if text.isEmpty():
            return spark.createDataFrame([], StructType([]))
        raise InvalidRequestError("no line of the source is a JSON object", config.source, "check --format")
    wide = StructType([*schema.fields, StructField(RAW_TEXT, StringType())])
    how = {**options, "columnNameOfCorruptRecord": RAW_TEXT}
    parsed = fn.from_json("value", wide, how)
    both = text.withColumn("value", fn.struct(fn.col("value").alias("line"), parsed.alias("row")))
    row = fn.col("value.row")
    return both.select(
        *[row.getField(name).alias(name) for name in schema.names],
        *[fn.col(quoted(name)) for name in folders],
        fn.col("value.line").alias(RAW_TEXT),
        fn.when(row.isNull() | row[RAW_TEXT].isNotNull(), MALFORMED).alias(REASON),
    )


def documents(
    spark: SparkSession,
    config: IngestConfig,
    kind: str,
    places: list[str],
    *,
    options: dict[str, str],
    kept: StructType | None,
) -> DataFrame:
    """Records of files that have to be read whole."""
    from pyspark.sql import functions as fn
    from pyspark.sql.types import StringType, StructField, StructType

    reader = spark.read.format(kind).options(**options).option("columnNameOfCorruptRecord", _CORRUPT)
    found = given_schema(config) or _without(reader.load(places).schema, [_CORRUPT])
    checked_names(found, config.source)
    schema = respelled(reconciled(kept, found, config), found)
    wide = StructType([*schema.fields, StructField(RAW_TEXT, StringType())])
    reader = spark.read.format(kind).options(**options).option("columnNameOfCorruptRecord", RAW_TEXT)
    rows = reader.schema(wide).load(places)
    return rows.withColumn(REASON, fn.when(fn.col(RAW_TEXT).isNotNull(), MALFORMED))


def _inferred(spark: SparkSession, lines: DataFrame, options: dict[str, str]) -> StructType:
    """The schema of JSON texts, by Spark's own inference over all of them."""
    from pyspark.sql.types import StructType, _parse_datatype_json_string

    jvm: Any = spark._jvm  # Any: objects of the JVM
    reader = spark._jsparkSession.read()
    for name, value in options.items():
        reader = reader.option(name, value)
    reader = reader.option("columnNameOfCorruptRecord", _CORRUPT)
    texts = getattr(lines._jdf, "as")(jvm.org.apache.spark.sql.Encoders.STRING())
    schema = _parse_datatype_json_string(reader.json(texts).schema().json())
    assert isinstance(schema, StructType)
    return _without(schema, [_CORRUPT])


def _without(schema: StructType, names: list[str]) -> StructType:
    from pyspark.sql.types import StructType

    return StructType([field for field in schema.fields if field.name not in names])


def _without_mark(text: Column) -> Column:
    """A byte-order mark is no part of the first line."""
    from pyspark.sql import functions as fn

    return fn.when(text.startswith("\ufeff"), text.substr(fn.lit(2), fn.length(text))).otherwise(text)
