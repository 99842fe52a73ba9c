"""The seeds' plain sidecar, `_delta_log/_sidecars/vN.parquet`, from what the builder knows. For tests only.

Contract: written with nothing of the package's own; columns by name alone, types as the seeds say. What a
test wants to be wrong with it, it changes by `change`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.table_builder import TableBuilder

_VECTORS = {
    "storageType": pa.string(),
    "pathOrInlineDv": pa.string(),
    "offset": pa.int32(),
    "sizeInBytes": pa.int32(),
    "cardinality": pa.int64(),
}
_STATISTICS = {"value": pa.float64(), "count": pa.int64(), "device_id": pa.string()}
_KINDS = {"min": "minValues", "max": "maxValues", "null_count": "nullCount"}


def write_plain(
    table: TableBuilder,
    *,
    version: int | None = None,
    name: str | None = None,
    row_group_rows: int = 8,
    age_seconds: int = 0,
    change: Callable[[pa.Table], pa.Table] = lambda rows: rows,
    **writer: Any,
) -> Path:
    """The plain sidecar of a version (the newest when None), sorted by its first partition column."""
    at = table.version if version is None else version
    rows = change(plain_rows(table, at))
    folder = table.log / "_sidecars"
    folder.mkdir(exist_ok=True)
    path = folder / (name or f"v{at}.parquet")
    pq.write_table(rows, path, row_group_size=row_group_rows, **writer)
    newest = max(file.stat().st_mtime for file in table.log.glob("*") if file.is_file())
    os.utime(path, (newest - age_seconds, newest - age_seconds))
    return path


def plain_rows(table: TableBuilder, version: int) -> pa.Table:
    """What it says of the files live at a version."""
    adds = list(table.states[version].live.values())
    stats = [json.loads(add.get("stats") or "{}") for add in adds]
    columns: dict[str, pa.Array] = {
        "path": pa.array([add["path"] for add in adds], pa.string()),
        "size": pa.array([add["size"] for add in adds], pa.int64()),
        "modification_time": pa.array([add["modificationTime"] for add in adds], pa.int64()),
    }
    for partition in table.metadata["partitionColumns"]:
        columns[partition] = _partition([add["partitionValues"][partition] for add in adds], partition)
    columns["num_records"] = pa.array([told.get("numRecords") for told in stats], pa.int64())
    for column, kind in _STATISTICS.items():
        for prefix, group in _KINDS.items():
            values = [told.get(group, {}).get(column) for told in stats]
            columns[f"{prefix}.{column}"] = pa.array(values, pa.int64() if prefix == "null_count" else kind)
    vectors = [add.get("deletionVector") or {} for add in adds]
    for field, kind in _VECTORS.items():
        columns[f"dv.{field}"] = pa.array([vector.get(field) for vector in vectors], kind)
    rows = pa.table(columns)
    return rows.sort_by([(table.metadata["partitionColumns"][0], "ascending")])


def _partition(texts: list[str | None], name: str) -> pa.Array:
    if name == "date":
        return pa.array([None if text is None else date.fromisoformat(text) for text in texts], pa.date32())
    return pa.array(texts, pa.string())
