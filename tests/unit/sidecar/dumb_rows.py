"""The dumb twin of `typed_rows`: one file after the other, one column after the other, plain Python.

Why: `typed_rows` works on whole columns through three decoders; this shares none of them.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np

from lazydelta.sidecar import SidecarLayout, field_kind, field_path
from tests.support.actions import Action

_DV = {
    "dv.storageType": "storageType",
    "dv.pathOrInlineDv": "pathOrInlineDv",
    "dv.offset": "offset",
    "dv.sizeInBytes": "sizeInBytes",
    "dv.cardinality": "cardinality",
}
_PLAIN = {
    "path": "path",
    "size": "size",
    "modification_time": "modificationTime",
    "base_row_id": "baseRowId",
    "default_row_commit_version": "defaultRowCommitVersion",
    "clustering_provider": "clusteringProvider",
}
_SECTIONS = {"min": "minValues", "max": "maxValues", "null_count": "nullCount"}
_RANGES = {"byte": 7, "short": 15, "integer": 31, "long": 63}


def dumb_rows(adds: list[Action], layout: SidecarLayout) -> list[dict[str, Any]]:
    """What a part ought to say of these adds."""
    return [_row(add, layout) for add in adds]


def _row(add: Action, layout: SidecarLayout) -> dict[str, Any]:
    stats = _statistics(add.get("stats"))
    vector = add.get("deletionVector") or {}
    types = {column.path: column.wanted.type.name for column in layout.statistics}
    partition_types = {(column.physical_name,): column.type.name for column in layout.partitions}
    row: dict[str, Any] = {}
    for field in layout.schema:
        name, kind, path = field.name, field_kind(field), field_path(field)
        if kind in _SECTIONS:
            assert path is not None
            value = _inside(stats, (_SECTIONS[kind], *path))
            row[name] = value if kind == "null_count" else _bound(value, types[path])
        elif kind is not None:
            assert path is not None
            raw = add["partitionValues"].get(path[0])
            row[name] = raw if kind == "raw_partition" else _from_text(raw, partition_types[path])
        elif name in _DV:
            row[name] = vector.get(_DV[name])
        elif name == "tags":
            row[name] = None if add.get("tags") is None else list(add["tags"].items())
        elif name in _PLAIN:
            row[name] = add.get(_PLAIN[name])
        else:
            row[name] = stats.get({"num_records": "numRecords", "tight_bounds": "tightBounds"}[name])
    return row


def _statistics(given: Any) -> dict[str, Any]:
    text = json.dumps(given) if isinstance(given, dict) else given
    try:
        decoded = json.loads(text or "{}", parse_float=Decimal)
    except ValueError:
        return {}
    return decoded if isinstance(decoded, dict) else {}


def _inside(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _bound(value: Any, type_name: str) -> Any:
    if value is None:
        return None
    if type_name in _RANGES:
        limit = 1 << _RANGES[type_name]
        return value if -limit <= value < limit else None
    if type_name in ("float", "double"):
        words = {"NaN": np.nan, "Infinity": np.inf, "-Infinity": -np.inf}
        number = words[value] if isinstance(value, str) else float(value)
        return float(np.float32(number)) if type_name == "float" else number
    if type_name.startswith("decimal"):
        return Decimal(value)
    return value if type_name == "boolean" else _from_text(value, type_name)


def _from_text(text: str | None, type_name: str) -> Any:
    """A value in the forms of partition values; None where it is none."""
    if text is None or (text == "" and type_name not in ("string", "binary")):
        return None
    try:
        return _READERS[type_name.partition("(")[0]](text)
    except (ValueError, ArithmeticError):
        return None


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def _clock(text: str) -> datetime:
    return datetime.fromisoformat(text.removesuffix("Z"))


def _whole(text: str) -> int:
    if not re.fullmatch(r"-?[0-9]+", text):
        raise ValueError(text)
    return int(text)


_READERS: dict[str, Any] = {
    "string": str,
    "binary": str.encode,
    "boolean": lambda text: {"true": True, "false": False}[text],
    "date": date.fromisoformat,
    "timestamp": _moment,
    "timestamp_ntz": _clock,
    "long": _whole,
    "integer": _whole,
    "short": _whole,
    "byte": _whole,
    "double": float,
    "float": lambda text: float(np.float32(text)),
    "decimal": Decimal,
}
