"""The reference: every version's live files, from the kept commits alone, oldest first, into dictionaries.

Why: slow, plain, and strange to lazydelta; it shares with the tests' eager twin what makes two actions
speak of one file. Contract: versions are asked for in any order; a state is made once and remembered for a
while.
"""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from pathlib import Path
from typing import Any

from bench.chaos.live_files import LiveFiles
from tests.support.keys import Action, file_key

MARK_EVERY = 16  # versions whose state is kept for good
STATES_KEPT = 32
_NO_ROOT = Path("/-")  # no path in these tables is absolute


class Replay:
    """The versions of one table; safe for several threads."""

    def __init__(self, kept: Path) -> None:
        self._log = kept / "_delta_log"
        self._lock = threading.RLock()
        self._newest = -1
        self._live = LiveFiles()
        self._marks: dict[int, LiveFiles] = {}
        self._states: OrderedDict[int, LiveFiles] = OrderedDict()
        self.table_state: dict[str, Action] = {}  # protocol and metaData, of the newest

    def newest(self) -> int:
        """The newest version that has been kept, once everything up to it is applied."""
        with self._lock:
            while (path := commit_path(self._log, self._newest + 1)).exists():
                lines = json_lines(path.read_bytes())
                self.apply(lines)
            return self._newest

    def apply(self, lines: list[dict[str, Any]]) -> None:
        """One more version, told by its commit."""
        with self._lock:
            self._live = after_commit(self._live, lines)
            self._newest += 1
            for line in lines:
                self.table_state |= {kind: line[kind] for kind in ("protocol", "metaData") if line.get(kind)}
            if self._newest % MARK_EVERY == 0:
                self._marks[self._newest] = self._live

    @property
    def live(self) -> LiveFiles:
        """The newest state."""
        return self._live

    def wait_for(self, version: int, *, seconds_max: float = 60.0) -> bool:
        """Whether the version has been kept, after a while."""
        give_up = time.monotonic() + seconds_max
        while self.newest() < version:
            if time.monotonic() > give_up:
                return False
            time.sleep(0.02)
        return True

    def at(self, version: int) -> LiveFiles:
        """The live files of a version that is kept."""
        with self._lock:
            assert 0 <= version <= self.newest(), version
            if version not in self._states:
                self._states[version] = self._made(version)
                if len(self._states) > STATES_KEPT:
                    self._states.popitem(last=False)
            self._states.move_to_end(version)
            return self._states[version]

    def _made(self, version: int) -> LiveFiles:
        if version == self._newest:
            return self._live
        base = version - version % MARK_EVERY
        state = self._marks[base]
        for number in range(base + 1, version + 1):
            state = after_commit(state, json_lines(commit_path(self._log, number).read_bytes()))
        return state


def after_commit(live: LiveFiles, lines: list[dict[str, Any]]) -> LiveFiles:
    """All removes of a commit, then all its adds."""
    removes = [line["remove"] for line in lines if line.get("remove")]
    adds = [line["add"] for line in lines if line.get("add")]
    return live.changed(
        removed=[file_key(remove, _NO_ROOT) for remove in removes],
        added=[(file_key(add, _NO_ROOT), hour_of(add), add) for add in adds],
    )


def commit_path(log: Path, version: int) -> Path:
    """Where a commit lies."""
    return log / f"{version:020}.json"


def json_lines(body: bytes) -> list[dict[str, Any]]:
    """The actions of a commit."""
    return [json.loads(line) for line in body.split(b"\n") if line.strip()]


def hour_of(action: Action) -> str:
    """The partition of a file."""
    return str(action["partitionValues"]["_event_hour"])
