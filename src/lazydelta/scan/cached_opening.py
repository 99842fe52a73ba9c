"""Open a table with what is known of it: one listing where nothing changed, none where that is allowed.

Contract: the version is never older than a listing that began within `max_staleness_seconds` before the call
(0: during the call); everything in a snapshot belongs to the one version. A new commit costs that commit, a
new checkpoint what a first opening costs.
"""

from __future__ import annotations

import time

import msgspec

from lazydelta.errors import TableNotFoundError
from lazydelta.log.commits import CommitVanishedError
from lazydelta.log.parquet_part import CheckpointVanishedError
from lazydelta.log.relisting import find_segment_again
from lazydelta.log.segment import LogSegment, find_segment
from lazydelta.log.snapshot import Snapshot, pin_snapshot
from lazydelta.log.state_since import KnownState
from lazydelta.scan.table_memory import TableMemory
from lazydelta.sidecar.find.discover import SidecarAwareProvider
from lazydelta.sidecar.read.reading import Discovery, SidecarReading
from lazydelta.storage import Deadline, Storage
from lazydelta.storage.deadline import NEVER

_BY_MANIFEST = "by the manifest"


class RememberingProvider(SidecarAwareProvider):
    """Looks for a sidecar only where none is known of the very same checkpoint."""

    def __init__(self, storage: Storage, reading: SidecarReading, memory: TableMemory) -> None:
        super().__init__(storage, reading, memory)
        self._table = memory
        self._began = 0.0
        self._known_manifest: Discovery | None = None
        self._known: Discovery | None = None

    def pinned(self, segment: LogSegment) -> None:
        """Take what is known of the segment's checkpoint, or look."""
        self._began = time.monotonic()
        self._known = None
        self._known_manifest = self._remembered(segment, _BY_MANIFEST)
        if self._known_manifest is None:
            super().pinned(segment)
        else:
            self._begin_anew(segment)
            self._close_workers()

    def by_manifest(self, deadline: Deadline = NEVER) -> Discovery:
        """What is known of the manifest, else what it tells."""
        if self._known_manifest is None:
            self._known_manifest = super().by_manifest(deadline)
            self._remember(_BY_MANIFEST, self._known_manifest)
        return self._known_manifest

    def discover(self, storage: Storage | None = None, deadline: Deadline = NEVER) -> Discovery:
        """The same of every place where a sidecar may be."""
        if self._known is not None:
            return self._known
        place = f"anywhere, of the table {self._table_id}"
        known = None if self._segment is None else self._remembered(self._segment, place)
        if known is None:
            known = super().discover(storage, deadline)
            self._remember(place, known)
        if known.is_lasting:
            self._known = known
        return known

    def _remembered(self, segment: LogSegment, place: str) -> Discovery | None:
        if segment.checkpoint is None or not self.reading.is_enabled:
            return None
        return self._table.discovery(segment, self.reading, place)

    def _remember(self, place: str, found: Discovery) -> None:
        segment = self._segment
        if found.is_lasting and segment is not None and segment.checkpoint is not None:
            self._table.keep_discovery(segment, self.reading, place, found, began=self._began)


def open_cached(
    storage: Storage,
    memory: TableMemory,
    companion: RememberingProvider,
    *,
    version: int | None,
    parallelism: int,
) -> Snapshot:
    """The snapshot of `version` (the newest when None), read only as far as it is not known."""
    segment = memory.fresh_segment(version)
    older: LogSegment | None = None
    if segment is None:
        older = memory.known_segment(version)
        segment = _listed(storage, memory, companion, version, older)
    known = memory.snapshot(segment)
    if known is not None:
        companion.pinned(segment)
        companion.opened(known.state.metadata)
        return msgspec.structs.replace(
            known,
            storage=storage,
            opening=storage.counters,
            opening_round_trips=storage.counters.snapshot().round_trips,
            commits_kept={},
        )
    since = _known_state(memory, older)
    try:
        snapshot = pin_snapshot(storage, segment, parallelism=parallelism, companion=companion, since=since)
    except (CommitVanishedError, CheckpointVanishedError):
        if version is not None:
            raise
        segment = _listed(storage, memory, companion, None, None)  # the newest is another one by now
        snapshot = pin_snapshot(storage, segment, parallelism=parallelism, companion=companion)
    companion.opened(snapshot.state.metadata)
    memory.keep_snapshot(snapshot)
    return snapshot


def _listed(
    storage: Storage,
    memory: TableMemory,
    companion: RememberingProvider,
    version: int | None,
    older: LogSegment | None,
) -> LogSegment:
    began = time.monotonic()
    try:
        if older is None:
            segment = find_segment(storage, version, on_hint=companion.hinted)
        else:
            is_known = memory.has_discovery(older, companion.reading, _BY_MANIFEST)
            on_hint = (lambda _: None) if is_known else companion.hinted
            segment = find_segment_again(storage, older, version, on_hint=on_hint)
    except TableNotFoundError:
        memory.forget()
        raise
    memory.keep_segment(version, segment, began=began)
    return segment


def _known_state(memory: TableMemory, older: LogSegment | None) -> KnownState | None:
    """What the version said that was the newest when the log was listed before."""
    known = None if older is None else memory.known_snapshot(older.version)
    if known is None:
        return None
    return KnownState(segment=known.segment, state=known.state)
