"""What sidecars a table has: versions, parts, levels, ranges, sizes, and whether they belong to its log.

Contract: two listings, one read per manifest and delta file's footer; no part is opened. Rows are plain data,
for a table on a terminal, lines on a pipe, or JSON.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lazydelta.log.segment import LogListing
from lazydelta.protocol.value_text import values_from_text
from lazydelta.sidecar.format.bound_text import bound_text
from lazydelta.sidecar.format.config import SidecarConfig
from lazydelta.sidecar.format.folder import ListedFile
from lazydelta.sidecar.format.manifest import Manifest, Part
from lazydelta.storage import Storage
from lazydelta.upkeep.inventory import Inventory, ListedManifest, base_name, delta_state, take_inventory


class PartSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One part, as its manifest tells of it."""

    file: str
    stats_file: str | None
    level: int  # 0 is the top: full parts
    rows: int
    removed_rows: int
    row_groups: int
    size_bytes: int  # both halves of a split part
    order_min: str | None
    order_max: str | None
    is_of_this_build: bool  # else it was written for an earlier version


class SidecarSummary(msgspec.Struct, frozen=True, kw_only=True, tag="sidecar", tag_field="kind"):
    """The sidecar of one version. What a manifest that cannot be read would say is null."""

    version: int
    file: str
    modified_ms: int
    is_valid: bool  # readers of this table may use it
    problem: str | None  # why not
    num_files: int | None = None
    removed_rows: int | None = None
    row_groups: int | None = None
    size_bytes: int | None = None  # of all parts
    order_column: str | None = None
    order_min: str | None = None
    order_max: str | None = None
    parts: tuple[PartSummary, ...] = ()


class DeltaSummary(msgspec.Struct, frozen=True, kw_only=True, tag="delta", tag_field="kind"):
    """Commits gathered between two checkpoints."""

    version: int  # of the checkpoint below it
    until: int
    file: str
    modified_ms: int
    size_bytes: int
    is_valid: bool  # bound to the commit of the log that it ends with
    problem: str | None  # why not
    after: int | None = None  # the last version before those in it
    rows: int | None = None


class FolderSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A sidecar's folder."""

    folder: str
    sidecars: tuple[SidecarSummary, ...]  # ascending by version
    deltas: tuple[DeltaSummary, ...]
    unreferenced_parts: int  # of builds under way, killed, or cleaned up later
    temporary_files: int
    strangers: int


def describe_sidecars(storage: Storage, config: SidecarConfig) -> FolderSummary:
    """Everything in the folder, judged against the log at hand."""
    inventory = take_inventory(storage, config)
    referenced = {name for entry in inventory.manifests for name in entry.references}
    return FolderSummary(
        folder=config.folder,
        sidecars=tuple(_sidecar(entry, config) for entry in inventory.manifests),
        deltas=tuple(_delta(storage, file, inventory.log) for file in inventory.deltas),
        unreferenced_parts=_unreferenced(inventory, referenced),
        temporary_files=len(inventory.temporary),
        strangers=len(inventory.strangers),
    )


def _unreferenced(inventory: Inventory, referenced: set[str]) -> int:
    return sum(name not in referenced for name in inventory.parts)


def _sidecar(entry: ListedManifest, config: SidecarConfig) -> SidecarSummary:
    summary = SidecarSummary(
        version=entry.version,
        file=base_name(entry.info),
        modified_ms=entry.info.modified_ms,
        is_valid=entry.is_valid,
        problem=entry.problem,
    )
    manifest = entry.manifest
    if manifest is None:
        return summary
    full_rows = max(
        [config.row_group_rows * config.row_groups_max, *(part.num_live for part in manifest.parts)]
    )
    parts = tuple(_part(part, manifest, config, full_rows=full_rows) for part in manifest.parts)
    lows = [part.order_min for part in parts if part.order_min is not None]
    highs = [part.order_max for part in parts if part.order_max is not None]
    return msgspec.structs.replace(
        summary,
        num_files=manifest.num_files,
        removed_rows=sum(part.removed_rows for part in parts),
        row_groups=manifest.num_row_groups,
        size_bytes=manifest.sidecar_size_bytes,
        order_column=manifest.order_column,
        order_min=_extreme(lows, manifest.order_type, is_least=True),
        order_max=_extreme(highs, manifest.order_type, is_least=False),
        parts=parts,
    )


def _part(part: Part, manifest: Manifest, config: SidecarConfig, *, full_rows: int) -> PartSummary:
    return PartSummary(
        file=part.file,
        stats_file=part.stats_file,
        level=_level(part.num_live, full_rows, config.level_ratio),
        rows=part.num_rows,
        removed_rows=part.removed_count,
        row_groups=part.num_row_groups,
        size_bytes=part.size_bytes + part.stats_size_bytes,
        order_min=part.order_min,
        order_max=part.order_max,
        is_of_this_build=part.build == manifest.build,
    )


def _level(rows: int, full_rows: int, ratio: int) -> int:
    level, capacity = 0, full_rows // ratio
    while rows <= capacity and capacity > 0:
        level, capacity = level + 1, capacity // ratio
    return level


def _extreme(texts: Sequence[str], order_type: str | None, *, is_least: bool) -> str | None:
    """The least or greatest of some values, by their type; None where one of them is no value of it."""
    if order_type is None or not texts:
        return None
    try:
        values = values_from_text(pa.array(texts, pa.string()), order_type)
    except KeyError:  # a manifest may say anything
        return None
    if values.null_count:
        return None
    at = int(np.asarray(pc.sort_indices(values))[0 if is_least else -1])
    return bound_text(values[at])


def _delta(storage: Storage, file: ListedFile, log: LogListing) -> DeltaSummary:
    assert file.parsed.until is not None, "the name of a delta file has two versions"
    state = delta_state(storage, file, log)
    return DeltaSummary(
        version=file.parsed.version,
        until=file.parsed.until,
        file=base_name(file.info),
        modified_ms=file.info.modified_ms,
        size_bytes=file.info.size_bytes,
        is_valid=state.problem is None,
        problem=state.problem,
        after=None if state.facts is None else state.facts.after,
        rows=None if state.facts is None else state.facts.num_rows,
    )
