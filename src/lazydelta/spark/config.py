"""What the pipeline may be told, as frozen structs: where from, where to, how time becomes a period.

Contract: a struct is complete and checked (`check_config`) before Spark starts. Files, environment and
flags are merged into it by `pipeline_settings`; nothing below reads them again.
"""

from __future__ import annotations

from typing import Literal, Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from lazydelta import limits
from lazydelta.errors import InvalidRequestError
from lazydelta.sidecar.format import config as sidecar_config
from lazydelta.sidecar.format.config import SidecarConfig

Granularity = Literal["month", "day", "hour", "minute", "second"]
Unit = Literal["s", "ms", "us", "ns"]
APP_ID = "lazydelta.ingest"
# Names that the zone files of a machine have and Java has not, or that mean another zone elsewhere.
_OWN_ZONES = ("posix/", "right/", "localtime", "posixrules", "Factory")


class SessionConfig(Protocol):
    """Whatever carries settings of Spark."""

    @property
    def spark(self) -> dict[str, str]:
        """Settings by their full names, `spark.master` among them."""


class SparkConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of Spark alone, for commands that ingest nothing."""

    spark: dict[str, str] = {}


class IngestConfig(msgspec.Struct, frozen=True, kw_only=True):
    """One ingest: a batch or a stream. `time_column_name` and `rejects_path` fill what is left out."""

    source: str = ""  # a folder, a file, a glob; a table's name with format "table"
    target: str = ""  # the Delta table's path or URL
    event_time: str = ""  # the column that says when a row happened
    format: str | None = None  # None: told from the names of the source's files
    options: dict[str, str] = {}  # of the Spark source, as they are
    schema: str | None = None  # DDL, or a file that holds DDL or Spark's JSON; None: kept, else inferred
    merge_schema: bool = False
    event_time_format: str | None = None  # of text that is not ISO 8601
    event_time_unit: Unit | None = None  # of numbers since 1970
    granularity: Granularity = "hour"
    time_column: str | None = None  # None: _event_hour, _event_day, … after the granularity
    time_zone: str = "UTC"
    target_file_size: int = limits.INGEST_FILE_BYTES
    rejects: str | None = None  # None: the target's path and `_rejects`
    properties: dict[str, str] = {}  # of the table, set when it is created
    app_id: str = APP_ID  # of the idempotent writes
    run_id: str | None = None  # of a batch run: the same one again makes no commit
    # --- streaming
    checkpoint_location: str | None = None
    stream: Literal["available-now", "continuous"] | None = None  # None: one batch
    trigger_interval: str | None = None  # of the continuous mode: "10 seconds"
    # --- after the commit
    write_sidecar: bool = True
    checkpoint: bool = False  # write a checkpoint (and its sidecar) even where Delta would not yet
    storage_options: dict[str, str] = {}  # of lazydelta's own reads and writes, for the sidecar
    sidecar: SidecarConfig = SidecarConfig()
    spark: dict[str, str] = {}

    @property
    def time_column_name(self) -> str:
        """The partition column."""
        return self.time_column or f"_event_{self.granularity}"

    @property
    def rejects_path(self) -> str:
        """The table of rows that could not be placed."""
        return self.rejects or f"{self.target.rstrip('/')}_rejects"


def check_config(config: IngestConfig) -> IngestConfig:
    """The same config, or an `InvalidRequestError` that names the setting that cannot be."""
    for name in ("target", "event_time"):
        if not getattr(config, name):
            option = f"--{name.replace('_', '-')}" if name == "event_time" else "TARGET"
            raise _wrong(
                name, "is missing", f"give {option}, or set it in the [ingest] table of the settings"
            )
    if not config.source and config.format is None:
        raise _wrong(
            "source", "is missing", "give SOURCE, or --format and the options of a source without a path"
        )
    return check_values(config)


def check_values(config: IngestConfig) -> IngestConfig:
    """The same config, or an `InvalidRequestError` for a value that cannot be; something may be missing."""
    if config.target_file_size < 1:
        raise _wrong("target_file_size", f"is {config.target_file_size}", "give a size such as 128MB")
    if config.run_id is not None and not config.run_id.strip():  # a variable that is not set
        raise _wrong(
            "run_id", "is empty, so that every later run would be taken for this one", "give it a name"
        )
    if not _is_zone(config.time_zone):
        raise _wrong(
            "time_zone", f"{config.time_zone!r} is no time zone", "write a name such as UTC or Europe/Berlin"
        )
    _check_options(config.options)
    sidecar_config.checked(config.sidecar)
    return config


def _is_zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return not name.startswith(_OWN_ZONES)


def _check_options(options: dict[str, str]) -> None:
    """Refuse what would lose rows without a word."""
    given = {name.lower(): value.lower() for name, value in options.items()}
    if given.get("mode") == "dropmalformed":
        raise _wrong("options", "mode=DROPMALFORMED loses rows", "leave it out: such rows go to the rejects")
    for name in ("ignoreCorruptFiles", "ignoreMissingFiles"):
        if given.get(name.lower(), "false") != "false":
            raise _wrong(
                "options",
                f"{name} loses rows",
                "leave it out, and take what cannot be read out of the source",
            )


def _wrong(name: str, what: str, fix: str) -> InvalidRequestError:
    return InvalidRequestError(f"ingest.{name} {what}", "the ingest settings", fix)
