"""Names of the stats sidecar's files, which lie in `_delta_log/_lazy/`.

Contract: versions have 20 digits, as Delta writes them; no name ends in 20 digits plus `.json` or
`.checkpoint.parquet`, because others match such names loosely. `parse_name` answers None for what is none of
ours.
"""

from __future__ import annotations

import re
import secrets
from enum import Enum

import msgspec

from lazydelta.protocol.names import LOG_FOLDER

LAZY_FOLDER = f"{LOG_FOLDER}/_lazy"  # unless `delta.sidecar.directory` names another

_NAME = re.compile(
    r"v(?P<version>\d{20})"
    r"(?:(?P<manifest>\.manifest\.json)"
    r"|_(?P<until>\d{20})\.delta\.parquet"
    r"|-(?P<build>[0-9a-f]{16})\.(?P<number>\d{5})(?:\.(?P<tier>index|stats))?\.parquet"
    r")",
    re.ASCII,
)


class SidecarFileKind(Enum):
    """What a file of the sidecar holds."""

    MANIFEST = "manifest"
    PART = "part"
    DELTA = "delta"


class Tier(Enum):
    """The halves of a wide table's part; a part that is not split has none."""

    INDEX = "index"
    STATS = "stats"


class SidecarName(msgspec.Struct, frozen=True, kw_only=True):
    """A file name of the sidecar, taken apart."""

    name: str  # without the folder
    kind: SidecarFileKind
    version: int  # of the checkpoint
    build: str | None = None
    number: int | None = None
    tier: Tier | None = None
    until: int | None = None  # the last version in a delta file


def sidecar_folder(directory: str) -> str:
    """The folder of sidecars, below the table, by its name below the log."""
    return f"{LOG_FOLDER}/{directory}"


def new_build_id() -> str:
    """A random id that no other build has."""
    return secrets.token_hex(8)


def manifest_name(version: int) -> str:
    """The manifest of checkpoint `version`: its presence is the commit of the sidecar."""
    return f"v{version:020d}.manifest.json"


def part_name(version: int, build: str, number: int, tier: Tier | None = None) -> str:
    """A part of a build; `tier` for the halves of a wide table's part."""
    suffix = "" if tier is None else f".{tier.value}"
    return f"v{version:020d}-{build}.{number:05d}{suffix}.parquet"


def delta_name(version: int, until: int) -> str:
    """The actions up to `until` that came after checkpoint `version` and after the delta file before."""
    return f"v{version:020d}_{until:020d}.delta.parquet"


def parse_name(name: str) -> SidecarName | None:
    """The parts of a base name, or None where it is not one of ours."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    version = int(match["version"])
    if match["manifest"]:
        return SidecarName(name=name, kind=SidecarFileKind.MANIFEST, version=version)
    if match["until"]:
        return SidecarName(name=name, kind=SidecarFileKind.DELTA, version=version, until=int(match["until"]))
    return SidecarName(
        name=name,
        kind=SidecarFileKind.PART,
        version=version,
        build=match["build"],
        number=int(match["number"]),
        tier=None if match["tier"] is None else Tier(match["tier"]),
    )
