"""The search for a sidecar where no manifest serves: footers, a plain file, one of an older checkpoint.

Contract: two listings side by side; nothing else where they show nothing. Of what is there the best that
proves itself is taken; what does not is told. Nothing here is an error to the user: a store that fails is a
reason to read the checkpoint, and `is_lasting` is False, so that the next scan may look again.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import TypeVar

from lazydelta.errors import LazyDeltaError, StorageError
from lazydelta.log.checkpoint import CheckpointReader
from lazydelta.log.fallback import Fallback, fell_back, kind_of_loss
from lazydelta.log.segment import LogSegment
from lazydelta.protocol.actions import Metadata, Protocol
from lazydelta.sidecar.find.older import older_sidecar
from lazydelta.sidecar.find.plain import list_plain, plain_source
from lazydelta.sidecar.find.whole_build import builds_of, manifest_of_build
from lazydelta.sidecar.format.binding import segment_mismatch
from lazydelta.sidecar.format.damage import damaged
from lazydelta.sidecar.format.folder import ListedFile, SidecarListing, list_sidecars
from lazydelta.sidecar.format.manifest import Manifest
from lazydelta.sidecar.format.memory import SidecarMemory
from lazydelta.sidecar.read.reading import (
    NOTHING,
    Discovery,
    MetadataSource,
    MetadataTier,
    OlderSidecar,
    SidecarReading,
)
from lazydelta.storage import ObjectInfo, Storage
from lazydelta.storage.worker_threads import WorkerThreads

_TRIED_MAX = 3  # builds of the checkpoint, and earlier sidecars, that are looked at
Found = TypeVar("Found")
_AskState = Callable[[], tuple[Protocol, Metadata]]


class SidecarSearch:
    """One search for the sidecar of one segment's checkpoint; parts of the build `refused` are left aside."""

    def __init__(
        self,
        storage: Storage,
        segment: LogSegment,
        reading: SidecarReading,
        memory: SidecarMemory,
        *,
        refused: str | None = None,
    ) -> None:
        self._storage = storage
        self._segment = segment
        self._reading = reading
        self._memory = memory
        self._refused = refused
        self._fallbacks: list[Fallback] = []
        self._is_lasting = True

    def run(self) -> Discovery:
        """The best of what is there."""
        version = self._segment.floor
        listing, plain = self._listings()
        builds = {} if listing is None else builds_of(listing, version)
        builds.pop(self._refused or "", None)
        source = self._of_this_checkpoint(list(builds.values())[:_TRIED_MAX], (plain or {}).get(version))
        older = None if source is not None else self._older(listing)
        reason = NOTHING.reason
        if source is not None:
            reason = f"checkpoint {version} has a sidecar"
        elif self._fallbacks:
            reason = self._fallbacks[-1].text
        return Discovery(
            source=source,
            reason=reason,
            fallbacks=tuple(self._fallbacks),
            older=older,
            is_lasting=self._is_lasting,
        )

    def _listings(self) -> tuple[SidecarListing | None, dict[int, ObjectInfo] | None]:
        with WorkerThreads(2, thread_name_prefix="lazydelta-discover") as pool:
            ours = pool.submit(list_sidecars, self._storage, self._reading.folder)
            plain = pool.submit(list_plain, self._storage)
        return (
            self._tried("the sidecar's folder cannot be listed", ours.result),
            self._tried("the folder of plain sidecars cannot be listed", plain.result),
        )

    def _of_this_checkpoint(
        self, builds: list[list[ListedFile]], plain: ObjectInfo | None
    ) -> MetadataSource | None:
        if not builds and plain is None:
            return None
        version, files = self._segment.floor, self._segment.checkpoint
        assert files is not None
        with (
            closing(CheckpointReader(self._storage, files)) as checkpoint,
            WorkerThreads(1, thread_name_prefix="lazydelta-discover") as beside,
        ):
            state = beside.submit(_state, checkpoint).result
            for build in builds:
                told = f"the parts at checkpoint {version} cannot be used"
                manifest = self._tried(told, partial(self._by_footers, build, state))
                if manifest is not None:
                    folder = self._reading.folder
                    return MetadataSource(tier=MetadataTier.FOOTERS, folder=folder, manifest=manifest)
            if plain is None:
                return None
            told = f"the plain sidecar of checkpoint {version} cannot be used"
            return self._tried(told, partial(self._by_plain, plain, checkpoint, state))

    def _by_footers(self, build: list[ListedFile], state: _AskState) -> Manifest:
        storage, segment = self._storage, self._segment
        manifest = manifest_of_build(storage, self._reading.folder, build, state=state, memory=self._memory)
        reason = segment_mismatch(storage, manifest, segment)
        if reason is not None:
            raise damaged(f"they are of another log: {reason}", storage.root)
        return manifest

    def _by_plain(self, plain: ObjectInfo, checkpoint: CheckpointReader, state: _AskState) -> MetadataSource:
        protocol, metadata = state()
        return plain_source(
            self._storage, plain, self._segment, checkpoint, protocol=protocol, metadata=metadata
        )

    def _older(self, listing: SidecarListing | None) -> OlderSidecar | None:
        if listing is None or not self._reading.uses_manifest:
            return None
        earlier = [version for version in listing.manifests if version < self._segment.floor]
        for version in sorted(earlier, reverse=True)[:_TRIED_MAX]:
            told = (
                f"the sidecar of version {version}, before checkpoint {self._segment.floor}, cannot be used"
            )
            attempt = partial(
                older_sidecar, self._storage, self._reading.folder, self._segment, version=version
            )
            found = self._tried(told, attempt)
            if found is not None:
                return found
        return None

    def _tried(self, told: str, attempt: Callable[[], Found]) -> Found | None:
        """The answer; or None, and what went wrong is told."""
        try:
            return attempt()
        except LazyDeltaError as trouble:
            text = f"{told}: {trouble.what}"
            self._fallbacks.append(fell_back(self._storage.root, kind_of_loss(trouble), text))
            self._is_lasting &= not isinstance(trouble, StorageError)
            return None


def _state(checkpoint: CheckpointReader) -> tuple[Protocol, Metadata]:
    protocol, metadata = checkpoint.state()
    if protocol is None or metadata is None:
        raise damaged("it has no protocol or no metaData action", f"checkpoint {checkpoint.version}")
    return protocol, metadata
