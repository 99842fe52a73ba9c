"""The sidecar of a checkpoint out of an earlier one and the commits between: the incremental build.

The flow: the commits' live adds, sorted → rows of older parts that the commits decided, marked as removed →
the levels' plan → groups merged to new parts; all other parts are referenced as they are.
Contract: exact or `NotIncrementalError`. Keys of the commits shadow older rows, so a row that is overlooked
can only make the sum of live rows too large; the sum is compared with the checkpoint's count.
Memory is that of a full build; what is read and written follows the change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lazydelta.log.file_rows import DELETION_VECTOR_TYPE, Batches, Mask
from lazydelta.log.prefetch import prefetch
from lazydelta.protocol.paths import canonical_paths
from lazydelta.protocol.schema import PrimitiveType, arrow_type
from lazydelta.scan.keys import FileKeys
from lazydelta.scan.remove_set import RemoveSet
from lazydelta.sidecar.format.conform import conform
from lazydelta.sidecar.format.folder import row_groups_by_part
from lazydelta.sidecar.format.footer_ranges import OrderColumn, footer_ranges
from lazydelta.sidecar.format.layout import SidecarLayout, field_kind, field_path, layout_of, sort_keys
from lazydelta.sidecar.format.manifest import Part, RowGroup
from lazydelta.sidecar.format.part_reader import PartReader
from lazydelta.sidecar.format.part_writer import rows_per_part
from lazydelta.sidecar.format.typed_rows import typed_rows
from lazydelta.sidecar.order.external_sort import ExternalSorter
from lazydelta.sidecar.order.sorted_merge import cut, merge_sorted
from lazydelta.upkeep.build_plan import BuildPlan
from lazydelta.upkeep.changes import Reach, TouchedOrder, read_changes, removed_mask, removed_ranges
from lazydelta.upkeep.levels import PartSize, balanced, plan_levels
from lazydelta.upkeep.part_sink import PartEntry, PartSink
from lazydelta.upkeep.progress import Progress

_STATISTICS_KINDS = frozenset({"min", "max", "null_count"})
_KEY_COLUMNS = ("path", "dv.storageType", "dv.pathOrInlineDv", "dv.offset", "size")


class NotIncrementalError(Exception):
    """The change cannot be told from the commits; only a full build is right. Its text says why."""


class _NewRows(msgspec.Struct, kw_only=True):
    """What the commits add, gathered."""

    sorter: ExternalSorter
    total_bytes: int = 0
    sample: pa.RecordBatch | None = None


def layout_with_older(plan: BuildPlan) -> SidecarLayout:
    """The plan's layout and the statistics of older parts besides: a merge must not lose them."""
    assert plan.previous is not None
    hashes = {part.schema_hash: part for part in plan.previous.parts if part.num_live}
    hashes.pop(plan.layout.schema_hash, None)
    paths = dict.fromkeys(plan.layout.stats_paths)
    for part in hashes.values():
        with closing(PartReader(plan.storage, plan.config.folder, part)) as reader:
            for field in reader.schema:
                path = field_path(field)
                if path is not None and field_kind(field) in _STATISTICS_KINDS:
                    paths[path] = None
    if len(paths) == len(plan.layout.stats_paths):
        return plan.layout
    return layout_of(plan.metadata, plan.schema, stats_paths=paths, time_column=plan.config.time_column)


def write_incremental(plan: BuildPlan, sink: PartSink, progress: Progress) -> list[PartEntry]:
    """Write what changed; the parts that stay as they are come back, with their removed rows."""
    assert plan.previous is not None
    keys = [name for name, _ in sort_keys(plan.layout)]
    touched = TouchedOrder(plan.layout)
    with ExitStack() as stack:
        sorter = ExternalSorter(plan.layout.schema, keys, plan.config.sort_memory_bytes)
        stack.enter_context(closing(sorter))
        seen = stack.enter_context(closing(RemoveSet()))
        new_rows = _NewRows(sorter=sorter)
        _gather(plan, new_rows, touched, seen)
        progress("changes_read", rows=sorter.row_count, keys=seen.size)
        parts = _shadowed(plan, touched, seen, new_rows=sorter.row_count)
        entries = list(zip(parts, row_groups_by_part(plan.previous), strict=True))
        if not sorter.row_count and not any(part.num_live for part in parts):
            return []
        shape = rows_per_part(plan.layout, _sample(plan, new_rows, parts), plan.config)
        levels = plan_levels(
            [_size(part) for part in parts],
            sorter.row_count,
            full_rows=shape.rows,
            ratio=plan.config.level_ratio,
        )
        progress(
            "writing", rows=levels.rows_written, parts=sum(g.part_count(shape.rows) for g in levels.groups)
        )
        binding = plan.binding(new_rows.total_bytes + sum(part.total_bytes for part in parts))
        for group in levels.groups:
            sources = [_part_rows(plan, parts[at]) for at in group.parts]
            if group.has_new_rows:
                sources.append(sorter.sorted_batches(plan.config.row_group_rows))
            counts = balanced(group.num_rows, group.part_count(shape.rows))
            with closing(_merged(plan, sources)) as merged:
                sink.write(merged, counts, binding=binding, shape=shape, is_whole_build=False)
        return [entries[at] for at in levels.kept]


def _gather(plan: BuildPlan, new_rows: _NewRows, touched: TouchedOrder, seen: RemoveSet) -> None:
    if not plan.tail:
        return
    with closing(read_changes(plan.storage, plan.tail, touched=touched, seen=seen)) as stream:
        for rows in stream:
            typed = typed_rows(rows, plan.layout)
            new_rows.total_bytes += pc.sum(typed.column("size"), min_count=0).as_py()
            new_rows.sample = typed if new_rows.sample is None else new_rows.sample
            new_rows.sorter.add(typed)


# --- rows of older parts that newer commits decided ----------------------------


def _shadowed(plan: BuildPlan, touched: TouchedOrder, seen: RemoveSet, *, new_rows: int) -> list[Part]:
    """The previous parts without the rows whose keys are in `seen`; searched as far as the count asks for."""
    live = 0
    for reach in Reach:
        if reach is not Reach.EVERYWHERE and touched.values(reach) is None:
            continue
        found = _search(plan, touched, reach, seen)
        live = new_rows + sum(part.num_live for part in found)
        if live == plan.num_files:
            return found
    raise NotIncrementalError(f"the commits lead to {live} files, the checkpoint lists {plan.num_files}")


def _search(plan: BuildPlan, touched: TouchedOrder, reach: Reach, seen: RemoveSet) -> list[Part]:
    assert plan.previous is not None
    parts = plan.previous.parts
    near_parts = touched.may_touch(
        reach,
        [part.order_min for part in parts],
        [part.order_max for part in parts],
        [part.order_nulls for part in parts],
    )

    def near(groups: Sequence[RowGroup]) -> Mask:
        return touched.may_touch(
            reach,
            [group.event_hour_min for group in groups],
            [group.event_hour_max for group in groups],
            [group.event_hour_nulls for group in groups],
        )

    found = []
    for part, groups, may_hold in zip(parts, row_groups_by_part(plan.previous), near_parts, strict=True):
        is_searched = may_hold and part.num_live and (not groups or near(groups).any())
        found.append(_without(plan, part, groups, near, seen) if is_searched else part)
    return found


def _without(
    plan: BuildPlan,
    part: Part,
    groups: Sequence[RowGroup],
    near: Callable[[Sequence[RowGroup]], Mask],
    seen: RemoveSet,
) -> Part:
    """The part with the rows marked that hold a key; ranges that are not listed its footer tells."""
    before = removed_mask(part.removed, part.num_rows)
    after, gone_bytes = before.copy(), 0
    with closing(PartReader(plan.storage, plan.config.folder, part)) as reader:
        is_near = near(groups or _groups_by_footer(plan, reader))
        wanted = [rows for rows, is_one in zip(reader.row_groups(), is_near, strict=True) if is_one]
        if not wanted:
            return part
        rows_at = np.concatenate(
            [np.arange(group.first_row, group.first_row + group.num_rows) for group in wanted]
        )
        done = 0
        stream = reader.batches(_KEY_COLUMNS, [group.index for group in wanted], live_only=False)
        with closing(stream):
            for rows in stream:
                at = rows_at[done : done + rows.num_rows]
                done += rows.num_rows
                hits = seen.holds(_keys(rows, plan.storage.root)) & ~before[at]
                after[at[hits]] = True
                gone_bytes += _size_of(rows, hits)
    if (after == before).all():
        return part
    return msgspec.structs.replace(
        part, removed=removed_ranges(after), total_bytes=part.total_bytes - gone_bytes
    )


def _groups_by_footer(plan: BuildPlan, reader: PartReader) -> Sequence[RowGroup]:
    """The row groups of a part with their ranges of the order column, where that tells any."""
    assert plan.previous is not None
    name, type_name = plan.previous.order_column, plan.previous.order_type
    order = None
    # Of a column with statistics nothing is known where keys may lie, and a narrower type has other texts.
    if name is not None and type_name is not None and name in reader.index_schema.names:
        field = reader.index_schema.field(name)
        if field_kind(field) == "partition" and field.type == arrow_type(PrimitiveType(type_name)):
            order = OrderColumn(path=(name,), type_name=type_name, low=name, high=name, is_partition=True)
    return footer_ranges(reader.metadata, reader.index_schema, order, reader.nan_counts).row_groups


def _keys(rows: pa.RecordBatch, root: str) -> FileKeys:
    kinds = rows.column("dv.storageType")
    if kinds.null_count == len(kinds):
        return FileKeys(canonical_paths(rows.column("path"), root))
    nothing = pa.nulls(rows.num_rows, pa.int32()), pa.nulls(rows.num_rows, pa.int64())
    vectors = pa.StructArray.from_arrays(
        [kinds, rows.column("dv.pathOrInlineDv"), rows.column("dv.offset"), *nothing],
        fields=list(DELETION_VECTOR_TYPE),
        mask=kinds.is_null(),
    )
    return FileKeys(canonical_paths(rows.column("path"), root), vectors)


def _size_of(rows: pa.RecordBatch, hits: Mask) -> int:
    if not hits.any():
        return 0
    total: int = pc.sum(rows.column("size").filter(pa.array(hits)), min_count=0).as_py()
    return total


# --- merging -------------------------------------------------------------------


def _size(part: Part) -> PartSize:
    return PartSize(num_rows=part.num_rows, num_live=part.num_live, removed_ranges=len(part.removed) // 2)


def _sample(plan: BuildPlan, new_rows: _NewRows, parts: Sequence[Part]) -> pa.RecordBatch:
    if new_rows.sample is not None:
        return new_rows.sample
    part = next(part for part in parts if part.num_live)
    with closing(_part_rows(plan, part)) as stream:
        return next(stream)


def _merged(plan: BuildPlan, sources: Sequence[Batches]) -> Batches:
    """The rows of all sources in order; the merge runs ahead in a thread while parts are encoded."""
    keys = [name for name, _ in sort_keys(plan.layout)]
    with ExitStack() as stack:
        for source in sources:
            stack.enter_context(closing(source))
        merged = merge_sorted(sources, keys, slice_bytes=plan.config.sort_memory_bytes // 4)
        in_row_groups = (piece for rows in merged for piece in cut(rows, plan.config.row_group_rows))
        yield from stack.enter_context(closing(prefetch(in_row_groups)))


def _part_rows(plan: BuildPlan, part: Part) -> Batches:
    """The live rows of an older part, in today's layout."""
    with (
        closing(PartReader(plan.storage, plan.config.folder, part)) as reader,
        closing(reader.batches()) as stream,
    ):
        for rows in stream:
            yield conform(rows, plan.layout)
