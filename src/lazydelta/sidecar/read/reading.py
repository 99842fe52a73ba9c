"""How sidecars are read, and what discovery found: plain data between the rooms."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from lazydelta import limits
from lazydelta.log.fallback import Fallback
from lazydelta.log.segment import LogFile
from lazydelta.sidecar.format.manifest import Manifest
from lazydelta.sidecar.format.names import LAZY_FOLDER


class SidecarReading(msgspec.Struct, frozen=True, kw_only=True):
    """What a reader may be told. The last three exist so that the ladder can measure what each one brings."""

    is_enabled: bool = True
    folder: str = LAZY_FOLDER
    row_groups_per_batch: int = limits.SIDECAR_ROW_GROUPS_PER_BATCH
    uses_manifest: bool = True
    projects_columns: bool = True
    prunes: bool = True


class MetadataTier(StrEnum):
    """What a sidecar is known by, the best first; where none of them serves, the checkpoint is read."""

    MANIFEST = "manifest"  # row groups chosen before any part is opened
    FOOTERS = "footers"  # one complete build of parts whose manifest is missing
    PLAIN = "plain"  # a single vN.parquet


class MetadataSource(msgspec.Struct, frozen=True, kw_only=True):
    """A sidecar that has proven that it belongs to the log. Its manifest may have been put together here."""

    tier: MetadataTier
    folder: str  # that the parts lie in
    manifest: Manifest
    lacks: frozenset[str] = frozenset()  # columns of files that it cannot tell and the log may have

    @property
    def version(self) -> int:
        """Of the checkpoint it stands for."""
        return self.manifest.version


class OlderSidecar(msgspec.Struct, frozen=True, kw_only=True):
    """The sidecar of an earlier checkpoint: with the commits in between it tells the same files."""

    source: MetadataSource
    commits: tuple[LogFile, ...]  # after its version, up to the checkpoint's; ascending, none missing

    @property
    def commit_bytes(self) -> int:
        """The size of the commits in between."""
        return sum(file.info.size_bytes for file in self.commits)


class Discovery(msgspec.Struct, frozen=True, kw_only=True):
    """The sidecar to use, or none; and what was met that must be told."""

    source: MetadataSource | None
    reason: str  # why this source, or why none
    fallbacks: tuple[Fallback, ...] = ()  # what was there but could not be used, each once
    older: OlderSidecar | None = None  # where there is no source: what may be cheaper than the checkpoint
    is_lasting: bool = True  # False where the store failed: the next one to ask may fare better


NOTHING = Discovery(source=None, reason="no sidecar")
