"""What a killed stream left on disk, read without Spark: batches, commits, checkpoints, sidecars.

Contract: cheap enough to be polled many times a second; a file that vanishes in between is no error.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from pathlib import Path

import msgspec

_COMMIT = re.compile(r"^(\d{20})\.json$")
_MANIFEST = re.compile(r"^v(\d{20})\.manifest\.json$")
_PART = re.compile(r"^v(\d{20})-.*\.parquet$")


class Sight(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of everything that grows; -1 where there is nothing yet."""

    begun: int
    done: int
    rejects_version: int
    target_version: int
    checkpoint_files: int
    sidecar_parts: int
    manifests: int


class StreamWorld:
    """The folders of one stream."""

    def __init__(self, folder: Path) -> None:
        self.source = folder / "in"
        self.target = folder / "table"
        self.rejects = folder / "table_rejects"
        self.location = folder / "stream"

    def look(self) -> Sight:
        """What there is now."""
        log = _names(self.target / "_delta_log")
        lazy = _names(self.target / "_delta_log" / "_lazy")
        return Sight(
            begun=_newest(_names(self.location / "offsets"), r"^(\d+)$"),
            done=_newest(_names(self.location / "commits"), r"^(\d+)$"),
            rejects_version=_newest(_names(self.rejects / "_delta_log"), _COMMIT.pattern),
            target_version=_newest(log, _COMMIT.pattern),
            checkpoint_files=sum("checkpoint" in name and "_last" not in name for name in log),
            sidecar_parts=sum(bool(_PART.match(name)) for name in lazy),
            manifests=sum(bool(_MANIFEST.match(name)) for name in lazy),
        )

    def unfinished_sidecars(self) -> set[int]:
        """Versions that have parts and no manifest."""
        names = _names(self.target / "_delta_log" / "_lazy")
        with_parts = {int(found[1]) for name in names if (found := _PART.match(name))}
        return with_parts - {int(found[1]) for name in names if (found := _MANIFEST.match(name))}


def batches_in(table: Path) -> Counter[int]:
    """How many commits of a table carry each batch number."""
    found: Counter[int] = Counter()
    for path in sorted((table / "_delta_log").glob("*.json")):
        if _COMMIT.match(path.name):
            actions = map(json.loads, path.read_text().splitlines())
            found.update(action["txn"]["version"] for action in actions if "txn" in action)
    return found


def _names(folder: Path) -> list[str]:
    try:
        return [entry.name for entry in os.scandir(folder)]
    except FileNotFoundError:
        return []


def _newest(names: list[str], pattern: str) -> int:
    return max((int(found[1]) for name in names if (found := re.match(pattern, name))), default=-1)
