"""Which row groups of a sidecar a scan reads, in which order, and how many at once.

Contract: newest period first, as far as the manifest tells periods; a row group that its own bounds or those
of its part rule out is left out. Where the manifest lists parts only, their footers are asked, part by part.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lazydelta.protocol.value_text import values_from_text
from lazydelta.sidecar.format.folder import row_group_places
from lazydelta.sidecar.format.manifest import Manifest
from lazydelta.sidecar.read.pruner import Pruner


class RowUnit(msgspec.Struct, frozen=True):
    """One row group of one part."""

    part: int  # position in the manifest
    row_group: int  # within the part


class Run(msgspec.Struct, frozen=True):
    """Row groups of one part that are read at once, in this order."""

    part: int
    row_groups: tuple[int, ...]


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What to read."""

    parts: tuple[int, ...]  # to be read, newest first
    units: tuple[RowUnit, ...] | None  # newest first; None where the manifest lists parts only: all of theirs
    row_groups_skipped: int  # ruled out by the manifest


def plan_reads(manifest: Manifest, pruner: Pruner | None) -> Plan:
    """What the manifest does not rule out."""
    parts = np.ones(len(manifest.parts), bool) if pruner is None else pruner.parts(manifest)
    parts &= np.array([part.num_live > 0 for part in manifest.parts], bool)
    newest = _newest_first([part.order_max for part in manifest.parts], manifest.order_type)
    ordered = tuple(at for at in newest.to_pylist() if parts[at])
    if not manifest.row_groups:
        kept = sum(manifest.parts[at].num_row_groups for at in ordered)
        return Plan(parts=ordered, units=None, row_groups_skipped=manifest.num_row_groups - kept)
    units = _units(manifest, parts, pruner)
    in_use = {unit.part for unit in units}
    return Plan(
        parts=tuple(part for part in ordered if part in in_use),
        units=units,
        row_groups_skipped=manifest.num_row_groups - len(units),
    )


def runs_of(units: Iterable[RowUnit], row_groups_max: int) -> Iterator[Run]:
    """Neighbours of one part together; the first run is short, because somebody waits for it."""
    part, limit = -1, 1
    groups: list[int] = []
    for unit in units:
        if groups and (unit.part != part or len(groups) >= limit):
            yield Run(part, tuple(groups))
            groups, limit = [], row_groups_max
        part = unit.part
        groups.append(unit.row_group)
    if groups:
        yield Run(part, tuple(groups))


def _units(manifest: Manifest, parts: Sequence[bool], pruner: Pruner | None) -> tuple[RowUnit, ...]:
    groups = manifest.row_groups
    places = row_group_places(manifest)
    left = [at for at, group in enumerate(groups) if parts[group.part]]
    if pruner is not None:
        kept = pruner.row_groups(manifest, [groups[at] for at in left])
        left = [at for at, is_kept in zip(left, kept, strict=True) if is_kept]
    newest = _newest_first([groups[at].event_hour_max for at in left], manifest.order_type)
    return tuple(RowUnit(*places[left[at]]) for at in newest.to_pylist())


def _newest_first(texts: Sequence[str | None], type_name: str | None) -> pa.UInt64Array:
    """Positions by descending value; what has none comes last, equals in reverse."""
    values = values_from_text(pa.array(texts, pa.string()), type_name or "string")
    rows = pa.RecordBatch.from_arrays([values, pa.array(range(len(texts)), pa.int64())], ["value", "at"])
    keys = [("value", "descending", "at_end"), ("at", "descending", "at_end")]
    return pc.sort_indices(rows, sort_keys=keys)
