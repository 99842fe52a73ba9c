"""Names in `_delta_log`: which kind of file, of which version.

Contract: `parse_log_name` answers None for whatever is none of Delta's, such as `_last_checkpoint`,
temporary files and the hidden `.…crc` files of Hadoop.
Spec: PROTOCOL.md, "File Types".
"""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache

import msgspec

LOG_FOLDER = "_delta_log"
SIDECAR_FOLDER = "_delta_log/_sidecars"
HINT_NAME = "_last_checkpoint"

_NAME = re.compile(
    r"(?P<version>\d{20})"
    r"(?:(?P<commit>\.json)"
    r"|(?P<crc>\.crc)"
    r"|\.(?P<until>\d{20})\.compacted\.json"
    r"|\.checkpoint(?:\.(?P<part>\d{10})\.(?P<parts>\d{10})|\.(?P<unique>[0-9A-Za-z_-]+))?\.(?P<format>parquet|json)"
    r")",
    re.ASCII,
)


class LogFileKind(Enum):
    """What a file of the log holds."""

    COMMIT = "commit"
    CHECKPOINT = "checkpoint"
    COMPACTED = "compacted"
    CRC = "crc"


class LogName(msgspec.Struct, frozen=True, kw_only=True):
    """A file name of the log, taken apart."""

    name: str  # without the folder
    kind: LogFileKind
    version: int
    until: int | None = None  # the last version of a compacted range
    part: int | None = None  # counted from 1
    parts: int | None = None
    unique: str | None = None  # the unique part of a V2 checkpoint's name
    is_json: bool = False


@lru_cache(maxsize=4096)  # a log is listed again and again, and most of its names stay
def parse_log_name(name: str) -> LogName | None:
    """The parts of a base name below `_delta_log`, or None where it is not one of Delta's."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    version = int(match["version"])
    if match["commit"]:
        return LogName(name=name, kind=LogFileKind.COMMIT, version=version, is_json=True)
    if match["crc"]:
        return LogName(name=name, kind=LogFileKind.CRC, version=version, is_json=True)
    if match["until"]:
        until = int(match["until"])
        return LogName(name=name, kind=LogFileKind.COMPACTED, version=version, until=until, is_json=True)
    is_json = match["format"] == "json"
    if is_json and not match["unique"]:
        return None  # only V2 checkpoints, which have a unique name, may be JSON
    return LogName(
        name=name,
        kind=LogFileKind.CHECKPOINT,
        version=version,
        part=int(match["part"]) if match["part"] else None,
        parts=int(match["parts"]) if match["parts"] else None,
        unique=match["unique"],
        is_json=is_json,
    )


def commit_name(version: int) -> str:
    """`00000000000000000412.json`."""
    return f"{version:020d}.json"
