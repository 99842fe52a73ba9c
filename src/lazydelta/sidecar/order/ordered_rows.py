"""A sidecar read in the order of its rows: its parts as sources of a lazy merge.

Why: parts overlap, because a build adds small ones for what is new; within a part the rows are sorted.
Contract: a part is opened, and a row group read, only when the order reaches it. After damage `handed_out`
tells which rows were given out before, so that nobody gives them out twice.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from contextlib import suppress

import msgspec
import pyarrow as pa

from lazydelta import limits
from lazydelta.errors import LazyDeltaError
from lazydelta.log.file_rows import RAW_PATH, Batches
from lazydelta.sidecar.format.folder import row_groups_by_part
from lazydelta.sidecar.format.manifest import RowGroup
from lazydelta.sidecar.format.memory import SidecarMemory
from lazydelta.sidecar.order.held_rows import rows_up_to
from lazydelta.sidecar.order.order_bounds import (
    part_bounds,
    parts_before,
    row_group_bounds,
    row_groups_before,
)
from lazydelta.sidecar.order.part_rows import OrderedRequest, PartRows
from lazydelta.sidecar.order.sort_keys import SortKey, backwards, before_all
from lazydelta.sidecar.read.public_rows import RowShape
from lazydelta.sidecar.read.reading import MetadataSource, MetadataTier, SidecarReading
from lazydelta.sidecar.read.row_group_loader import RowGroupLoader
from lazydelta.sidecar.read.row_group_plan import Plan, RowUnit, Run, plan_reads
from lazydelta.storage import Storage
from lazydelta.storage.worker_threads import WorkerThreads

_ROW_GROUP_ROWS_MAX = 8 * limits.SIDECAR_SLICE_ROWS  # a row group is held whole


def merge_obstacle(source: MetadataSource) -> str | None:
    """Why the rows of this sidecar cannot be merged as they lie; None where they can."""
    if source.tier not in {MetadataTier.MANIFEST, MetadataTier.FOOTERS}:
        return "a plain file promises no order"
    manifest = source.manifest
    rows = [group.num_rows for group in manifest.row_groups]
    rows += [-(-part.num_rows // max(part.num_row_groups, 1)) for part in manifest.parts]
    if max(rows, default=0) > _ROW_GROUP_ROWS_MAX:
        return f"its row groups have more than {_ROW_GROUP_ROWS_MAX:,} rows"
    return None


class OrderedRows:
    """One sidecar, one order. Counts as it goes."""

    def __init__(
        self,
        storage: Storage,
        source: MetadataSource,
        request: OrderedRequest,
        *,
        reading: SidecarReading,
        memory: SidecarMemory,
    ) -> None:
        self.source = source
        self._loader = RowGroupLoader(storage, source, reading=reading, memory=memory)
        self._request = request if reading.prunes else msgspec.structs.replace(request, pruner=None)
        self._units_read: list[RowUnit] = []
        self._released: tuple[SortKey | None, int] = (None, 0)  # up to where, of how many units
        self._parts_before: list[bool] = []
        if request.anchor is not None:
            self._parts_before = parts_before(source, request.anchor, request.traversal)
        plan = plan_reads(source.manifest, self._request.pruner)
        self._skipped = plan.row_groups_skipped
        self.sources = list(self._sources(plan))

    @property
    def row_groups_read(self) -> int:
        """So far."""
        return self._loader.row_groups_read

    @property
    def row_groups_skipped(self) -> int:
        """Ruled out so far."""
        return self._skipped + sum(source.row_groups_skipped for source in self.sources)

    @property
    def parts_opened(self) -> set[int]:
        """Their places in the manifest."""
        return self._loader.parts_opened

    def start(self) -> None:
        """Begin with what comes first; trouble is left for those who meet it when they read."""
        with suppress(LazyDeltaError):
            self._open_unknown()
            waiting = [source for source in self.sources if source.bound is not None]
            nearest = min(waiting, key=_bound, default=None)
            if nearest is not None:
                nearest.start()

    def released(self, bound: SortKey | None) -> None:
        """Rows up to this bound go out now."""
        self._released = bound, len(self._units_read)

    def handed_out(self) -> Batches:
        """The rows that went out so far, read again: their paths and deletion vectors."""
        bound, count = self._released
        traversal = self._request.traversal
        shape = RowShape(columns=("path", "deletion_vector", RAW_PATH), order=traversal.column)
        for unit in self._units_read[:count]:
            for piece in self._loader.pieces(Run(unit.part, (unit.row_group,)), shape):
                rows = self._up_to(self._loader.live_rows(piece), bound)
                if rows.num_rows:
                    yield rows

    def close(self) -> None:
        """Stop what is under way."""
        for source in self.sources:
            source.close()

    def _open_unknown(self) -> None:
        """Open the parts of which nothing is told: before anything else, so better side by side."""
        unknown = [
            source
            for source in self.sources
            if source.bound == before_all((), descending=self._request.traversal.descending)
        ]
        if len(unknown) > 1:
            with WorkerThreads(limits.COMMIT_PARALLELISM, "lazydelta-footer") as pool:
                list(pool.map(PartRows.open, unknown))

    def _up_to(self, rows: pa.RecordBatch, bound: SortKey | None) -> pa.RecordBatch:
        """Those of sorted rows that are not behind the bound."""
        if bound is None:
            return rows
        traversal = self._request.traversal
        ordered = backwards(rows) if traversal.descending else rows
        count = rows_up_to(ordered, bound, traversal.keys, descending=traversal.descending)
        return ordered.slice(0, count)

    def _sources(self, plan: Plan) -> Iterator[PartRows]:
        manifest = self.source.manifest
        wanted: dict[int, list[int]] = {part: [] for part in plan.parts}
        for unit in plan.units or ():
            wanted[unit.part].append(unit.row_group)
        listed = row_groups_by_part(manifest)
        firsts = part_bounds(self.source, manifest.parts, self._request.traversal)
        for part, row_groups in wanted.items():
            chosen = row_groups if plan.units is not None else range(manifest.parts[part].num_row_groups)
            in_order = sorted(chosen, reverse=self._request.traversal.descending)
            before = self._before(part, listed[part])
            in_order = [row_group for row_group in in_order if row_group not in before]
            self._skipped += len(chosen) - len(in_order)
            if not in_order:
                continue
            begins = row_group_bounds(self.source, listed[part], self._request.traversal)
            yield PartRows(
                self._loader,
                self._request,
                part=part,
                row_groups=in_order,
                begins=dict(enumerate(begins)) or {in_order[0]: firsts[part]},
                units_read=self._units_read,
            )

    def _before(self, part: int, groups: Sequence[RowGroup]) -> Container[int]:
        """The row groups of a part that end before the anchor, as far as the manifest tells."""
        request = self._request
        if request.anchor is None:
            return ()
        if self._parts_before[part]:
            return range(self.source.manifest.parts[part].num_row_groups)
        told = row_groups_before(self.source, groups, request.anchor, request.traversal)
        return {at for at, is_before in enumerate(told) if is_before}


def _bound(source: PartRows) -> SortKey:
    assert source.bound is not None
    return source.bound
