"""The reference replay: the whole log, oldest first, into plain dictionaries. For tests only.

Why: lazy must equal naive. This file is meant to be obviously right, and slow; it shares no line with
`lazydelta`. Contract: a table whose commits reach back to version 0 is replayed from the commits alone,
so that nothing a checkpoint says can hide a mistake; `from_checkpoint=True` starts at the newest complete
checkpoint instead, as does a table whose old commits were cleaned up.
Spec: PROTOCOL.md, "Action Reconciliation".
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq

from tests.support.keys import Action, FileKey, file_key

_COMMIT = re.compile(r"^(\d{20})\.json$")
_CHECKPOINT = re.compile(
    r"^(\d{20})\.checkpoint(?:\.(?P<part>\d{10})\.(?P<parts>\d{10})|\.(?P<uuid>[0-9a-f-]{36}))?\.(?P<ext>parquet|json)$"
)


@dataclass
class TableState:
    """A table at one version."""

    version: int
    live: dict[FileKey, Action] = field(default_factory=dict)
    protocol: Action | None = None
    metadata: Action | None = None

    def paths(self) -> set[str]:
        """The canonical paths of the live files."""
        return {path for path, _ in self.live}


def replay(table: Path, *, version: int | None = None, from_checkpoint: bool | None = None) -> TableState:
    """The state at a version (the newest by default)."""
    log = table / "_delta_log"
    commits = _commits(log)
    checkpoints = _complete_checkpoints(log)
    target = max([*commits, *checkpoints]) if version is None else version
    usable = [at for at in checkpoints if at <= target]
    is_whole = all(number in commits for number in range(target + 1))
    if usable and (from_checkpoint or not is_whole):
        base = max(usable)
        state = _read_checkpoint(log, checkpoints[base], base, table)
    else:
        base, state = -1, TableState(-1)
    for number in range(base + 1, target + 1):
        _apply_commit(state, _json_lines(commits[number]), table)
    state.version = target
    return state


def _commits(log: Path) -> dict[int, Path]:
    found = {}
    for path in log.iterdir():
        match = _COMMIT.match(path.name)
        if match:
            found[int(match[1])] = path
    return found


def _complete_checkpoints(log: Path) -> dict[int, list[Path]]:
    """Version → the files of one complete checkpoint; of several the one whose name sorts last."""
    whole: dict[int, list[list[Path]]] = defaultdict(list)
    multi: dict[tuple[int, int], list[Path]] = defaultdict(list)
    for path in sorted(log.iterdir()):
        match = _CHECKPOINT.match(path.name)
        if not match or path.stat().st_size == 0:
            continue
        if match["parts"]:
            multi[int(match[1]), int(match["parts"])].append(path)
        else:
            whole[int(match[1])].append([path])
    for (number, parts), paths in multi.items():
        if len(paths) == parts:
            whole[number].append(paths)
    return {number: sets[-1] for number, sets in whole.items()}


def _read_checkpoint(log: Path, paths: list[Path], version: int, table: Path) -> TableState:
    state = TableState(version)
    pending = list(paths)
    while pending:
        for action in _checkpoint_rows(pending.pop()):
            if action.get("sidecar"):
                name = unquote(action["sidecar"]["path"])
                pending.append(log / "_sidecars" / name)
            if action.get("add"):
                state.live[file_key(action["add"], table)] = action["add"]
            _apply_table_state(state, action)
    return state


def _checkpoint_rows(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".json":
        return _json_lines(path)
    rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    return [{kind: _without_nulls(body) for kind, body in row.items() if body is not None} for row in rows]


def _without_nulls(body: Any) -> Any:
    """A Parquet row as its JSON line would read: absent fields absent, maps as objects."""
    if not isinstance(body, dict):
        return body
    cleaned = {key: value for key, value in body.items() if value is not None}
    for key in ("partitionValues", "tags", "configuration"):
        if key in cleaned:
            cleaned[key] = dict(cleaned[key])
    if "deletionVector" in cleaned:
        cleaned["deletionVector"] = _without_nulls(cleaned["deletionVector"])
    return cleaned


def _apply_commit(state: TableState, lines: list[dict[str, Any]], table: Path) -> None:
    # One commit is atomic: all its removes, then all its adds.
    for action in lines:
        if action.get("remove"):
            state.live.pop(file_key(action["remove"], table), None)
    for action in lines:
        if action.get("add"):
            state.live[file_key(action["add"], table)] = action["add"]
        _apply_table_state(state, action)


def _apply_table_state(state: TableState, action: dict[str, Any]) -> None:
    state.protocol = action.get("protocol") or state.protocol
    state.metadata = action.get("metaData") or state.metadata


def _json_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]
