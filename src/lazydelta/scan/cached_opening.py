"""Open a table with what is known of it: one listing where nothing changed, none where that is allowed.

Contract: the version is never older than a listing that began within `max_staleness_seconds` before the call
(0: during the call); everything in a snapshot belongs to the one version. A new commit costs that commit, a
new checkpoint what a first opening costs.
"""

from __future__ import annotations

import time

import msgspec

from lazydelta.errors import TableNotFoundError
from lazydelta.log.relisting import find_segment_again
from lazydelta.log.segment import LogSegment, find_segment
from lazydelta.log.snapshot import Snapshot, pin_snapshot
from lazydelta.log.state_since import KnownState
from lazydelta.scan.table_memory import TableMemory
from lazydelta.sidecar.discover import SidecarAwareProvider
from lazydelta.sidecar.reading import Discovery, SidecarReading
from lazydelta.storage import Storage


class RememberingProvider(SidecarAwareProvider):
    """Looks for a sidecar only where none is known of the very same checkpoint."""

    def __init__(self, storage: Storage, reading: SidecarReading, memory: TableMemory) -> None:
        super().__init__(storage, reading, memory)
        self._table = memory
        self._known: Discovery | None = None
        self._began = 0.0
        self._asked: LogSegment | None = None

    def pinned(self, segment: LogSegment) -> None:
        """Take what is known of the segment's checkpoint, or look."""
        self._began = time.monotonic()
        self._asked = segment
        self._known = None if segment.checkpoint is None else self._table.discovery(segment, self.reading)
        if self._known is None:
            super().pinned(segment)

    def discover(self) -> Discovery:
        """What is known, else what was found."""
        if self._known is None:
            found = super().discover()
            if self._asked is not None and self._asked.checkpoint is not None and self.reading.is_enabled:
                self._table.keep_discovery(self._asked, self.reading, found, began=self._began)
            self._known = found
        return self._known


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
        return msgspec.structs.replace(
            known, storage=storage, opening=storage.counters.snapshot(), commits_kept={}
        )
    snapshot = pin_snapshot(
        storage,
        segment,
        parallelism=parallelism,
        companion=companion,
        since=_known_state(memory, older),
    )
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
            is_known = memory.has_sidecar(older, companion.reading)
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
