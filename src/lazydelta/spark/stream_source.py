"""What a stream reads: its name, and how much of it at once.

Contract: `source_name` is the same whenever the same thing is read, however its path is spelled; options
that say how to read are no part of it. `open_limited_stream` bounds a batch of files unless told how, and
takes files however old they are. A file must be whole when it appears and never change: it is read once.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from lazydelta import limits
from lazydelta.spark.config import IngestConfig
from lazydelta.spark.failures import explained
from lazydelta.spark.source import FILE_FORMATS, infer_format, open_stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Options that say what is read, not how.
_NAMING_OPTIONS = ("subscribe", "subscribepattern", "assign", "path", "dbtable", "table", "topic", "stream")
RATE_OPTIONS = ("maxfilespertrigger", "maxbytespertrigger")
# Spark forgets files after a week, and skips those that arrive with an older time than the newest by so much.
_FILE_AGE_MAX = "36500d"


def source_name(config: IngestConfig) -> str:
    """What is read, in words."""
    if config.source:
        return config.source if config.format == "table" else absolute(config.source)
    named = [
        f"{key}={value}" for key, value in sorted(config.options.items()) if key.lower() in _NAMING_OPTIONS
    ]
    return " ".join([config.format or "files", *named])


def with_format(spark: SparkSession, config: IngestConfig) -> IngestConfig:
    """The config with its format told, once for all batches: a file of another kind does not change it."""
    if config.format is not None:
        return config
    with explained("opening the stream", source_name(config)):
        return msgspec.structs.replace(config, format=infer_format(spark, config.source))


def open_limited_stream(spark: SparkSession, config: IngestConfig) -> DataFrame:
    """The source as a stream whose batches have a bound."""
    given = {name.lower() for name in config.options}
    more = {}
    if config.format in FILE_FORMATS and "maxfileage" not in given:
        more["maxFileAge"] = _FILE_AGE_MAX
    if config.format in (*FILE_FORMATS, "delta") and not given.intersection(RATE_OPTIONS):
        more["maxFilesPerTrigger"] = str(limits.STREAM_FILES_PER_BATCH)
    return open_stream(spark, msgspec.structs.replace(config, options=config.options | more))


def absolute(path: str) -> str:
    """One spelling of a path or URL."""
    if path.startswith("file:"):
        path = "/" + path.removeprefix("file:").lstrip("/")
    return path.rstrip("/") if "://" in path else str(Path(path).absolute())
