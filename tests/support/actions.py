"""Actions of the Delta log as plain dictionaries: what a writer puts on one line.

Contract: the values are the protocol's own words (PROTOCOL.md, "Actions"); names of partition columns
and statistics are logical here, the builder turns them physical where the table maps its columns.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tests.support.keys import Action

FIRST_COMMIT_MS = 1_770_000_000_000  # 2026-02-02T02:40:00Z
COMMIT_STEP_MS = 60_000

DEFAULT_FEATURES = ("deletionVectors", "v2Checkpoint")
_WRITER_ONLY_FEATURES = frozenset({"rowTracking", "domainMetadata", "inCommitTimestamp", "appendOnly"})

TELEMETRY: dict[str, str] = {
    "device_id": "string",
    "ts": "timestamp",
    "value": "double",
    "count": "long",
    "date": "date",
}


def add(
    path: str,
    *,
    partition: Mapping[str, str | None] | None = None,
    stats: Mapping[str, Any] | str | None = None,
    size: int = 1000,
    modification_time: int = FIRST_COMMIT_MS,
    deletion_vector: Action | None = None,
    data_change: bool = True,
    **extra: Any,
) -> Action:
    """An `add`; `extra` holds `tags`, `baseRowId`, `defaultRowCommitVersion`, `clusteringProvider`."""
    body: Action = {
        "path": path,
        "partitionValues": dict({"date": "2026-02-08"} if partition is None else partition),
        "size": size,
        "modificationTime": modification_time,
        "dataChange": data_change,
    }
    if stats is not None:
        body["stats"] = stats if isinstance(stats, str) else dict(stats)
    if deletion_vector is not None:
        body["deletionVector"] = deletion_vector
    return body | extra


def remove(
    path: str,
    *,
    deletion_vector: Action | None = None,
    deletion_timestamp: int = FIRST_COMMIT_MS,
    data_change: bool = True,
    **extra: Any,
) -> Action:
    """A `remove`, a tombstone of exactly that file with exactly that deletion vector."""
    body: Action = {"path": path, "deletionTimestamp": deletion_timestamp, "dataChange": data_change}
    if deletion_vector is not None:
        body["deletionVector"] = deletion_vector
    return body | extra


def stats(
    records: int = 10,
    *,
    low: Mapping[str, Any] | None = None,
    high: Mapping[str, Any] | None = None,
    nulls: Mapping[str, int] | None = None,
    tight_bounds: bool | None = None,
) -> dict[str, Any]:
    """Per-file statistics by logical column names."""
    body: dict[str, Any] = {"numRecords": records}
    if low is not None:
        body["minValues"] = dict(low)
    if high is not None:
        body["maxValues"] = dict(high)
    if nulls is not None:
        body["nullCount"] = dict(nulls)
    if tight_bounds is not None:
        body["tightBounds"] = tight_bounds
    return body


def inline_dv(
    encoded: str = "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", *, rows: int = 2
) -> Action:
    """A deletion vector inside the log."""
    return {"storageType": "i", "pathOrInlineDv": encoded, "sizeInBytes": 40, "cardinality": rows}


def relative_dv(encoded: str = "ab^-aqEH.-t@S}K{vb[*k^", *, offset: int | None = 1, rows: int = 1) -> Action:
    """A deletion vector in a file below the table, named by a random prefix and a UUID."""
    return _dv_in_file("u", encoded, offset, rows)


def absolute_dv(uri: str, *, offset: int | None = 1, rows: int = 1) -> Action:
    """A deletion vector in a file anywhere."""
    return _dv_in_file("p", uri, offset, rows)


def protocol(
    features: Sequence[str] = DEFAULT_FEATURES, *, reader_version: int = 3, writer_version: int = 7
) -> Action:
    """Table features where the versions carry them, otherwise the old pair of numbers."""
    body: Action = {"minReaderVersion": reader_version, "minWriterVersion": writer_version}
    if reader_version >= 3:
        body["readerFeatures"] = [name for name in features if name not in _WRITER_ONLY_FEATURES]
    if writer_version >= 7:
        body["writerFeatures"] = list(features)
    return body


def metadata(
    schema: Mapping[str, str] | str | None = None,
    *,
    partition_columns: Sequence[str] = ("date",),
    configuration: Mapping[str, str] | None = None,
    table_id: str = "11111111-2222-3333-4444-555555555555",
    column_mapping: str | None = None,
) -> Action:
    """The table's `metaData`. `column_mapping` is `name` or `id`: physical names become `col-<name>`."""
    settings = dict(configuration or {})
    if column_mapping is not None:
        settings["delta.columnMapping.mode"] = column_mapping
        settings["delta.columnMapping.maxColumnId"] = str(len(schema or TELEMETRY))
    text = schema if isinstance(schema, str) else schema_string(schema or TELEMETRY, column_mapping)
    return {
        "id": table_id,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": text,
        "partitionColumns": list(partition_columns),
        "configuration": settings,
        "createdTime": FIRST_COMMIT_MS,
    }


def schema_string(columns: Mapping[str, str], column_mapping: str | None = None) -> str:
    """The schema JSON of flat columns of primitive types."""
    fields = []
    for number, (name, type_name) in enumerate(columns.items(), start=1):
        mapped: dict[str, Any] = {}
        if column_mapping is not None:
            mapped = {
                "delta.columnMapping.id": number,
                "delta.columnMapping.physicalName": physical_name(name, column_mapping),
            }
        fields.append({"name": name, "type": type_name, "nullable": True, "metadata": mapped})
    return json.dumps({"type": "struct", "fields": fields})


def physical_name(name: str, column_mapping: str | None) -> str:
    """What the builder calls a column inside statistics and partition values."""
    return name if column_mapping is None else f"col-{name}"


def _dv_in_file(storage_type: str, path: str, offset: int | None, rows: int) -> Action:
    body: Action = {"storageType": storage_type, "pathOrInlineDv": path}
    if offset is not None:
        body["offset"] = offset
    return body | {"sizeInBytes": 36, "cardinality": rows}
