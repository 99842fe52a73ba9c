"""What a generated table looks like: every choice a benchmark or a test may vary, and what follows from it.

Why one struct: the same values give the same bytes (the seed included), so a table can be cached under
its name and any file of it can be described again from its number alone.
Contract: pure; nothing here touches the disk.
"""

from __future__ import annotations

import json
from typing import Any, Literal

import msgspec

Order = Literal["ingest", "shuffled", "spark"]
Stats = Literal["json", "parsed", "both"]
Checkpoint = Literal["v1", "v1-multipart", "v2-parquet", "v2-json", "none"]
Data = Literal["none", "newest", "all"]

DAY_US = 86_400_000_000
TODAY = "2026-02-10"
TODAY_US = 1_770_681_600_000_000
DAYS_IN_CHECKPOINT = 365  # unless a spec asks for fewer or more
CHECKPOINT_VERSION = 1000
# Tombstones in the checkpoint name files from here on; no live file has such a number.
DEAD_FILES_FROM = 1 << 40
# A deletion vector of generation g marks the first g rows of its file.
DV_GENERATIONS_MAX = 4

COLUMNS = (
    ("device_id", "string"),
    ("event_time", "timestamp"),
    ("value", "double"),
    ("status", "integer"),
    ("message", "string"),
    ("date", "date"),
)
# What the statistics of a file speak about, unless a spec asks for fewer or more columns.
_STATS_COLUMNS = ("device_id", "event_time", "value")


class TableSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One generated table."""

    files: int
    order: Order = "ingest"
    partitioned: bool = True
    event_hour: bool = False
    date_partition: bool = True  # with event_hour only: without it `date` is a data column
    time_settings: bool = False  # the table's properties tell how _event_hour was derived
    stats: Stats = "json"
    checkpoint: Checkpoint = "v1"
    checkpoint_parts: int = 4
    checkpoint_dv_every: int = 1_000
    adds_per_commit: int = 10_000
    tail_commits: int = 50
    tail_adds: int = 200
    tail_removes: int = 40
    tail_dv_updates: int = 10
    tail_readds: int = 2
    days: int = DAYS_IN_CHECKPOINT  # that its files are spread over, up to yesterday
    tail_minutes: int = 1_440  # of today that the tail's events fill
    stats_width: int = 3  # columns with statistics; 2 leaves out the text, more adds integers
    crc: bool = True
    data: Data = "none"
    seed: int = 1

    @property
    def has_dv(self) -> bool:
        """Whether the protocol has deletion vectors."""
        return self.tail_dv_updates > 0

    @property
    def readings(self) -> tuple[str, ...]:
        """Further integer columns, which make a table wide."""
        return tuple(f"reading_{number:03d}" for number in range(self.stats_width - len(_STATS_COLUMNS)))

    @property
    def stats_columns(self) -> tuple[str, ...]:
        """`delta.dataSkippingStatsColumns`, in the order of the schema."""
        return (*_STATS_COLUMNS[self.stats_width == 2 :], *self.readings)

    @property
    def is_v2(self) -> bool:
        """Whether the checkpoint follows the V2 spec."""
        return self.checkpoint.startswith("v2")

    @property
    def partition_columns(self) -> list[str]:
        """Partition columns, outermost first."""
        hour = ["_event_hour"] if self.event_hour else []
        date = ["date"] if self.date_partition else []
        return [*date, *hour] if self.partitioned else []

    @property
    def base_version(self) -> int:
        """The last version before the tail: the checkpoint's, or the last loading commit's."""
        if self.checkpoint != "none":
            return CHECKPOINT_VERSION
        return -(-self.files // self.adds_per_commit)

    @property
    def version(self) -> int:
        """The newest version."""
        return self.base_version + self.tail_commits

    @property
    def name(self) -> str:
        """A name that differs wherever two specs do."""
        default = TableSpec(files=self.files)
        given = msgspec.structs.asdict(self)
        changed = [f"{k}-{v}" for k, v in given.items() if v != getattr(default, k)]
        return "-".join([f"files-{self.files}", *changed])


def check(spec: TableSpec) -> None:
    """Refuse what cannot be laid out."""
    if spec.files < 1:
        raise ValueError("a table needs at least one file")
    if spec.event_hour and not spec.partitioned:
        raise ValueError("--event-hour is a partition column: it needs --partitioned")
    if spec.time_settings and not spec.event_hour:
        raise ValueError("--time-settings speak of _event_hour: they need --event-hour")
    if spec.partitioned and not spec.partition_columns:
        raise ValueError("--no-date-partition leaves no partition column: it needs --event-hour")
    touched = spec.tail_removes + spec.tail_dv_updates + spec.tail_readds
    if spec.tail_commits * touched > spec.files:
        raise ValueError(
            f"the tail touches {spec.tail_commits * touched:,} files, the table has {spec.files:,}"
        )
    if spec.stats_width < 2:
        raise ValueError("statistics speak of at least two columns, event_time and value")
    if not 1 <= spec.tail_minutes <= DAY_US // 60_000_000:
        raise ValueError("the tail's events fill at least a minute and at most the day")
    if spec.days < 1:
        raise ValueError("the files of a checkpoint are spread over at least a day")
    if spec.checkpoint_parts < 1:
        raise ValueError("a checkpoint has at least one part")
    if spec.checkpoint_dv_every < 0:
        raise ValueError("--checkpoint-dv-every is 0 (none) or the number of files for one deletion vector")


def protocol(spec: TableSpec) -> dict[str, Any]:
    """The protocol action, as the features in use ask for."""
    features = ["deletionVectors"] * spec.has_dv + ["v2Checkpoint"] * spec.is_v2
    if not features:
        return {"minReaderVersion": 1, "minWriterVersion": 2}
    return {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": features,
        "writerFeatures": [*features, "invariants", "appendOnly"],
    }


def metadata(spec: TableSpec) -> dict[str, Any]:
    """The metaData action."""
    return {
        "id": f"00000000-0000-4000-8000-{spec.seed:012x}",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema_string(spec),
        "partitionColumns": spec.partition_columns,
        "configuration": _configuration(spec),
        "createdTime": (TODAY_US - spec.days * DAY_US) // 1000,
    }


def schema_string(spec: TableSpec) -> str:
    """The table's schema as Delta's JSON."""
    readings = [(name, "integer") for name in spec.readings]
    columns = [*COLUMNS, *readings, *([("_event_hour", "string")] if spec.event_hour else [])]
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in columns]
    return compact({"type": "struct", "fields": fields})


def compact(value: object) -> str:
    """JSON without blanks, as Delta on Spark writes it."""
    return json.dumps(value, separators=(",", ":"))


def _configuration(spec: TableSpec) -> dict[str, str]:
    chosen = {
        "delta.checkpointInterval": "1000",
        # The table's days are fixed, so a writer of a later year must not clean its log up.
        "delta.enableExpiredLogCleanup": "false",
        "delta.dataSkippingStatsColumns": ",".join(spec.stats_columns),
        "delta.checkpoint.writeStatsAsJson": str(spec.stats != "parsed").lower(),
        "delta.checkpoint.writeStatsAsStruct": str(spec.stats != "json").lower(),
    }
    if spec.has_dv:
        chosen["delta.enableDeletionVectors"] = "true"
    if spec.is_v2:
        chosen["delta.checkpointPolicy"] = "v2"
    if spec.time_settings:
        chosen |= {
            "lazydelta.time.source": "event_time",
            "lazydelta.time.column": "_event_hour",
            "lazydelta.time.format": "yyyyMMddHH",
            "lazydelta.time.zone": "UTC",
        }
    return chosen
