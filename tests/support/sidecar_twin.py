"""A stats sidecar read the slow and obvious way: JSON, Parquet, plain dictionaries. For tests only.

Why: what builders write must be judged by something that shares no line with them. Contract: `sidecar_rows`
gives the live rows of one version by the keys of the eager twin, and checks on the way what the format
promises: parts sorted, sizes and counts as told, no key twice. `expected_rows` gives what they should say.
"""

from __future__ import annotations

import json
import math
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests.support.checkpoint_schema import columns_of
from tests.support.keys import Action, FileKey, canonical_path
from tests.support.table_builder import LogState

LAZY = "_delta_log/_lazy"
Row = dict[str, Any]


def manifest_of(table: Path, version: int, folder: str = LAZY) -> dict[str, Any]:
    """The manifest as JSON."""
    text = (table / folder / f"v{version:020}.manifest.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def sidecar_rows(table: Path, version: int, folder: str = LAZY) -> dict[FileKey, Row]:
    """Every live row of the sidecar by its key."""
    manifest = manifest_of(table, version, folder)
    found: dict[FileKey, Row] = {}
    for part in manifest["parts"]:
        for row in _part_rows(table / folder, part, manifest["order_column"]):
            key = _key(row, table)
            assert key not in found, f"{key} comes twice"
            found[key] = row
    assert manifest["num_files"] == len(found)
    assert manifest["binding"]["num_files"] == len(found)
    assert manifest["binding"]["total_bytes"] == sum(row["size"] for row in found.values())
    _check_row_groups(table / folder, manifest)
    return found


def comparable(rows: dict[FileKey, Row]) -> dict[FileKey, Row]:
    """Rows that compare: NaN equals NaN, what is null is left out, as columns may be lacking."""
    return {
        key: {name: _plain(value) for name, value in row.items() if value is not None}
        for key, row in rows.items()
    }


def expected_rows(state: LogState, *, with_stats: bool = True) -> dict[FileKey, Row]:
    """What a sidecar says of the live files, for flat tables of plain types."""
    assert state.metadata is not None
    types = columns_of(state.metadata)
    return {key: _expected(add, types, with_stats=with_stats) for key, add in state.live.items()}


def part_files(table: Path, folder: str = LAZY) -> set[str]:
    """The part files that lie in the folder."""
    return {path.name for path in (table / folder).glob("v*.parquet") if ".delta." not in path.name}


def referenced_files(manifest: dict[str, Any]) -> set[str]:
    """The part files that a manifest names."""
    names = {part["file"] for part in manifest["parts"]}
    return names | {part["stats_file"] for part in manifest["parts"] if part.get("stats_file")}


def _part_rows(folder: Path, part: dict[str, Any], order_column: str | None) -> list[Row]:
    path = folder / part["file"]
    assert path.stat().st_size == part["size_bytes"]
    rows: list[Row] = pq.read_table(path).to_pylist()
    if part.get("stats_file"):
        halves = pq.read_table(folder / part["stats_file"]).to_pylist()
        rows = [left | right for left, right in zip(rows, halves, strict=True)]
    assert len(rows) == part["num_rows"]
    order = [_sort_key(row, order_column) for row in rows]
    assert order == sorted(order), f"{part['file']} is not sorted"
    gone: set[int] = set()
    removed = part.get("removed", [])
    for first, count in zip(removed[::2], removed[1::2], strict=True):
        gone |= set(range(first, first + count))
    live = [row for number, row in enumerate(rows) if number not in gone]
    assert live, f"{part['file']} has no live row"
    assert part.get("total_bytes", 0) == sum(row["size"] for row in live)
    return live


def _check_row_groups(folder: Path, manifest: dict[str, Any]) -> None:
    groups = [
        (at, index)
        for at, part in enumerate(manifest["parts"])
        for index in range(pq.read_metadata(folder / part["file"]).num_row_groups)
    ]
    assert manifest["num_row_groups"] == len(groups)
    if manifest["row_groups"]:
        assert [group.get("part", 0) for group in manifest["row_groups"]] == [at for at, _ in groups]
        assert [group["index"] for group in manifest["row_groups"]] == list(range(len(groups)))


def _sort_key(row: Row, order_column: str | None) -> tuple[object, ...]:
    value = None if order_column is None else row[order_column]
    is_nan = isinstance(value, float) and math.isnan(value)
    rank = 0 if value is None else 1 if is_nan else 2
    return rank, value if rank == 2 else 0, row["path"].encode()


def _key(row: Row, table: Path) -> FileKey:
    if row["dv.storageType"] is None:
        return canonical_path(row["path"], table), None
    unique = f"{row['dv.storageType']}{row['dv.pathOrInlineDv']}"
    offset = row["dv.offset"]
    return canonical_path(row["path"], table), unique if offset is None else f"{unique}@{offset}"


def _expected(add: Action, types: dict[str, str], *, with_stats: bool) -> Row:
    row: Row = {
        "path": add["path"],
        "size": add["size"],
        "modification_time": add["modificationTime"],
        "tags": list(add["tags"].items()) if "tags" in add else None,
        "base_row_id": add.get("baseRowId"),
    }
    for name, text in add["partitionValues"].items():
        row |= (
            {name: text}
            if types[name] == "string"
            else {name: _typed(text, types[name]), f"raw.{name}": text}
        )
    vector = add.get("deletionVector") or {}
    for field in ("storageType", "pathOrInlineDv", "offset", "sizeInBytes", "cardinality"):
        row[f"dv.{field}"] = vector.get(field)
    stats = _parsed(add.get("stats")) if with_stats else {}
    row |= {"num_records": stats.get("numRecords"), "tight_bounds": stats.get("tightBounds")}
    for kind, prefix in (("minValues", "min"), ("maxValues", "max"), ("nullCount", "null_count")):
        for name, value in stats.get(kind, {}).items():
            typed = value if prefix == "null_count" else _typed(value, types.get(name, ""))
            row[f"{prefix}.{name}"] = typed
    return row


def _parsed(text: str | None) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(text or "{}")
    except ValueError:
        return {}
    return found


def _typed(value: Any, kind: str) -> Any:
    if value is None or kind == "string":
        return value
    if value == "":
        return None
    if kind == "date":
        return date.fromisoformat(value)
    return float(value) if kind == "double" else int(value)


def _plain(value: Any) -> Any:
    return "NaN" if isinstance(value, float) and math.isnan(value) else value
