"""Which errors of lazydelta are right: the log or the data was taken away under the scan, or time was up.

Contract: `kind_of` gives the kind that is counted, or None: then it is a failure of the run. What is taken
for cleaned or vacuumed is looked up in the store itself and in what is kept.
"""

from __future__ import annotations

import re
from pathlib import Path

from bench.chaos.checks import Asked
from bench.chaos.objects import Objects
from bench.chaos.vectors import vector_file
from lazydelta.errors import (
    CorruptDataError,
    CorruptLogError,
    LazyDeltaError,
    StorageError,
    VersionNotFoundError,
)

CLEANED = "version cleaned up"
VACUUMED = "file vacuumed under a scan"
DEADLINE = "deadline"
_COMMIT = re.compile(r"^_delta_log/(\d{20})\.json$")
_WHOLE = re.compile(r"^_delta_log/(\d{20})\.checkpoint\.(?:parquet|[0-9a-f-]{36}\.(?:json|parquet))$")
_PART = re.compile(r"^_delta_log/(\d{20})\.checkpoint\.(\d{10})\.(\d{10})\.parquet$")


def kind_of(error: LazyDeltaError, asked: Asked, *, has_deadline: bool) -> str | None:
    """The kind of an error that may be, None for one that may not."""
    if isinstance(error, VersionNotFoundError | CorruptLogError):
        version = asked.version
        if version is not None and not is_readable(Objects(asked.spec), version):
            return CLEANED
    elif isinstance(error, CorruptDataError):
        if _is_vacuumed(error, asked):
            return VACUUMED
    elif isinstance(error, StorageError) and has_deadline and _is_late(error):
        return DEADLINE
    return None


def is_readable(objects: Objects, version: int) -> bool:
    """Whether the log in the store still tells the version: a checkpoint below, and every commit since."""
    names = objects.listing("_delta_log")
    commits = {int(match[1]) for name in names if (match := _COMMIT.match(name))}
    floors = {int(match[1]) for name in names if (match := _WHOLE.match(name))}
    parts: dict[tuple[int, int], int] = {}
    for name in names:
        if match := _PART.match(name):
            at = int(match[1]), int(match[3])
            parts[at] = parts.get(at, 0) + 1
    floors |= {at for (at, count), found in parts.items() if found == count}
    floors.add(-1)
    return any(
        all(number in commits for number in range(floor + 1, version + 1))
        for floor in floors
        if floor <= version
    )


def _is_late(error: StorageError) -> bool:
    return "deadline" in error.what or "was not open within" in error.what


def _is_vacuumed(error: CorruptDataError, asked: Asked) -> bool:
    """Whether a file that the error names was live at the version, is gone, and is live no more."""
    if asked.version is None:
        return False
    text = f"{error.what} {error.where}"
    named = {key: add for key, add in asked.live(asked.version).items() if Path(key[0]).name in text}
    asked.replay.newest()
    objects, newest = Objects(asked.spec), asked.replay.live
    for key, add in named.items():
        vector = add.get("deletionVector")
        names = [key[0]] + ([vector_file(vector)] if vector and vector["storageType"] == "u" else [])
        if key not in newest and any(objects.get(name) is None for name in names):
            return True
    return False
