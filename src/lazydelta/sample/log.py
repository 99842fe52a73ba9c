"""The log of a sample table: actions, commits, a checkpoint and `.crc` files as Delta writers leave them.

Spec: PROTOCOL.md, "Actions", "Checkpoints", "Version Checksum File".
"""

from __future__ import annotations

import datetime as dt
import json
import os
import uuid
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

PARTITION = "_event_hour"
CHECKPOINT_INTERVAL = 10
Action = dict[str, Any]  # Any: what the protocol's JSON has
_DELTA_TYPES = {"device_id": "string", "event_time": "timestamp", "value": "double", "status": "integer"}
_DELTA_TYPES |= {"city": "string", PARTITION: "string"}
_MAP = pa.map_(pa.string(), pa.string())
_CHECKPOINT = pa.schema(
    [
        pa.field(
            "metaData",
            pa.struct(
                [
                    ("id", pa.string()),
                    ("name", pa.string()),
                    ("description", pa.string()),
                    ("format", pa.struct([("provider", pa.string()), ("options", _MAP)])),
                    ("schemaString", pa.string()),
                    ("partitionColumns", pa.list_(pa.string())),
                    ("configuration", _MAP),
                    ("createdTime", pa.int64()),
                ]
            ),
        ),
        pa.field("protocol", pa.struct([("minReaderVersion", pa.int32()), ("minWriterVersion", pa.int32())])),
        pa.field(
            "add",
            pa.struct(
                [
                    ("path", pa.string()),
                    ("partitionValues", _MAP),
                    ("size", pa.int64()),
                    ("modificationTime", pa.int64()),
                    ("dataChange", pa.bool_()),
                    ("stats", pa.string()),
                ]
            ),
        ),
    ]
)


class CommitPlace(msgspec.Struct, frozen=True, kw_only=True):
    """Where a commit stands."""

    folder: Path  # of the table
    version: int
    time: dt.datetime
    seed: int

    @property
    def time_ms(self) -> int:
        """Milliseconds since 1970."""
        return int(self.time.timestamp() * 1000)

    @property
    def txn_id(self) -> str:
        """By which a `.crc` knows its commit."""
        return str(uuid.uuid5(uuid.NAMESPACE_OID, f"sample {self.seed} {self.version}"))


def protocol() -> Action:
    """What the table asks for: the oldest protocol that has what it uses."""
    return {"minReaderVersion": 1, "minWriterVersion": 2}


def metadata(seed: int, created: dt.datetime) -> Action:
    """The table's identity, schema and properties; they tell how the hour was made from the event time."""
    fields = [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in _DELTA_TYPES.items()]
    return {
        "id": str(uuid.uuid5(uuid.NAMESPACE_OID, f"sample {seed}")),
        "name": "telemetry",
        "description": "A sample table of lazydelta",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": _compact({"type": "struct", "fields": fields}),
        "partitionColumns": [PARTITION],
        "configuration": {
            "delta.checkpointInterval": str(CHECKPOINT_INTERVAL),
            "lazydelta.time.source": "event_time",
            "lazydelta.time.column": PARTITION,
            "lazydelta.time.format": "yyyyMMddHH",
            "lazydelta.time.zone": "UTC",
        },
        "createdTime": int(created.timestamp() * 1000),
    }


def add(path: str, period: str, rows: pa.Table, *, size: int, time_ms: int) -> Action:
    """The file as an action, with the statistics of every column."""
    return {
        "path": path,
        "partitionValues": {PARTITION: period},
        "size": size,
        "modificationTime": time_ms,
        "dataChange": True,
        "stats": _compact(_statistics(rows)),
    }


def write_commit(place: CommitPlace, operation: str, actions: Sequence[Action]) -> None:
    """One version."""
    info = {
        "timestamp": place.time_ms,
        "operation": operation,
        "operationParameters": {"mode": "Append"} if operation == "WRITE" else {},
        "isBlindAppend": True,
        "engineInfo": f"lazydelta/{version('lazydelta')}",
        "txnId": place.txn_id,
    }
    lines = [{"commitInfo": info}, *actions]
    body = "".join(f"{_compact(line)}\n" for line in lines)
    _write(_log(place.folder) / f"{place.version:020d}.json", body.encode(), place.time)


def write_checkpoint(place: CommitPlace, table: Action, adds: Sequence[Action]) -> None:
    """A checkpoint of one file, and the hint that names it."""
    rows: list[Action] = [{"protocol": protocol()}, {"metaData": _with_pairs(table)}]
    rows += [
        {"add": action | {"partitionValues": list(action["partitionValues"].items())}} for action in adds
    ]
    path = _log(place.folder) / f"{place.version:020d}.checkpoint.parquet"
    with path.open("wb") as file:
        pq.write_table(pa.Table.from_pylist(rows, _CHECKPOINT), file, compression="snappy")
    _dated(path, place.time)
    hint = {
        "version": place.version,
        "size": len(rows),
        "sizeInBytes": path.stat().st_size,
        "numOfAddFiles": len(adds),
    }
    _write(_log(place.folder) / "_last_checkpoint", _compact(hint).encode(), place.time)


def write_checksum(place: CommitPlace, table: Action, adds: Sequence[Action]) -> None:
    """The `.crc` of a version."""
    told = {
        "txnId": place.txn_id,
        "tableSizeBytes": sum(action["size"] for action in adds),
        "numFiles": len(adds),
        "numMetadata": 1,
        "numProtocol": 1,
        "metadata": table,
        "protocol": protocol(),
    }
    _write(_log(place.folder) / f"{place.version:020d}.crc", _compact(told).encode(), place.time)


def _statistics(rows: pa.Table) -> Action:
    low, high, nulls = {}, {}, {}
    for name in rows.schema.names:
        column = rows.column(name)
        bounds = pc.min_max(column)
        low[name], high[name] = (_plain(bounds[side].as_py()) for side in ("min", "max"))
        nulls[name] = column.null_count
    return {"numRecords": rows.num_rows, "minValues": low, "maxValues": high, "nullCount": nulls}


def _plain(value: object) -> object:
    if isinstance(value, dt.datetime):
        return f"{value:%Y-%m-%dT%H:%M:%S}.{value.microsecond // 1000:03d}Z"
    return value


def _with_pairs(table: Action) -> Action:
    """Maps as Arrow takes them."""
    return table | {
        "configuration": list(table["configuration"].items()),
        "format": {"provider": "parquet", "options": []},
    }


def _log(folder: Path) -> Path:
    return folder / "_delta_log"


def _write(path: Path, body: bytes, time: dt.datetime) -> None:
    path.write_bytes(body)
    _dated(path, time)


def _dated(path: Path, time: dt.datetime) -> None:
    """Readers that travel in time go by the age of the file."""
    os.utime(path, (time.timestamp(), time.timestamp()))


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
