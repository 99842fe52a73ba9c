"""Which row groups of the sidecar a scan would read: told without reading one.

Contract: by the manifest, and by footers of parts where the manifest lists parts alone; the same code decides
when the scan runs.
"""

from __future__ import annotations

import msgspec
import numpy as np

from lazydelta.scan.scanner import FileScan
from lazydelta.sidecar.read.pruner import pruners_of
from lazydelta.sidecar.read.public_rows import RowShape
from lazydelta.sidecar.read.reader import SidecarReader, SidecarRequest

_SHAPE = RowShape(columns=("path",))


class RowGroupVerdicts(msgspec.Struct, frozen=True, kw_only=True):
    """Row groups in the manifest's order, neighbours in bins where there are many."""

    parts: int
    row_groups: int
    row_groups_read: int
    bins: list[tuple[int, int]]  # row groups, and those of them that are read


def row_group_verdicts(scan: FileScan, *, bins_max: int) -> RowGroupVerdicts | None:
    """What the scan would read of its sidecar; None where it has none."""
    provider = scan.sidecar
    source = None if provider is None else provider.discover().source
    if provider is None or source is None:
        return None
    manifest = source.manifest
    request = SidecarRequest(shape=_SHAPE, pruners=pruners_of(scan.predicate))
    reader = SidecarReader(
        scan.snapshot.storage, source, request, reading=provider.reading, memory=provider.memory
    )
    firsts = np.cumsum([0, *(part.num_row_groups for part in manifest.parts)])
    total = int(firsts[-1])
    is_read = np.zeros(total, bool)
    for unit in reader.planned():
        is_read[firsts[unit.part] + unit.row_group] = True
    bins = min(total, bins_max)
    places = np.arange(total) * bins // max(total, 1)
    counts, read = np.bincount(places, minlength=bins), np.bincount(places[is_read], minlength=bins)
    return RowGroupVerdicts(
        parts=len(manifest.parts),
        row_groups=total,
        row_groups_read=int(is_read.sum()),
        bins=list(zip(counts.tolist(), read.tolist(), strict=True)),
    )
