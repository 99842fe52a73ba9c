"""What a stream reads: its name, and how much of it at once.

Contract: `source_name` is the same whenever the same thing is read, however its path is spelled; options
that say how to read are no part of it. `open_limited_stream` bounds a batch of files unless told how.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from lazydelta import limits
from lazydelta.spark.config import IngestConfig
from lazydelta.spark.source import open_stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Options that say what is read, not how.
_NAMING_OPTIONS = ("subscribe", "subscribepattern", "assign", "path", "dbtable", "table", "topic", "stream")
RATE_OPTIONS = ("maxfilespertrigger", "maxbytespertrigger")


def source_name(config: IngestConfig) -> str:
    """What is read, in words."""
    if config.source:
        return _absolute(config.source)
    named = [
        f"{key}={value}" for key, value in sorted(config.options.items()) if key.lower() in _NAMING_OPTIONS
    ]
    return " ".join([config.format or "files", *named])


def open_limited_stream(spark: SparkSession, config: IngestConfig) -> DataFrame:
    """The source as a stream whose batches have a bound."""
    given = {name.lower() for name in config.options}
    if not given.intersection(RATE_OPTIONS):
        options = config.options | {"maxFilesPerTrigger": str(limits.STREAM_FILES_PER_BATCH)}
        config = msgspec.structs.replace(config, options=options)
    return open_stream(spark, config)


def _absolute(source: str) -> str:
    if source.startswith("file:"):
        source = "/" + source.removeprefix("file:").lstrip("/")
    return source.rstrip("/") if "://" in source else str(Path(source).absolute())
