"""What the log and the sidecar's folder of a pinned version tell, for the doctor's rules.

Contract: two listings besides the opening (of the log up to `DOCTOR_LOG_FILES_MAX` names, and of the
sidecar's folder), and what discovery of a sidecar reads: no part, no file list. Nothing is written.
"""

from __future__ import annotations

from itertools import islice

import msgspec

from lazydelta import limits
from lazydelta.log.snapshot import Snapshot
from lazydelta.protocol.names import LOG_FOLDER, LogFileKind, parse_log_name
from lazydelta.rows.source import RowSource
from lazydelta.sidecar.format.folder import SidecarListing, list_sidecars
from lazydelta.sidecar.read.reading import NOTHING, Discovery, MetadataSource
from lazydelta.storage import Storage

_INTERVAL_USUAL = 10  # commits between checkpoints, as Delta on Spark has it


class LogFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The log at the pinned version."""

    version: int
    checkpoint_version: int | None
    checkpoint_bytes: int
    commits_since_checkpoint: int
    tail_bytes: int
    checkpoint_interval: int  # that the table asks for
    has_checksum: bool  # the newest version's `.crc` counts
    has_hint: bool  # `_last_checkpoint` names the checkpoint
    files_listed: int
    is_listed_whole: bool
    old_commits: int  # before the checkpoint
    old_checkpoints: int  # files of them
    old_bytes: int
    oldest_ms: int | None
    retention: str | None  # delta.logRetentionDuration
    is_cleanup_off: bool

    @property
    def old_files(self) -> int:
        """Files that no reader of the newest version needs."""
        return self.old_commits + self.old_checkpoints


class SidecarFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The stats sidecar as a reader of the pinned version finds it."""

    is_enabled: bool
    folder: str
    found: Discovery
    newest_version: int | None  # of the manifests there, whether they serve or not
    manifests: int
    folder_bytes: int
    folder_files: int
    delta_until: int | None  # the last version that delta files tell

    @property
    def source(self) -> MetadataSource | None:
        """What serves: the checkpoint's own sidecar, or an older one."""
        if self.found.source is not None:
            return self.found.source
        return None if self.found.older is None else self.found.older.source


class TableFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of the whole table, where a hint has them."""

    files: int | None
    size_bytes: int | None
    told_by: str | None


def log_facts(snapshot: Snapshot, storage: Storage) -> LogFacts:
    """Count the log."""
    segment, configuration = snapshot.segment, snapshot.state.metadata.configuration
    listed = list(islice(storage.list_from(LOG_FOLDER), limits.DOCTOR_LOG_FILES_MAX + 1))
    is_whole = len(listed) <= limits.DOCTOR_LOG_FILES_MAX
    named = [(parse_log_name(info.name.rpartition("/")[2]), info) for info in listed]
    old = [(name, info) for name, info in named if name is not None and name.version < segment.floor]
    return LogFacts(
        version=snapshot.version,
        checkpoint_version=None if segment.checkpoint is None else segment.floor,
        checkpoint_bytes=0 if segment.checkpoint is None else segment.checkpoint.size_bytes,
        commits_since_checkpoint=len(segment.commits),
        tail_bytes=segment.tail_bytes,
        checkpoint_interval=_number(configuration.get("delta.checkpointInterval"), _INTERVAL_USUAL),
        has_checksum=snapshot.state.checksum is not None,
        has_hint=segment.hint is not None,
        files_listed=min(len(listed), limits.DOCTOR_LOG_FILES_MAX),
        is_listed_whole=is_whole,
        old_commits=sum(name.kind is LogFileKind.COMMIT for name, _ in old),
        old_checkpoints=sum(name.kind is LogFileKind.CHECKPOINT for name, _ in old),
        old_bytes=sum(info.size_bytes for _, info in old),
        oldest_ms=min((info.modified_ms for _, info in old), default=None),
        retention=configuration.get("delta.logRetentionDuration"),
        is_cleanup_off=(configuration.get("delta.enableExpiredLogCleanup") or "").lower() == "false",
    )


def sidecar_facts(source: RowSource, storage: Storage) -> SidecarFacts | None:
    """Look for the sidecar; None where nothing reads sidecars."""
    provider = source.sidecar
    if provider is None:
        return None
    folder, floor = provider.reading.folder, source.snapshot.segment.floor
    listing: SidecarListing = list_sidecars(storage, folder)
    files = [*listing.manifests.values(), *listing.parts.values(), *listing.deltas]
    deltas = [file.parsed.until for file in listing.deltas if file.parsed.version == floor]
    return SidecarFacts(
        is_enabled=provider.reading.is_enabled,
        folder=folder,
        found=provider.discover(storage) if provider.reading.is_enabled else NOTHING,
        newest_version=max(listing.manifests, default=None),
        manifests=len(listing.manifests),
        folder_bytes=sum(file.info.size_bytes for file in files),
        folder_files=len(files),
        delta_until=max((until for until in deltas if until is not None), default=None),
    )


def table_facts(snapshot: Snapshot, sidecar: SidecarFacts | None) -> TableFacts:
    """Files and bytes of the whole table, by the best hint at hand."""
    checksum, hint = snapshot.state.checksum, snapshot.segment.hint
    if checksum is not None and checksum.num_files is not None:
        told_by = f"the .crc of version {snapshot.version:,}"
        return TableFacts(files=checksum.num_files, size_bytes=checksum.table_size_bytes, told_by=told_by)
    source = None if sidecar is None else sidecar.source
    if source is not None:
        told_by = f"the sidecar of version {source.version:,}"
        total = sum(part.total_bytes for part in source.manifest.parts)
        return TableFacts(files=source.manifest.num_files, size_bytes=total or None, told_by=told_by)
    if hint is not None and hint.num_of_add_files is not None:
        told_by = f"the hint of checkpoint {snapshot.segment.floor:,}"
        return TableFacts(files=hint.num_of_add_files, size_bytes=None, told_by=told_by)
    return TableFacts(files=None, size_bytes=None, told_by=None)


def _number(text: str | None, usual: int) -> int:
    return int(text) if text is not None and text.isdecimal() else usual
