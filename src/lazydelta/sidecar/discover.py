"""The best source of the files at a checkpoint's version: its sidecar, where one is there and proves itself.

Tiers: the manifest, fetched by its exact name beside the listing that pins the version; the footers of one
complete build; a plain `vN.parquet`; else the checkpoint.
Contract: no extra round trip where there is a manifest. Nothing here is ever an error to the user: what is
missing is passed over, what is there but torn, stale or of another log is passed over and told as a fallback.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

from lazydelta import limits
from lazydelta.errors import LazyDeltaError
from lazydelta.log.companion import FloorState
from lazydelta.log.segment import LogSegment
from lazydelta.sidecar.binding import mismatch
from lazydelta.sidecar.damage import DamagedSidecarError
from lazydelta.sidecar.folder import read_manifest
from lazydelta.sidecar.manifest import Manifest, Part
from lazydelta.sidecar.memory import SidecarMemory
from lazydelta.sidecar.part_reader import PartReader
from lazydelta.sidecar.reading import NOTHING, Discovery, MetadataSource, MetadataTier, SidecarReading
from lazydelta.storage import ObjectNotFoundError, Storage
from lazydelta.telemetry import log_event

_WORKERS = 4


class SidecarAwareProvider:
    """Looks for the sidecar of one table while the log is read. `FloorCompanion` of an opening."""

    def __init__(self, storage: Storage, reading: SidecarReading, memory: SidecarMemory) -> None:
        self.reading = reading
        self.memory = memory
        self._storage = storage
        self._manifests: dict[int, Future[Manifest]] = {}
        self._segment: LogSegment | None = None
        self._found: Future[Discovery] | None = None
        self._pool: ThreadPoolExecutor | None = None

    def hinted(self, version: int) -> None:
        """Ask for the manifest of the checkpoint that the hint names, beside the listing."""
        if self.reading.is_enabled and self.reading.uses_manifest:
            self._manifest_of(version)

    def pinned(self, segment: LogSegment) -> None:
        """Judge the sidecar of the segment's checkpoint while the state is read."""
        self._segment = segment
        if not self.reading.is_enabled or segment.checkpoint is None:
            self._found = None
        else:
            self._manifest_of(segment.floor)
            self._found = self._workers().submit(self._discovered, segment)
        self._close_workers()

    def state(self) -> FloorState | None:
        """Protocol and metadata by the manifest, once it is proven to belong to the log."""
        source = self.discover().source
        if source is None or source.tier is not MetadataTier.MANIFEST:
            return None
        manifest = source.manifest
        told = f"sidecar {manifest.version}"
        return FloorState(protocol=manifest.protocol, metadata=manifest.metadata, source=told)

    def discover(self) -> Discovery:
        """What the files at the pinned checkpoint are best read from."""
        return NOTHING if self._found is None else self._found.result()

    def _discovered(self, segment: LogSegment) -> Discovery:
        assert segment.checkpoint is not None
        version = segment.floor
        try:
            manifest = self._manifest_of(version).result()
            reason = mismatch(
                self._storage,
                manifest,
                checkpoint=segment.checkpoint,
                commit=segment.checkpoint_commit,
                crc=next((crc for crc in segment.crcs if crc.version == version), None),
            )
        except ObjectNotFoundError:
            return NOTHING
        except LazyDeltaError as trouble:
            return self._fallback(f"the sidecar of checkpoint {version} cannot be used: {trouble.what}")
        if reason is not None:
            return self._fallback(f"the sidecar of checkpoint {version} is of another log: {reason}")
        self._read_newest_footers(manifest)
        source = MetadataSource(tier=MetadataTier.MANIFEST, folder=self.reading.folder, manifest=manifest)
        return Discovery(source=source, reason=f"checkpoint {version} has a sidecar")

    def _fallback(self, reason: str) -> Discovery:
        log_event("fallback", table=self._storage.root, reason=reason)
        return Discovery(source=None, reason=reason, fallbacks=(reason,))

    def _read_newest_footers(self, manifest: Manifest) -> None:
        """Most queries ask for the newest period: the footers they need come while the state is read."""
        parts = _newest_parts(manifest)
        room = limits.SIDECAR_FOOTERS_AHEAD_BYTES
        for part in parts:
            room -= part.footer_bytes
            if room < 0:
                return
            reader = PartReader(self._storage, self.reading.folder, part)
            try:
                footer = reader.metadata
            except (DamagedSidecarError, LazyDeltaError):
                return  # who needs the part will meet it, and say so
            finally:
                reader.close()
            name = f"{self.reading.folder}/{part.file}"
            self.memory.keep_footer(name, footer, part.footer_bytes, is_ahead=True)

    def _manifest_of(self, version: int) -> Future[Manifest]:
        if version not in self._manifests:
            self._manifests[version] = self._workers().submit(
                read_manifest, self._storage, self.reading.folder, version
            )
        return self._manifests[version]

    def _workers(self) -> ThreadPoolExecutor:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(_WORKERS, thread_name_prefix="lazydelta-discover")
        return self._pool

    def _close_workers(self) -> None:
        """What is under way goes on; the threads end with it."""
        if self._pool is not None:
            self._pool.shutdown(wait=False)
            self._pool = None


def _newest_parts(manifest: Manifest) -> list[Part]:
    """The parts that reach to the newest period, the smallest first."""
    newest = max((part.order_max for part in manifest.parts if part.order_max is not None), default=None)
    return sorted(
        (part for part in manifest.parts if newest is not None and part.order_max == newest),
        key=lambda part: part.footer_bytes,
    )
