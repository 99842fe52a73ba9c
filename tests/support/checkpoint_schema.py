"""The columns of a Parquet checkpoint, as Delta on Spark 4.4 lays them out, and rows to fill them.

Spec: PROTOCOL.md, "Checkpoints" and "Checkpoint Schema". The order of columns and the INT96 timestamps
inside `stats_parsed` follow files that Spark wrote; the parity tests compare.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from tests.support.keys import Action

_STRINGS = pa.map_(pa.string(), pa.string())
_DELETION_VECTOR = pa.struct(
    {
        "storageType": pa.string(),
        "pathOrInlineDv": pa.string(),
        "offset": pa.int32(),
        "sizeInBytes": pa.int32(),
        "cardinality": pa.int64(),
        "maxRowIndex": pa.int64(),
    }
)
_REMOVE = pa.struct(
    {
        "path": pa.string(),
        "deletionTimestamp": pa.int64(),
        "dataChange": pa.bool_(),
        "extendedFileMetadata": pa.bool_(),
        "partitionValues": _STRINGS,
        "size": pa.int64(),
        "deletionVector": _DELETION_VECTOR,
        "baseRowId": pa.int64(),
        "defaultRowCommitVersion": pa.int64(),
    }
)
_TABLE_STATE: dict[str, pa.DataType] = {
    "metaData": pa.struct(
        {
            "id": pa.string(),
            "name": pa.string(),
            "description": pa.string(),
            "format": pa.struct({"provider": pa.string(), "options": _STRINGS}),
            "schemaString": pa.string(),
            "partitionColumns": pa.list_(pa.field("element", pa.string())),
            "configuration": _STRINGS,
            "createdTime": pa.int64(),
        }
    ),
    "protocol": pa.struct(
        {
            "minReaderVersion": pa.int32(),
            "minWriterVersion": pa.int32(),
            "readerFeatures": pa.list_(pa.field("element", pa.string())),
            "writerFeatures": pa.list_(pa.field("element", pa.string())),
        }
    ),
    "domainMetadata": pa.struct({"domain": pa.string(), "configuration": pa.string(), "removed": pa.bool_()}),
}
_TXN = pa.struct({"appId": pa.string(), "version": pa.int64(), "lastUpdated": pa.int64()})
_V2_ONLY: dict[str, pa.DataType] = {
    "checkpointMetadata": pa.struct({"version": pa.int64(), "tags": _STRINGS}),
    "sidecar": pa.struct(
        {
            "path": pa.string(),
            "sizeInBytes": pa.int64(),
            "modificationTime": pa.int64(),
            "tags": _STRINGS,
        }
    ),
}
_ARROW_TYPES: dict[str, pa.DataType] = {
    "string": pa.string(),
    "long": pa.int64(),
    "integer": pa.int32(),
    "short": pa.int16(),
    "byte": pa.int8(),
    "double": pa.float64(),
    "float": pa.float32(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_WITHOUT_BOUNDS = frozenset({"boolean", "binary"})  # Delta on Spark collects no min and max for these


def checkpoint_schema(metadata: Action, *, stats: str, is_v2: bool = False) -> pa.Schema:
    """The schema of a V1 checkpoint, or of a V2 top-level file."""
    columns = {"txn": _TXN, "add": _add_type(metadata, stats), "remove": _REMOVE} | _TABLE_STATE
    if is_v2:
        columns |= _V2_ONLY
    return pa.schema(columns)


def sidecar_schema(metadata: Action, *, stats: str) -> pa.Schema:
    """The schema of a V2 checkpoint's sidecar files: file actions only."""
    return pa.schema({"add": _add_type(metadata, stats), "remove": _REMOVE})


def checkpoint_row(kind: str, body: Action, metadata: Action, *, stats: str) -> dict[str, Any]:
    """One row; an `add` gets the forms of statistics asked for."""
    if kind != "add":
        return {kind: _maps_as_pairs(body)}
    row = dict(body)
    text = row.pop("stats", None)
    if stats in ("json", "both"):
        row["stats"] = text
    if stats in ("parsed", "both"):
        row["stats_parsed"] = _parse_stats(text, metadata)
        row["partitionValues_parsed"] = _parse_partition(body["partitionValues"], metadata)
    return {"add": _maps_as_pairs(row | {"dataChange": False})}


def columns_of(metadata: Action) -> dict[str, str]:
    """Physical name → Delta type of the flat columns of a table; nested ones are left out."""
    fields = json.loads(metadata["schemaString"])["fields"]
    return {
        field["metadata"].get("delta.columnMapping.physicalName", field["name"]): field["type"]
        for field in fields
        if isinstance(field["type"], str)
    }


def _add_type(metadata: Action, stats: str) -> pa.DataType:
    fields: dict[str, pa.DataType] = {
        "path": pa.string(),
        "partitionValues": _STRINGS,
        "size": pa.int64(),
        "modificationTime": pa.int64(),
        "dataChange": pa.bool_(),
        "tags": _STRINGS,
        "deletionVector": _DELETION_VECTOR,
        "baseRowId": pa.int64(),
        "defaultRowCommitVersion": pa.int64(),
        "clusteringProvider": pa.string(),
    }
    if stats in ("json", "both"):
        fields["stats"] = pa.string()
    if stats in ("parsed", "both"):
        partition = _partition_types(metadata)
        if partition:  # Parquet has no empty groups
            fields["partitionValues_parsed"] = pa.struct(partition)
        fields["stats_parsed"] = _stats_type(metadata)
    return pa.struct(fields)


def _stats_type(metadata: Action) -> pa.DataType:
    partition = _partition_types(metadata)
    data = {name: kind for name, kind in columns_of(metadata).items() if name not in partition}
    bounds = {name: _arrow_type(kind) for name, kind in data.items() if kind not in _WITHOUT_BOUNDS}
    fields: dict[str, pa.DataType] = {"numRecords": pa.int64()}
    if bounds:
        fields |= {"minValues": pa.struct(bounds), "maxValues": pa.struct(bounds)}
    if data:
        fields["nullCount"] = pa.struct({name: pa.int64() for name in data})
    return pa.struct(fields | {"tightBounds": pa.bool_()})


def _partition_types(metadata: Action) -> dict[str, pa.DataType]:
    fields = json.loads(metadata["schemaString"])["fields"]
    physical = {
        field["name"]: field["metadata"].get("delta.columnMapping.physicalName", field["name"])
        for field in fields
    }
    columns = columns_of(metadata)
    names = [physical[name] for name in metadata["partitionColumns"]]
    return {name: _arrow_type(columns[name]) for name in names}


def _arrow_type(delta_type: str) -> pa.DataType:
    if delta_type.startswith("decimal("):
        precision, scale = delta_type[8:-1].split(",")
        return pa.decimal128(int(precision), int(scale))
    return _ARROW_TYPES[delta_type]


def _parse_stats(text: str | None, metadata: Action) -> dict[str, Any] | None:
    if text is None:
        return None
    try:
        # Decimals keep their digits: a float would round them.
        parsed = json.loads(text, parse_float=Decimal)
    except ValueError:
        return None
    columns = columns_of(metadata)
    for bound in ("minValues", "maxValues"):
        if bound in parsed:
            parsed[bound] = {
                name: _typed(value, columns[name]) for name, value in parsed[bound].items() if name in columns
            }
    return dict(parsed)


def _parse_partition(values: dict[str, str | None], metadata: Action) -> dict[str, Any]:
    types = columns_of(metadata)
    partition = _partition_types(metadata)
    return {name: _typed(value, types[name]) for name, value in values.items() if name in partition}


def _typed(value: Any, delta_type: str) -> Any:
    if value is None or delta_type == "string":
        return value
    if value == "":
        return None  # an empty partition value is null for every other type
    kind = "decimal" if delta_type.startswith("decimal(") else delta_type
    return _FROM_TEXT.get(kind, int)(value)


def _utc(text: str) -> datetime:
    # Partition values are written without a zone and mean the session's, which is UTC here.
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


_FROM_TEXT: dict[str, Callable[[Any], Any]] = {
    "date": date.fromisoformat,
    "timestamp": _utc,
    "timestamp_ntz": datetime.fromisoformat,
    "double": float,
    "float": float,
    "boolean": lambda value: value in (True, "true"),
    "binary": str.encode,
    "decimal": Decimal,
}


def _maps_as_pairs(body: Action) -> Action:
    row = dict(body)
    for key in ("partitionValues", "tags", "configuration"):
        if isinstance(row.get(key), dict):  # the configuration of a domain is text
            row[key] = list(row[key].items())
    if "format" in row:
        row["format"] = {"provider": row["format"]["provider"], "options": []}
    return row
