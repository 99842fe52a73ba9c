"""Checkpoints of every kind, written with nothing but pyarrow.

Contract: `write_checkpoint` puts the files into a log folder and returns what `_last_checkpoint` should
say about them. Kinds: `v1`, `v1-multipart`, `v2-parquet`, `v2-json`, `classic-named-v2`.
Spec: PROTOCOL.md, "Checkpoints".
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.checkpoint_schema import checkpoint_row, checkpoint_schema, sidecar_schema
from tests.support.keys import Action

KINDS = ("v1", "v1-multipart", "v2-parquet", "v2-json", "classic-named-v2")
STATS_FORMS = ("json", "parsed", "both", "none")

Row = tuple[str, Action]
"""(kind of action, body)"""


class CheckpointPlan(msgspec.Struct, frozen=True, kw_only=True):
    """One value per axis of a checkpoint."""

    version: int
    kind: str = "v1"
    stats: str = "json"
    parts: int = 3  # of a multi-part checkpoint
    sidecars: int = 2  # of a V2 checkpoint; 0: the file actions stand in the top-level file
    row_group_rows: int = 1_000_000
    table_state_at: str = "start"  # "start", "middle" or "end" of the rows
    name_salt: str = ""  # two V2 checkpoints of one version need two names

    def __post_init__(self) -> None:
        assert self.kind in KINDS, self.kind
        assert self.stats in STATS_FORMS, self.stats


def write_checkpoint(
    log: Path, plan: CheckpointPlan, *, table_state: Sequence[Row], files: Sequence[Row]
) -> dict[str, Any]:
    """Write one checkpoint; `table_state` holds protocol, metaData, txn and domainMetadata."""
    metadata = next(body for kind, body in table_state if kind == "metaData")
    hint: dict[str, Any] = {
        "version": plan.version,
        "size": len(table_state) + len(files),
        "numOfAddFiles": sum(kind == "add" for kind, _ in files),
    }
    if plan.kind == "v1":
        rows = _interleave(table_state, files, plan.table_state_at)
        size = _write_parquet(log / f"{plan.version:020}.checkpoint.parquet", rows, plan, metadata)
        return hint | {"sizeInBytes": size}
    if plan.kind == "v1-multipart":
        rows = _interleave(table_state, files, plan.table_state_at)
        return hint | {"parts": plan.parts, "sizeInBytes": _write_parts(log, rows, plan, metadata)}
    return hint | _write_v2(log, plan, metadata, table_state, files)


def _write_parts(log: Path, rows: list[Row], plan: CheckpointPlan, metadata: Action) -> int:
    size = 0
    for number, share in enumerate(_shares(rows, plan.parts), start=1):
        name = f"{plan.version:020}.checkpoint.{number:010}.{plan.parts:010}.parquet"
        size += _write_parquet(log / name, share, plan, metadata)
    return size


def _write_v2(
    log: Path, plan: CheckpointPlan, metadata: Action, table_state: Sequence[Row], files: Sequence[Row]
) -> dict[str, Any]:
    sidecars = _write_sidecars(log, plan, metadata, files) if plan.sidecars else []
    top: list[Row] = [("checkpointMetadata", {"version": plan.version})]
    top += [("sidecar", body) for body in sidecars]
    top += _interleave(table_state, [] if plan.sidecars else files, plan.table_state_at)
    suffix = "json" if plan.kind == "v2-json" else "parquet"
    name = f"{plan.version:020}.checkpoint.{_uuid(plan, 'top')}.{suffix}"
    if plan.kind == "classic-named-v2":
        name = f"{plan.version:020}.checkpoint.parquet"
    if suffix == "json":
        lines = "".join(json.dumps({kind: body}, ensure_ascii=False) + "\n" for kind, body in top)
        (log / name).write_text(lines, encoding="utf-8")
        size = (log / name).stat().st_size
    else:
        size = _write_parquet(log / name, top, plan, metadata, is_v2=True)
    total = size + sum(body["sizeInBytes"] for body in sidecars)
    about = {"path": name, "sizeInBytes": size, "modificationTime": _modified_ms(log / name)}
    return {"sizeInBytes": total, "v2Checkpoint": about}


def _write_sidecars(log: Path, plan: CheckpointPlan, metadata: Action, files: Sequence[Row]) -> list[Action]:
    folder = log / "_sidecars"
    folder.mkdir(exist_ok=True)
    bodies = []
    schema = sidecar_schema(metadata, stats=plan.stats)
    for number, share in enumerate(_shares(list(files), plan.sidecars), start=1):
        unique = _uuid(plan, f"sidecar {number}")
        name = f"{plan.version:020}.checkpoint.{number:010}.{plan.sidecars:010}.{unique}.parquet"
        size = _write_rows(folder / name, share, plan, metadata, schema)
        bodies.append({"path": name, "sizeInBytes": size, "modificationTime": _modified_ms(folder / name)})
    return bodies


def _write_parquet(
    path: Path, rows: Sequence[Row], plan: CheckpointPlan, metadata: Action, *, is_v2: bool = False
) -> int:
    schema = checkpoint_schema(metadata, stats=plan.stats, is_v2=is_v2)
    return _write_rows(path, rows, plan, metadata, schema)


def _write_rows(
    path: Path, rows: Sequence[Row], plan: CheckpointPlan, metadata: Action, schema: pa.Schema
) -> int:
    dictionaries = [checkpoint_row(kind, body, metadata, stats=plan.stats) for kind, body in rows]
    table = pa.Table.from_pylist(dictionaries, schema=schema)
    pq.write_table(
        table,
        path,
        compression="snappy",
        row_group_size=plan.row_group_rows,
        use_deprecated_int96_timestamps=True,
        store_schema=False,
    )
    return path.stat().st_size


def _interleave(table_state: Sequence[Row], files: Sequence[Row], where: str) -> list[Row]:
    at = {"start": 0, "middle": len(files) // 2, "end": len(files)}[where]
    return [*files[:at], *table_state, *files[at:]]


def _shares(rows: Sequence[Row], count: int) -> list[Sequence[Row]]:
    """Round robin, so that every part has something while there is enough to go round."""
    return [rows[number::count] for number in range(count)]


def _uuid(plan: CheckpointPlan, what: str) -> str:
    return str(uuid5(NAMESPACE_URL, f"{plan.version} {plan.kind} {what} {plan.name_salt}"))


def _modified_ms(path: Path) -> int:
    return path.stat().st_mtime_ns // 1_000_000
