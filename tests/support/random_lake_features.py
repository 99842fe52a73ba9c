"""What a table on disk has of Delta's features, found in its log and its files, not in what was asked for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq

import lazydelta as ld

_CHECKPOINTS = {
    "classic checkpoint": r"\d{20}\.checkpoint\.parquet",
    "multi-part checkpoint": r"\d{20}\.checkpoint\.\d{10}\.\d{10}\.parquet",
    "V2 checkpoint": r"\d{20}\.checkpoint\.[0-9a-f-]{36}\.(json|parquet)",
}


def features_of(folder: Path) -> set[str]:
    """Names of the protocol's features, and of forms that the protocol does not name."""
    table = ld.open(str(folder), storage_options={"delta.allowed_roots": str(folder.parent)})
    found = {*(table.protocol.reader_features or []), *(table.protocol.writer_features or [])}
    mode = table.metadata.configuration.get("delta.columnMapping.mode", "none")
    found.add(f"mapped by {mode}")
    log = [path.name for path in (folder / "_delta_log").iterdir()]
    found |= {name for name, form in _CHECKPOINTS.items() if any(re.fullmatch(form, one) for one in log)}
    for file in table.scan().files():
        if "://" in file.path:
            found.add("absolute path")
        elif "%" in file.path:  # decoded once: what is left is how folders spell odd characters
            found.add("path encoded twice")
        if file.deletion_vector is not None:
            found.add(f"deletion vector {file.deletion_vector.storage_type}")
        if None in file.partition_values.values():
            found.add("partition of null")
    return found | set(_typed(json.loads(table.metadata.schema_string))) | set(_stored(folder))


def _typed(kind: object) -> Iterator[str]:
    """Types of the schema, at every level."""
    if isinstance(kind, str):
        yield kind.partition("(")[0]
    elif isinstance(kind, dict):
        if "delta.typeChanges" in kind.get("metadata", {}):
            yield "a widened column"
        yield str(kind["type"]) if isinstance(kind.get("type"), str) and "fields" in kind else ""
        for name in ("type", "fields", "elementType", "keyType", "valueType"):
            yield from _typed(kind.get(name))
    elif isinstance(kind, list):
        for one in kind:
            yield from _typed(one)


def _stored(folder: Path) -> Iterator[str]:
    """Physical forms in the table's own files."""
    for path in folder.rglob("*.parquet"):
        if "_delta_log" in path.parts or "_change_data" in path.parts:
            continue
        footer = pq.read_metadata(path)
        if footer.num_row_groups > 1:
            yield "many row groups"
        for at in range(len(footer.schema.names)):
            column = footer.schema.column(at)
            if column.physical_type == "INT96":
                yield "INT96"
            if re.search(r"\.(bag|array)\.|\.array$", column.path):
                yield "legacy lists"
            if column.logical_type.type == "DECIMAL":
                yield f"decimal as {column.physical_type}"
        if footer.num_row_groups:
            group = footer.row_group(0)
            yield from (name for at in range(group.num_columns) for name in group.column(at).encodings)
