"""The best source of the files at a checkpoint's version: its sidecar, where one is there and proves itself.

Tiers: the manifest, fetched by its exact name beside the listing that pins the version; the footers of one
complete build; a plain `vN.parquet`; else the checkpoint, or the sidecar of an older one (`search`).
Contract: no extra round trip where there is a manifest; where there is none nothing more is asked for until a
scan wants the files at the checkpoint. Nothing here is ever an error to the user: what is missing is passed
over, what is there but torn, stale or of another log is passed over and told as a fallback, logged once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, wait
from contextlib import closing, contextmanager, suppress
from functools import partial
from typing import Any

import msgspec

from lazydelta import limits
from lazydelta.errors import LazyDeltaError
from lazydelta.log.checkpoint import CheckpointReader
from lazydelta.log.companion import FloorState, TailState
from lazydelta.log.fallback import FallbackKind, fell_back, kind_of_loss
from lazydelta.log.segment import LogSegment
from lazydelta.protocol.actions import Metadata
from lazydelta.sidecar.find.delta_chain import DeltaChain
from lazydelta.sidecar.find.search import SidecarSearch
from lazydelta.sidecar.format.binding import segment_mismatch
from lazydelta.sidecar.format.folder import read_manifest
from lazydelta.sidecar.format.manifest import Manifest, Part
from lazydelta.sidecar.format.memory import SidecarMemory
from lazydelta.sidecar.format.part_reader import PartReader
from lazydelta.sidecar.read.reading import NOTHING, Discovery, MetadataSource, MetadataTier, SidecarReading
from lazydelta.storage import Deadline, ObjectNotFoundError, Storage, workers
from lazydelta.storage.deadline import NEVER
from lazydelta.storage.in_time import awaited

_WORKERS = 4  # manifests by the hint and by the listing, the judgement, the footers


class SidecarAwareProvider:
    """Looks for the sidecar of one table while the log is read. `FloorCompanion` of an opening."""

    def __init__(self, storage: Storage, reading: SidecarReading, memory: SidecarMemory) -> None:
        self.reading = reading
        self.memory = memory
        self._storage = storage
        self._manifests: dict[int, Future[Manifest]] = {}
        self._segment: LogSegment | None = None
        self._deltas: DeltaChain | None = None
        self._by_manifest: Future[Discovery] | None = None
        self._footers: Future[None] | None = None
        self._table_id: str | None = None  # at the pinned version
        self._refused: str | None = None  # the build of a manifest of another log
        self._found: Discovery | None = None
        self._looking = threading.Lock()
        self._begun: list[Future[Any]] = []  # Any: their results are asked for elsewhere
        self._pool: Executor | None = None

    def hinted(self, version: int) -> None:
        """Ask for the manifest of the checkpoint that the hint names, beside the listing."""
        if self.reading.is_enabled and self.reading.uses_manifest:
            self._manifest_of(version)

    def pinned(self, segment: LogSegment) -> None:
        """Judge the sidecar of the segment's checkpoint while the state is read."""
        self._begin_anew(segment)
        if self.reading.is_enabled and self.reading.uses_manifest and segment.checkpoint is not None:
            manifest = self._manifest_of(segment.floor)
            self._by_manifest = self._workers().submit(self._judged, self._storage, segment, manifest.result)
            self._footers = self._workers().submit(self._read_newest_footers, manifest)
            self._begun += [self._by_manifest, self._footers]
        self._close_workers()

    def state(self) -> FloorState | None:
        """Protocol and metadata by the manifest, once it is proven to belong to the log."""
        source = self.by_manifest().source
        if source is None:
            return None
        manifest = source.manifest
        told = f"sidecar {manifest.version}"
        return FloorState(protocol=manifest.protocol, metadata=manifest.metadata, source=told)

    def tail_states(self, segment: LogSegment) -> Sequence[TailState]:
        """Protocol and metadata of stretches of the tail, by delta files."""
        chain = self.deltas(segment)
        return () if chain is None else chain.states(self._storage)

    def deltas(self, segment: LogSegment) -> DeltaChain | None:
        """The delta files beside the pinned segment's checkpoint; scans share what was judged of them."""
        chain = self._deltas
        is_pinned = chain is not None and (chain.segment.floor, chain.segment.version) == (
            segment.floor,
            segment.version,
        )
        return chain if is_pinned and self.reading.is_enabled and segment.checkpoint is not None else None

    def opened(self, metadata: Metadata) -> None:
        """The metadata at the pinned version is known: its id is one more thing to agree with."""
        self._table_id = metadata.id

    def by_manifest(self, deadline: Deadline = NEVER) -> Discovery:
        """What the manifest of the pinned checkpoint is good for; asks for nothing that is not under way.

        Past the deadline of a scan it is waited for no longer: a `StorageError` says so.
        """
        if self._by_manifest is None:
            return NOTHING
        return awaited(self._by_manifest, deadline, self._storage.root)

    def settle(self) -> None:
        """Wait for what opening has asked for beside the log, whether anybody needed it or not."""
        wait(self._begun)

    def discover(self, storage: Storage | None = None, deadline: Deadline = NEVER) -> Discovery:
        """What the files at the pinned checkpoint are best read from, asked for through `storage`.

        The first call may list folders and read footers; later ones know, unless the store had failed.
        Past the deadline nothing is waited for, be it under way for the opening or for another scan.
        """
        with self._one_at_a_time(deadline):
            if self._found is None or not self._found.is_lasting:
                self._found = self._discovered(storage or self._storage, deadline)
            return self._found

    @contextmanager
    def _one_at_a_time(self, deadline: Deadline) -> Iterator[None]:
        if not self._looking.acquire(timeout=min(deadline.seconds_left(), threading.TIMEOUT_MAX)):
            raise deadline.passed(self._storage.root)
        try:
            yield
        finally:
            self._looking.release()

    def _begin_anew(self, segment: LogSegment) -> None:
        """Of this segment nothing is known yet."""
        self._segment = segment
        self._deltas = DeltaChain(segment, self.reading.folder)
        self._by_manifest = self._footers = self._found = self._refused = None

    def _discovered(self, storage: Storage, deadline: Deadline) -> Discovery:
        segment = self._segment
        if not self.reading.is_enabled or segment is None or segment.checkpoint is None:
            return NOTHING
        found = self.by_manifest(deadline)
        if not found.is_lasting:
            read = partial(read_manifest, storage, self.reading.folder, segment.floor)
            found = self._judged(storage, segment, read)
        found = self._of_same_table(storage, segment, found)
        if found.source is not None:
            if self._footers is not None:
                awaited(self._footers, deadline, storage.root)
            return found
        below = SidecarSearch(storage, segment, self.reading, self.memory, refused=self._refused).run()
        has_news = below.source is not None or below.fallbacks
        return msgspec.structs.replace(
            below,
            reason=below.reason if has_news else found.reason,
            fallbacks=(*found.fallbacks, *below.fallbacks),
            is_lasting=found.is_lasting and below.is_lasting,
        )

    def _judged(self, storage: Storage, segment: LogSegment, read: Callable[[], Manifest]) -> Discovery:
        assert segment.checkpoint is not None
        version = segment.floor
        try:
            manifest = read()
            reason = segment_mismatch(storage, manifest, segment)
        except ObjectNotFoundError:
            return NOTHING
        except LazyDeltaError as trouble:
            told = f"the sidecar of checkpoint {version} cannot be used: {trouble.what}"
            return self._fallback(kind_of_loss(trouble), told)
        if reason is not None:
            self._refused = manifest.build
            told = f"the sidecar of checkpoint {version} is of another log: {reason}"
            return self._fallback(FallbackKind.SIDECAR_FOREIGN, told)
        source = MetadataSource(tier=MetadataTier.MANIFEST, folder=self.reading.folder, manifest=manifest)
        return Discovery(source=source, reason=f"checkpoint {version} has a sidecar")

    def _of_same_table(self, storage: Storage, segment: LogSegment, found: Discovery) -> Discovery:
        """The table's id may have changed since the checkpoint; whether it has, the checkpoint tells."""
        if found.source is None or self._table_id in (None, found.source.manifest.table_id):
            return found
        assert segment.checkpoint is not None
        told = f"the sidecar of checkpoint {segment.floor} is of the table {found.source.manifest.table_id}"
        try:
            with closing(CheckpointReader(storage, segment.checkpoint)) as checkpoint:
                metadata = checkpoint.state()[1]
        except LazyDeltaError as trouble:
            told = f"{told}, perhaps not this one: {trouble.what}"
            return self._fallback(FallbackKind.SIDECAR_FOREIGN, told)
        if metadata is not None and metadata.id == found.source.manifest.table_id:
            return found
        self._refused = found.source.manifest.build
        return self._fallback(FallbackKind.SIDECAR_FOREIGN, f"{told}, not of this one")

    def _fallback(self, kind: FallbackKind, reason: str) -> Discovery:
        fallback = fell_back(self._storage.root, kind, reason)
        is_lasting = kind is not FallbackKind.SIDECAR_OUT_OF_REACH
        return Discovery(source=None, reason=reason, fallbacks=(fallback,), is_lasting=is_lasting)

    def _read_newest_footers(self, pending: Future[Manifest]) -> None:
        """Most queries ask for the newest period: the footers they need come while the state is read."""
        with suppress(LazyDeltaError):  # who needs a manifest or a part will meet its damage, and say so
            parts = _newest_parts(pending.result())
            if parts:
                with workers(self._storage, len(parts), "lazydelta-discover") as pool:
                    list(pool.map(self._read_footer, parts))

    def _read_footer(self, part: Part) -> None:
        with closing(PartReader(self._storage, self.reading.folder, part)) as reader:
            footer = reader.metadata
        name = f"{self.reading.folder}/{part.file}"
        self.memory.keep_footer(name, footer, part.footer_bytes, is_ahead=True)

    def _manifest_of(self, version: int) -> Future[Manifest]:
        if version not in self._manifests:
            self._manifests[version] = self._workers().submit(
                read_manifest, self._storage, self.reading.folder, version
            )
            self._begun.append(self._manifests[version])
        return self._manifests[version]

    def _workers(self) -> Executor:
        if self._pool is None:
            self._pool = workers(self._storage, _WORKERS, "lazydelta-discover")
        return self._pool

    def _close_workers(self) -> None:
        """What is under way goes on; the threads end with it."""
        if self._pool is not None:
            self._pool.shutdown(wait=False)
            self._pool = None


def _newest_parts(manifest: Manifest) -> Sequence[Part]:
    """The parts that reach to the newest period, the smallest first, as far as their footers have room."""
    newest = max((part.order_max for part in manifest.parts if part.order_max is not None), default=None)
    reaching = sorted(
        (part for part in manifest.parts if newest is not None and part.order_max == newest),
        key=lambda part: part.footer_bytes,
    )
    room = limits.SIDECAR_FOOTERS_AHEAD_BYTES
    found = []
    for part in reaching:
        room -= part.footer_bytes
        if room < 0:
            break
        found.append(part)
    return found
