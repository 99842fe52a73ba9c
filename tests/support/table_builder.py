"""Real Delta logs, built a commit at a time, one value per axis.

    table = TableBuilder(tmp_path).commit(adds=["a"]).checkpoint().commit(removes=["a"]).without_hint()

Why: a test of the reader needs logs that no single engine writes, and needs to say what is in them.
Contract: what is written follows PROTOCOL.md unless the method's name says otherwise (`corrupt`, `truncate`,
`delete_commit`); data files are not written, the log alone decides which files are live. Each commit's file
time is set, a minute after the one before it, so that time travel can be tested.
"""

from __future__ import annotations

import copy
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from tests.support import actions
from tests.support.actions import COMMIT_STEP_MS, FIRST_COMMIT_MS
from tests.support.checkpoint_writer import CheckpointPlan, Row, write_checkpoint
from tests.support.keys import Action, FileKey, file_key

_CREATE = object()  # "the usual ones at version 0, none later"


@dataclass
class LogState:
    """What the builder knows of one version: enough for checkpoints, compaction files and `.crc`."""

    live: dict[FileKey, Action] = field(default_factory=dict)
    tombstones: dict[FileKey, Action] = field(default_factory=dict)
    protocol: Action | None = None
    metadata: Action | None = None
    others: dict[tuple[str, str], Action] = field(default_factory=dict)  # txn and domainMetadata


class TableBuilder:
    """A table in a folder. Every method that writes returns the builder."""

    def __init__(
        self,
        folder: Path,
        *,
        schema: Mapping[str, str] | None = None,
        partition_columns: Sequence[str] = ("date",),
        column_mapping: str | None = None,
        row_tracking: bool = False,
        in_commit_timestamps: bool = False,
        protocol: Action | None = None,
        configuration: Mapping[str, str] | None = None,
    ) -> None:
        self.path = folder
        self.log = folder / "_delta_log"
        self.log.mkdir(parents=True, exist_ok=True)
        self.states: list[LogState] = []
        self._column_mapping = column_mapping
        self._row_tracking = row_tracking
        self._in_commit_timestamps = in_commit_timestamps
        self._next_row_id = 0
        self._lines: list[list[Row]] = []
        features = [*actions.DEFAULT_FEATURES]
        settings = dict(configuration or {})
        if column_mapping is not None:
            features.append("columnMapping")
        if row_tracking:
            features += ["rowTracking", "domainMetadata"]
            settings["delta.enableRowTracking"] = "true"
        if in_commit_timestamps:
            features.append("inCommitTimestamp")
            settings["delta.enableInCommitTimestamps"] = "true"
        self.protocol = protocol or actions.protocol(features)
        self.metadata = actions.metadata(
            schema,
            partition_columns=partition_columns,
            configuration=settings,
            column_mapping=column_mapping,
        )

    def copy_to(self, folder: Path) -> TableBuilder:
        """The table as it is, in another folder, which may be changed; its e-tags are other ones."""
        shutil.copytree(self.path, folder, dirs_exist_ok=True)
        table = copy.copy(self)
        table.path, table.log = folder, folder / "_delta_log"
        table.states, table._lines = [*self.states], [*self._lines]
        return table

    @property
    def version(self) -> int:
        """The newest version written."""
        return len(self.states) - 1

    def live(self, version: int | None = None) -> set[FileKey]:
        """The keys that ought to be live at a version."""
        return set(self.states[self.version if version is None else version].live)

    def commit(
        self,
        adds: Sequence[Action | str] = (),
        removes: Sequence[Action | str] = (),
        *,
        metadata: Any = _CREATE,
        protocol: Any = _CREATE,
        extra_actions: Sequence[Mapping[str, Any]] = (),
        commit_info: Mapping[str, Any] | None = None,
        timestamp_ms: int | None = None,
        in_commit_timestamp: int | None = None,
    ) -> Self:
        """The next version. `metadata=None` or `protocol=None` leave them out of version 0."""
        version = len(self.states)
        when = FIRST_COMMIT_MS + version * COMMIT_STEP_MS if timestamp_ms is None else timestamp_ms
        rows: list[Row] = [("commitInfo", self._commit_info(version, when, commit_info, in_commit_timestamp))]
        rows += self._table_state_rows(version, metadata, protocol)
        rows += [("remove", self._remove(item, when)) for item in removes]
        rows += [("add", self._add(item, version)) for item in adds]
        if self._row_tracking and adds:
            rows.append(("domainMetadata", self._row_id_mark()))
        for extra in extra_actions:
            rows += [(kind, body) for kind, body in extra.items()]
        self._write_lines(f"{version:020}.json", rows, when)
        self._lines.append(rows)
        self._remember(rows)
        return self

    def checkpoint(
        self, kind: str = "v1", *, version: int | None = None, hint: bool = True, **axes: Any
    ) -> Self:
        """A checkpoint of any version; further axes are the fields of `CheckpointPlan`."""
        at = self.version if version is None else version
        state = self.states[at]
        files: list[Row] = [("add", body) for body in state.live.values()]
        files += [("remove", _tombstone(body)) for body in state.tombstones.values()]
        plan = CheckpointPlan(version=at, kind=kind, **axes)
        about = write_checkpoint(self.log, plan, table_state=_table_state(state), files=files)
        return self.with_hint(about) if hint else self

    def compact(self, first: int, last: int, *, dead_keys: bool = False, tombstones: bool = True) -> Self:
        """`first.last.compacted.json`, newest actions first.

        `dead_keys` leaves every action of the range in, so that a key may stand there twice; without
        `tombstones` removes are dropped, as a writer may do once their retention is over.
        """
        seen: set[Any] = set()
        rows: list[Row] = []
        for number in range(last, first - 1, -1):
            decided: set[Any] = set()
            for kind, body in self._lines[number]:
                key = self._reconciliation_key(kind, body)
                if key is None or (key in seen and not dead_keys):
                    continue
                decided.add(key)
                if kind != "remove" or tombstones:
                    rows.append((kind, body))
            seen |= decided
        name = f"{first:020}.{last:020}.compacted.json"
        self._write_lines(name, rows, FIRST_COMMIT_MS + last * COMMIT_STEP_MS)
        return self

    def crc(self, version: int | None = None, **overrides: Any) -> Self:
        """`version.crc` as Spark writes it; `overrides` replace fields (`txnId`, `metadata`, …)."""
        at = self.version if version is None else version
        state = self.states[at]
        body: dict[str, Any] = {
            "txnId": _txn_id(at),
            "tableSizeBytes": sum(add["size"] for add in state.live.values()),
            "numFiles": len(state.live),
            "numMetadata": 1,
            "numProtocol": 1,
            "setTransactions": [],
            "domainMetadata": [],
            "metadata": state.metadata,
            "protocol": state.protocol,
        }
        (self.log / f"{at:020}.crc").write_text(json.dumps(body | overrides), encoding="utf-8")
        return self

    def with_hint(self, about: Mapping[str, Any] | str | None = None, *, version: int | None = None) -> Self:
        """`_last_checkpoint`: a dictionary, any text, or a bare version, true or not."""
        if about is None:
            about = {"version": version, "size": 1}
        text = about if isinstance(about, str) else json.dumps(about)
        (self.log / "_last_checkpoint").write_text(text, encoding="utf-8")
        return self

    def without_hint(self) -> Self:
        """No `_last_checkpoint`."""
        (self.log / "_last_checkpoint").unlink(missing_ok=True)
        return self

    def delete_commit(self, version: int) -> Self:
        """Take one commit out of the log."""
        (self.log / f"{version:020}.json").unlink()
        return self

    def clean_up(self, before: int) -> Self:
        """Delete the commits below a version, as Delta's log cleanup does after a checkpoint."""
        for version in range(before):
            (self.log / f"{version:020}.json").unlink(missing_ok=True)
        return self

    def corrupt(self, pattern: str, content: bytes = b"this is neither JSON nor Parquet") -> Self:
        """Overwrite the one log file that matches the pattern (`*2.json`, `*.checkpoint.parquet`)."""
        self.log_file(pattern).write_bytes(content)
        return self

    def truncate(self, pattern: str, keep_bytes: int) -> Self:
        """Keep the first bytes of the one log file that matches; a negative number cuts from the end."""
        path = self.log_file(pattern)
        path.write_bytes(path.read_bytes()[:keep_bytes])
        return self

    def append_to_commit(self, version: int, text: str) -> Self:
        """Put raw text at the end of a commit."""
        with (self.log / f"{version:020}.json").open("a", encoding="utf-8") as out:
            out.write(text)
        return self

    def log_file(self, pattern: str) -> Path:
        """The one file of the log (or its sidecar folder) that matches."""
        found = sorted(self.log.rglob(pattern))
        assert len(found) == 1, f"{pattern} matches {found}"
        return found[0]

    def _commit_info(
        self, version: int, when: int, given: Mapping[str, Any] | None, in_commit_timestamp: int | None
    ) -> Action:
        body = {"timestamp": when, "operation": "WRITE", "operationParameters": {}, "txnId": _txn_id(version)}
        stamp = when if in_commit_timestamp is None and self._in_commit_timestamps else in_commit_timestamp
        if stamp is not None:
            body["inCommitTimestamp"] = stamp
        return body | dict(given or {})

    def _table_state_rows(self, version: int, metadata: Any, protocol: Any) -> list[Row]:
        if protocol is _CREATE:
            protocol = self.protocol if version == 0 else None
        if metadata is _CREATE:
            metadata = self.metadata if version == 0 else None
        rows: list[Row] = []
        if protocol is not None:
            rows.append(("protocol", protocol))
        if metadata is not None:
            rows.append(("metaData", metadata))
        return rows

    def _add(self, item: Action | str, version: int) -> Action:
        body = copy.deepcopy(actions.add(item) if isinstance(item, str) else item)
        body["partitionValues"] = self._physical(body["partitionValues"])
        stats = body.get("stats")
        if isinstance(stats, dict):
            for kind in ("minValues", "maxValues", "nullCount"):
                if kind in stats:
                    stats[kind] = self._physical(stats[kind])
            body["stats"] = json.dumps(stats, separators=(",", ":"))
        if self._row_tracking and "baseRowId" not in body:
            body |= {"baseRowId": self._next_row_id, "defaultRowCommitVersion": version}
            self._next_row_id += stats["numRecords"] if isinstance(stats, dict) else 1
        return body

    def _remove(self, item: Action | str, when: int) -> Action:
        return actions.remove(item, deletion_timestamp=when) if isinstance(item, str) else dict(item)

    def _physical(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return {actions.physical_name(name, self._column_mapping): value for name, value in values.items()}

    def _row_id_mark(self) -> Action:
        mark = json.dumps({"rowIdHighWaterMark": self._next_row_id - 1})
        return {"domain": "delta.rowTracking", "configuration": mark, "removed": False}

    def _remember(self, rows: Sequence[Row]) -> None:
        before = self.states[-1] if self.states else LogState()
        state = LogState(
            dict(before.live), dict(before.tombstones), before.protocol, before.metadata, dict(before.others)
        )
        for body in (body for kind, body in rows if kind == "remove"):
            key = file_key(body, self.path)
            state.live.pop(key, None)
            state.tombstones[key] = body
        for kind, body in rows:
            if kind == "add":
                key = file_key(body, self.path)
                state.tombstones.pop(key, None)
                state.live[key] = body
            elif kind == "protocol":
                state.protocol = body
            elif kind == "metaData":
                state.metadata = body
            elif kind in ("txn", "domainMetadata"):
                state.others[kind, body.get("appId") or body["domain"]] = body
        self.states.append(state)

    def _reconciliation_key(self, kind: str, body: Action) -> Any:
        if kind in ("add", "remove"):
            return file_key(body, self.path)
        if kind in ("protocol", "metaData"):
            return kind
        return (kind, body.get("appId") or body.get("domain")) if kind in ("txn", "domainMetadata") else None

    def _write_lines(self, name: str, rows: Sequence[Row], modified_ms: int) -> None:
        path = self.log / name
        lines = "".join(json.dumps({kind: body}, ensure_ascii=False) + "\n" for kind, body in rows)
        path.write_text(lines, encoding="utf-8")
        os.utime(path, ns=(modified_ms * 1_000_000, modified_ms * 1_000_000))


def _table_state(state: LogState) -> list[Row]:
    """The rows of a checkpoint that are not about files."""
    rows: list[Row] = []
    if state.protocol is not None:
        rows.append(("protocol", state.protocol))
    if state.metadata is not None:
        rows.append(("metaData", state.metadata))
    return rows + [(kind, body) for (kind, _), body in state.others.items()]


def _txn_id(version: int) -> str:
    return f"00000000-0000-4000-8000-{version:012}"


def _tombstone(body: Action) -> Action:
    """A remove as a checkpoint keeps it."""
    return {key: value for key, value in body.items() if key != "stats"} | {"dataChange": False}
