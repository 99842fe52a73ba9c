"""The source as rows: files of any format Spark reads, a table, or a stream, with the schema that is kept.

Contract: `open_source` gives the source's columns, and where the format can be malformed `RAW_TEXT` and
`REASON`; new columns are an error already here where the format hides them (JSON, CSV), else when the
batch is written. Files without a single line give a frame without columns. `open_stream` gives, for
files, their names only (`PATH`): each batch then opens its files as `open_source` does, one way for both.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from lazydelta.errors import InvalidRequestError
from lazydelta.spark.csv_records import csv_records
from lazydelta.spark.delta_table import table_state
from lazydelta.spark.failures import explained
from lazydelta.spark.known_schema import checked_names, given_schema, kept_schema
from lazydelta.spark.record_columns import PATH
from lazydelta.spark.table_url import literal_path, spark_url
from lazydelta.spark.text_records import documents, json_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from lazydelta.spark.config import IngestConfig

FILE_FORMATS = ("json", "csv", "parquet", "orc", "avro", "text", "xml")
_FORMAT_OF_SUFFIX = {
    "json": "json", "jsonl": "json", "ndjson": "json",
    "csv": "csv", "parquet": "parquet", "parq": "parquet", "orc": "orc", "avro": "avro", "xml": "xml",
}  # fmt: skip
_COMPRESSED = ("gz", "bz2", "zst", "lz4", "snappy", "deflate")
_FILES_LOOKED_AT = 1000
_STORE = re.compile(r"^(s3|az|azure|abfss?)://", re.IGNORECASE)
# Spark asks for the schema of a file stream even where the format has only one.
_NAMES_SCHEMA = "path string, modificationTime timestamp, length long, content binary"


def open_source(spark: SparkSession, config: IngestConfig, paths: Sequence[str] | None = None) -> DataFrame:
    """The rows of the source, or of these files of it."""
    config = with_spark_source(config)
    with explained("reading the source", config.source):
        kept = kept_schema(table_state(spark, config.target), config)
        if config.format == "table":
            return _named(spark.read.options(**config.options).table(config.source), config)
        kind = config.format or infer_format(spark, config.source)
        if kind in FILE_FORMATS and paths is None:
            _check_files(spark, config.source)
        places = [config.source] if paths is None else [literal_path(path) for path in paths]
        options = _options(config, is_listed=paths is not None)
        if kind == "csv":
            return csv_records(spark, config, places, options=options, kept=kept)
        if kind == "json" and not _needs_whole_files(config.options):
            return json_lines(spark, config, places, options=options, kept=kept)
        if kind in ("json", "xml"):
            return documents(spark, config, kind, places, options=options, kept=kept)
        return _named(_structured(spark, config, kind, places, options), config)


def open_stream(spark: SparkSession, config: IngestConfig) -> DataFrame:
    """The source as a stream: file names for files, rows for anything else."""
    config = with_spark_source(config)
    with explained("opening the stream", config.source):
        kind = config.format or infer_format(spark, config.source)
        reader = spark.readStream.options(**config.options)
        if kind == "table":
            return _named(reader.table(config.source), config)
        if kind not in FILE_FORMATS:
            return _named(reader.format(kind).load(config.source or None), config)
        # Only `path` is asked for, so that no file is read here.
        files = reader.format("binaryFile").schema(_NAMES_SCHEMA).load(config.source)
        return files.select(files["path"].alias(PATH))


def rows_of(spark: SparkSession, frame: DataFrame, config: IngestConfig) -> DataFrame:
    """The rows of a batch: of the files it names, else the batch itself."""
    if PATH not in frame.columns:
        return frame
    return open_source(spark, config, [row[0] for row in frame.select(PATH).distinct().sort(PATH).collect()])


def with_spark_source(config: IngestConfig) -> IngestConfig:
    """The same ingest with a source in a store as Hadoop spells it; anything else stays as it is."""
    if config.format == "table" or not _STORE.match(config.source):
        return config
    return msgspec.structs.replace(config, source=spark_url(config.source, config.storage_options))


def infer_format(spark: SparkSession, source: str) -> str:
    """What the names of the files say, where they agree."""
    kinds: dict[str, str] = {}
    names = _file_names(spark, source)
    if not names:
        raise _no_files(source)
    for name in names:
        if name == "_delta_log":
            return "delta"
        parts = name.lower().split(".")[1:]
        while parts and parts[-1] in _COMPRESSED:
            parts.pop()
        kinds.setdefault(_FORMAT_OF_SUFFIX.get(parts[-1] if parts else "", "?"), name)
    if len(kinds) == 1 and "?" not in kinds:
        return next(iter(kinds))
    seen = ", ".join(sorted(kinds.values())[:4])
    raise InvalidRequestError(
        f"the format cannot be told from the files: {seen}", source, "give --format json, csv, parquet, …"
    )


def _named(frame: DataFrame, config: IngestConfig) -> DataFrame:
    checked_names(frame.schema, config.source or config.target)
    return frame


def _structured(
    spark: SparkSession, config: IngestConfig, kind: str, places: list[str], options: dict[str, str]
) -> DataFrame:
    reader = spark.read.format(kind).options(**options)
    schema = given_schema(config)
    if schema is not None and kind not in ("delta", "jdbc"):
        reader = reader.schema(schema)
    if kind == "parquet":
        reader = reader.option("mergeSchema", "true")
    if kind not in FILE_FORMATS and not config.source:
        return reader.load()
    return reader.load(places)


def _options(config: IngestConfig, *, is_listed: bool) -> dict[str, str]:
    """The source's options by their lower-case names, for Spark tells no cases apart."""
    options = {name.lower(): value for name, value in config.options.items()}
    options.setdefault("timezone", config.time_zone)  # of text that says none
    # Whatever the session is set to: a file that cannot be read is an error.
    options |= {"ignorecorruptfiles": "false", "ignoremissingfiles": "false"}
    if is_listed and literal_path(config.source) == config.source:
        options.setdefault("basepath", config.source)  # so that folders like `day=1` stay columns
    return options


def _needs_whole_files(options: dict[str, str]) -> bool:
    lowered = {name.lower(): value.lower() for name, value in options.items()}
    return lowered.get("multiline") == "true" or bool({"encoding", "charset"} & set(lowered))


def _check_files(spark: SparkSession, source: str) -> None:
    if not _file_names(spark, source):
        raise _no_files(source)


def _no_files(source: str) -> InvalidRequestError:
    return InvalidRequestError(
        "the source holds no files",
        source,
        "wait until files arrive (a stream also needs --format), or name another",
    )


def _file_names(spark: SparkSession, source: str) -> list[str]:
    """Names of the first files that a source path means; `_delta_log` for a Delta table."""
    jvm: Any = spark._jvm  # Any: objects of the JVM
    path = jvm.org.apache.hadoop.fs.Path(source)
    store = path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
    found = store.globStatus(path)
    if found is None or not len(found):
        raise InvalidRequestError("the source does not exist", source, "check the path")
    names: list[str] = []
    for status in found:
        if not status.isDirectory():
            names.append(status.getPath().getName())
            continue
        if store.exists(jvm.org.apache.hadoop.fs.Path(status.getPath(), "_delta_log")):
            return ["_delta_log"]
        files = store.listFiles(status.getPath(), True)
        while files.hasNext() and len(names) < _FILES_LOOKED_AT:
            name = files.next().getPath().getName()
            if not name.startswith(("_", ".")):
                names.append(name)
    return names
