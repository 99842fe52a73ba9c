"""What lies in a sidecar's folder, each manifest judged against the log and the parts at hand.

Why: `show` tells it, `clean` decides by it, `verify` starts from it.
Contract: one listing of the log, then one of the folder, then one read per manifest. A manifest is valid if
it can be read, belongs to the log, and every part that it names is there in its size; otherwise `problem`
says why not. No part is opened.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import closing
from enum import Enum

import msgspec

from lazydelta.log.segment import LogListing, build_segment, list_log
from lazydelta.sidecar.format.binding import delta_mismatch, foreign_reason
from lazydelta.sidecar.format.config import SidecarConfig
from lazydelta.sidecar.format.damage import DamagedSidecarError
from lazydelta.sidecar.format.delta_file import DeltaFacts, DeltaFileReader
from lazydelta.sidecar.format.folder import ListedFile, SidecarListing, list_sidecars, read_manifest
from lazydelta.sidecar.format.manifest import FORMAT, Manifest, format_of
from lazydelta.sidecar.format.names import parse_name
from lazydelta.storage import ObjectInfo, ObjectNotFoundError, Storage
from lazydelta.upkeep.build_plan import missing_part

# How a local put names its file before it is linked into place.
_TEMPORARY = re.compile(r"^\.(?P<name>.+)\.[0-9a-f]{32}\.tmp$")


class Flaw(Enum):
    """Why a manifest does not count."""

    UNREADABLE = "unreadable"
    FOREIGN_FORMAT = "foreign format"
    UNBOUND = "unbound"
    INCOMPLETE = "incomplete"


class ListedManifest(msgspec.Struct, frozen=True, kw_only=True):
    """A manifest, and what keeps it from being used, if anything does."""

    version: int
    info: ObjectInfo
    manifest: Manifest | None = None
    flaw: Flaw | None = None
    problem: str | None = None

    @property
    def is_valid(self) -> bool:
        """Whether a reader may use it."""
        return self.flaw is None

    @property
    def references(self) -> frozenset[str]:
        """Base names of the part files that it names."""
        return frozenset() if self.manifest is None else frozenset(part_sizes(self.manifest))


class DeltaState(msgspec.Struct, frozen=True, kw_only=True):
    """A delta file's facts, where they can be read, and what keeps it from being used."""

    facts: DeltaFacts | None = None
    problem: str | None = None


class Inventory(msgspec.Struct, frozen=True, kw_only=True):
    """The folder, sorted by what its files are."""

    folder: str
    log: LogListing
    listing: SidecarListing
    manifests: tuple[ListedManifest, ...]  # ascending by version
    temporary: tuple[ObjectInfo, ...]  # of writers that were killed, or are at it
    strangers: tuple[ObjectInfo, ...]  # none of ours

    @property
    def parts(self) -> Mapping[str, ListedFile]:
        """Files of parts, by base name."""
        return self.listing.parts

    @property
    def deltas(self) -> tuple[ListedFile, ...]:
        """Delta files, by their versions."""
        return self.listing.deltas

    @property
    def newest_valid(self) -> ListedManifest | None:
        """The manifest that readers of the newest version use."""
        return next((entry for entry in reversed(self.manifests) if entry.is_valid), None)


def take_inventory(storage: Storage, config: SidecarConfig) -> Inventory:
    """List the folder and judge every manifest in it; an error where there is no table."""
    log = list_log(storage)
    if log.newest is None:
        build_segment(log, storage.root, version=None)  # raises: there is no table here
    listing = list_sidecars(storage, config.folder)
    is_ours = [_is_temporary(base_name(info)) for info in listing.temporary]
    unsure = list(zip(listing.temporary, is_ours, strict=True))
    judged = (_judged(storage, config.folder, file, log, listing) for file in listing.manifests.values())
    return Inventory(
        folder=config.folder,
        log=log,
        listing=listing,
        manifests=tuple(entry for entry in judged if entry is not None),
        temporary=tuple(info for info, ours in unsure if ours),
        strangers=(*listing.strangers, *(info for info, ours in unsure if not ours)),
    )


def part_sizes(manifest: Manifest) -> dict[str, int]:
    """Every file that the manifest names, both halves of split parts, with its size."""
    sizes = {part.file: part.size_bytes for part in manifest.parts}
    halves = {
        part.stats_file: part.stats_size_bytes for part in manifest.parts if part.stats_file is not None
    }
    return sizes | halves


def delta_state(storage: Storage, file: ListedFile, log: LogListing) -> DeltaState:
    """What a delta file says of itself, and whether it is bound to the log; its footer is read."""
    with closing(DeltaFileReader(storage, file.info.name, file.info.size_bytes)) as reader:
        try:
            facts = reader.facts
        except DamagedSidecarError as damage:
            return DeltaState(problem=damage.what)
    if (facts.checkpoint_version, facts.until) != (file.parsed.version, file.parsed.until):
        return DeltaState(facts=facts, problem="it is not of the versions that its name tells")
    return DeltaState(facts=facts, problem=delta_mismatch(storage, facts, log.commits))


def base_name(info: ObjectInfo) -> str:
    """The name without its folder."""
    return info.name.rpartition("/")[2]


def _judged(
    storage: Storage, folder: str, file: ListedFile, log: LogListing, listing: SidecarListing
) -> ListedManifest | None:
    """The manifest with what is wrong with it; None where it has gone meanwhile."""
    entry = ListedManifest(version=file.parsed.version, info=file.info)
    try:
        manifest = read_manifest(storage, folder, entry.version)
    except ObjectNotFoundError:
        return None
    except DamagedSidecarError as damage:
        flaw = Flaw.FOREIGN_FORMAT if _is_foreign(storage, file.info.name) else Flaw.UNREADABLE
        return msgspec.structs.replace(entry, flaw=flaw, problem=damage.what)
    entry = msgspec.structs.replace(entry, manifest=manifest)
    if (foreign := foreign_reason(storage, manifest, log)) is not None:
        return msgspec.structs.replace(entry, flaw=Flaw.UNBOUND, problem=foreign)
    if (missing := missing_part(manifest, listing)) is not None:
        return msgspec.structs.replace(entry, flaw=Flaw.INCOMPLETE, problem=missing)
    return entry


def _is_foreign(storage: Storage, name: str) -> bool:
    try:
        return format_of(storage.get(name)) != FORMAT
    except (ObjectNotFoundError, msgspec.DecodeError, UnicodeDecodeError):
        return False


def _is_temporary(name: str) -> bool:
    match = _TEMPORARY.match(name)
    return match is not None and parse_name(match["name"]) is not None
