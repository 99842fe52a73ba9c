"""Actions of a commit as JSON lines, whole columns at a time.

Contract: pure; field order and spelling as Delta on Spark writes them. Every function returns the bytes of
complete lines.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

import numpy as np

from bench.files import Files
from bench.fixed_text import Text, digits, joined
from bench.history import CommitPlan, Key
from bench.spec import TableSpec, compact

ENGINE = "Apache-Spark/4.2.0 Delta-Lake/4.4.0"


def commit_bytes(spec: TableSpec, plan: CommitPlan, *, timestamp_ms: int) -> bytes:
    """One commit of the tail: commitInfo, adds, updates of deletion vectors, removes."""
    numbers, before, after = _columns(plan.dv_updates, 3)
    return b"".join(
        [
            line("commitInfo", commit_info(spec, plan, timestamp_ms)),
            add_lines(Files(spec, plan.adds)),
            *_by_generation(spec, plan.readds, lambda files, dv: add_lines(files, dv, data_change=False)),
            *_by_generation(spec, list(zip(numbers, after, strict=True)), add_lines),
            *_by_generation(
                spec,
                [*zip(numbers, before, strict=True), *plan.removes],
                lambda files, dv: remove_lines(files, dv, deleted_ms=timestamp_ms),
            ),
        ]
    )


def add_lines(files: Files, dv_generation: int = 0, *, data_change: bool = True) -> bytes:
    """`add` actions, all with the same generation of deletion vector (0: none)."""
    parts: list[Text | bytes] = [b'{"add":{"path":"', files.path_text(), b'","partitionValues":']
    parts += [*_partition_values(files), b',"size":', digits(files.size, files.size_digits)]
    parts += [b',"modificationTime":', digits(files.modified_ms, 13)]
    parts += [b',"dataChange":', b"true" if data_change else b"false"]
    parts += [b',"stats":"', files.stats_text(tight=not dv_generation, escaped=True), b'"']
    parts += [*_deletion_vector(files, dv_generation), b"}}\n"]
    return joined(parts, len(files)).tobytes()


def remove_lines(files: Files, dv_generation: int = 0, *, deleted_ms: int) -> bytes:
    """`remove` actions, all with the same generation of deletion vector."""
    parts: list[Text | bytes] = [b'{"remove":{"path":"', files.path_text()]
    parts += [b'","deletionTimestamp":%d,"dataChange":true,"extendedFileMetadata":true' % deleted_ms]
    parts += [b',"partitionValues":', *_partition_values(files)]
    parts += [b',"size":', digits(files.size, files.size_digits), *_deletion_vector(files, dv_generation)]
    parts += [b',"stats":"', files.num_records_only_text(), b'"}}\n']
    return joined(parts, len(files)).tobytes()


def line(kind: str, action: dict[str, Any]) -> bytes:
    """One action of any kind."""
    return compact({kind: action}).encode() + b"\n"


def commit_info(spec: TableSpec, plan: CommitPlan, timestamp_ms: int) -> dict[str, Any]:
    """commitInfo of a commit of the tail."""
    metrics = {
        "numFiles": str(len(plan.adds)),
        "numRemovedFiles": str(len(plan.removes)),
        "numDeletionVectorsUpdated": str(len(plan.dv_updates)),
    }
    return {
        "timestamp": timestamp_ms,
        "operation": "MERGE",
        "operationParameters": {"predicate": '["(t.device_id = s.device_id)"]'},
        "readVersion": plan.version - 1,
        "isolationLevel": "Serializable",
        "isBlindAppend": False,
        "operationMetrics": metrics,
        "engineInfo": ENGINE,
        "txnId": txn_id(spec, plan.version),
    }


def txn_id(spec: TableSpec, version: int) -> str:
    """The id that a commit shares with its checksum file."""
    return str(uuid.UUID(int=(spec.seed << 64) + version, version=4))


def _by_generation(spec: TableSpec, keys: Sequence[Key], write: Any) -> list[bytes]:  # Any: two keyword sets
    groups: dict[int, list[int]] = {}
    for number, generation in keys:
        groups.setdefault(int(generation), []).append(int(number))
    return [write(Files(spec, np.array(numbers)), dv) for dv, numbers in sorted(groups.items())]


def _columns(rows: Sequence[tuple[int, ...]], width: int) -> list[list[int]]:
    return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in range(width)]


def _partition_values(files: Files) -> list[Text | bytes]:
    texts = {"date": files.date_text, "_event_hour": files.hour_text}
    parts: list[Text | bytes] = [b"{"]
    for place, name in enumerate(files.spec.partition_columns):
        parts += [b"," if place else b"", b'"%s":"' % name.encode(), texts[name](), b'"']
    return [*parts, b"}"]


def _deletion_vector(files: Files, generation: int) -> list[Text | bytes]:
    if not generation:
        return []
    path = files.dv_text(np.full(len(files), generation))
    rest = b'","offset":1,"sizeInBytes":%d,"cardinality":%d}' % (dv_size_bytes(generation), generation)
    return [b',"deletionVector":{"storageType":"u","pathOrInlineDv":"', path, rest]


def dv_size_bytes(generation: int) -> int:
    """Serialised size of a deletion vector that marks `generation` rows: see `data.py`."""
    return 32 + 2 * generation
