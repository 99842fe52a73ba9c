"""The live files in order: those of the tail, sorted, merged with those at the checkpoint.

Rows of a sidecar lie in order already: its parts are merged as the order reaches them, so that a limit ends
the reading. Without one the files at the checkpoint are sorted here, on disk where they are many.
Contract: the same files as any other scan gives, none twice, in the order of `sidecar.traversal`, those of
one path by their deletion vectors. An anchor leaves out what lies before it. The whole tail is read before
the first file comes out. A sidecar that turns out damaged half way is left: what went out before is masked,
the rest is sorted from the checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager

import msgspec
import pyarrow as pa

from lazydelta import limits
from lazydelta.errors import InvalidRequestError, StorageError
from lazydelta.log.commits import CommitVanishedError
from lazydelta.log.file_rows import FILE_COLUMNS, RAW_PATH, Batches, deletion_vectors
from lazydelta.log.segment import LogFile
from lazydelta.log.snapshot import Snapshot
from lazydelta.memory_budget import MemoryKind
from lazydelta.scan.cleaned_log import replay_after_cleanup
from lazydelta.scan.config import ScanOrder
from lazydelta.scan.floor import (
    Floor,
    FloorChoice,
    SidecarLostError,
    choose_floor,
    commits_may_go,
    mask_handed_out,
    sidecar_lost,
)
from lazydelta.scan.keys import FileKeys
from lazydelta.scan.record_counts import NUM_RECORDS, with_record_counts
from lazydelta.scan.remove_set import RemoveSet
from lazydelta.scan.replay import note_trip
from lazydelta.scan.run import Replay
from lazydelta.scan.tail import TailWalk, possible, walk_tail
from lazydelta.scan.tail_memory import walk_known_tail
from lazydelta.sidecar.format.damage import DamagedSidecarError
from lazydelta.sidecar.order.anchor import Anchor, dv_ids, from_anchor_on, with_ties_in_order
from lazydelta.sidecar.order.external_sort import ExternalSorter
from lazydelta.sidecar.order.lazy_merge import LazyMerge
from lazydelta.sidecar.order.ordered_rows import OrderedRows, merge_obstacle
from lazydelta.sidecar.order.part_rows import OrderedRequest
from lazydelta.sidecar.order.sorted_stream import SortedStream
from lazydelta.sidecar.read.traversal import (
    Traversal,
    traversal_by_manifest,
    traversal_by_path,
    traversal_by_rule,
    with_keys,
)
from lazydelta.storage.worker_threads import WorkerThreads

_SORT_BYTES_SCARCE = 2 * limits.MIB  # where the process has no memory for that
_MERGE_BYTES = 8 * limits.MIB  # row groups of parts that overlap, about


class _Plan(msgspec.Struct, frozen=True, kw_only=True):
    """One ordered run."""

    replay: Replay  # asks for the keys, too, and knows of no limit: nothing ends before it is sorted
    traversal: Traversal
    choice: FloorChoice
    obstacle: str | None  # why the files at the checkpoint must be sorted here
    columns: tuple[str, ...]  # that go out
    limit: int | None
    may_stop_early: bool  # after a few files
    anchor: Anchor | None

    @property
    def schema(self) -> pa.Schema:
        """Of the rows that are sorted and merged."""
        types = {**FILE_COLUMNS, NUM_RECORDS: pa.int64()}
        fields = [pa.field(name, types[name]) for name in self.columns]
        return pa.schema([*fields, *self.traversal.key_fields])

    @property
    def commits_between(self) -> list[LogFile]:
        """Those that an older sidecar lacks, newest first."""
        return [] if self.obstacle is not None else list(reversed(self.choice.commits))

    def sorter(self) -> ExternalSorter:
        """For rows of the schema."""
        memory_bytes = limits.SORT_MEMORY_BYTES // 2  # the tail's rows; those of the checkpoint as much again
        if not self.replay.share.try_take(memory_bytes):
            memory_bytes = min(memory_bytes, _SORT_BYTES_SCARCE)
        return ExternalSorter(
            self.schema,
            self.traversal.keys,
            memory_bytes,
            descending=self.traversal.descending,
            rows_max=self.limit,
        )

    def as_source(self, batches: Iterator[pa.RecordBatch]) -> SortedStream:
        """Sorted rows as a source of the merge."""
        return SortedStream(batches, self.traversal.keys, descending=self.traversal.descending)


def ordered_files(
    replay: Replay, snapshot: Snapshot, columns: Sequence[str], anchor: Anchor | None = None
) -> Batches:
    """The live files in the order that the configuration asks for; with an anchor, from there on."""
    plan = _planned(replay, snapshot, columns, anchor)
    replay.tally.traversal = plan.traversal
    replay.tally.strategy, replay.tally.reason = "ordered", _reason(plan)
    now: Replay | None = None
    with ExitStack() as stack:
        stack.enter_context(replay.share.held(_MERGE_BYTES, MemoryKind.LOG))
        seen = stack.enter_context(closing(replay.key_set()))
        tail = stack.enter_context(closing(plan.sorter()))
        parts = None if plan.obstacle is not None else stack.enter_context(closing(_parts(plan, seen)))
        try:
            with _begun(parts):
                _sort_tail(plan, tail, seen)
        except SidecarLostError as lost:
            replay.tally.fallbacks.append(lost.fallback)
            plan, parts = msgspec.structs.replace(plan, replay=_without_sidecar(plan.replay)), None
        except CommitVanishedError as gone:
            now = replay_after_cleanup(replay, gone)
        if now is None:
            in_order = stack.enter_context(closing(tail.sorted_batches(limits.BATCH_ROWS)))
            yield from _from_place(plan, _settled(plan, _merged(plan, plan.as_source(in_order), parts, seen)))
    if now is not None:  # nothing went out yet
        yield from ordered_files(now, snapshot, columns, anchor)


def _planned(replay: Replay, snapshot: Snapshot, columns: Sequence[str], anchor: Anchor | None) -> _Plan:
    descending = replay.config.order == ScanOrder.DESC
    metadata, schema = snapshot.state.metadata, snapshot.schema
    limit, may_stop_early = replay.config.limit, replay.may_stop_early
    wanted = None if anchor is None else _anchored(anchor, snapshot, descending=descending)
    replay = msgspec.structs.replace(
        replay,
        config=msgspec.structs.replace(replay.config, limit=None),
        demand=lambda: None,
        is_hurried=False,
    )
    choice = choose_floor(replay) if replay.segment.checkpoint is not None else _NO_FLOOR
    found: Traversal | None = None
    obstacle: str | None = choice.reason
    if choice.source is not None:
        obstacle = merge_obstacle(choice.source)
        found = traversal_by_manifest(choice.source.manifest, metadata, schema, descending=descending)
        if found is None:
            obstacle = "the sidecar's order is not one of today's columns"
        elif wanted not in (None, found):
            obstacle = "the sidecar's order is another than that of the page before"
            replay = _without_sidecar(replay)  # it may lack what this order goes by
    traversal = wanted or found or traversal_by_rule(metadata, schema, descending=descending)
    return _Plan(
        replay=_asking_for_keys(replay, traversal),
        traversal=traversal,
        choice=choice,
        obstacle=obstacle,
        columns=tuple(columns),
        limit=limit,
        may_stop_early=may_stop_early,
        anchor=anchor,
    )


def _anchored(anchor: Anchor, snapshot: Snapshot, *, descending: bool) -> Traversal:
    """The order that the anchor is a place in."""
    found: Traversal | None = Traversal(column=None, descending=descending)
    if anchor.column is not None:
        metadata, schema = snapshot.state.metadata, snapshot.schema
        found = traversal_by_path(anchor.column, anchor.type_name, metadata, schema, descending=descending)
    try:
        if found is not None:
            anchor.scalars(found)
            return found
    except ValueError:
        pass
    raise InvalidRequestError(
        f"no place to go on from: the table is not ordered by {'.'.join(anchor.column or ('path',))}",
        f"{snapshot.storage.root} @ {snapshot.version}",
        "begin with the first page again",
    )


_NO_FLOOR = FloorChoice(source=None, reason="there is no checkpoint")


def _asking_for_keys(replay: Replay, traversal: Traversal) -> Replay:
    """The same run with the columns that the keys are made of, and nothing held back for a limit's sake."""
    rows, column = replay.rows, traversal.column
    wanted = (*rows.columns, RAW_PATH)
    stats_paths = rows.stats_paths
    if column is not None and column.is_partition:
        wanted = (*wanted, "partition_values")
    elif column is not None:
        stats_paths = (*stats_paths, column.path)
    config = replay.config
    rows = msgspec.structs.replace(
        rows,
        columns=tuple(dict.fromkeys(wanted)),
        stats_paths=tuple(dict.fromkeys(stats_paths)),
        takes_json_stats=rows.takes_json_stats or stats_paths != rows.stats_paths,
        row_groups_per_batch=config.checkpoint_row_groups_per_batch,
        read_ahead=True,
    )
    request = replay.sidecar_rows
    if request is not None:
        shape = msgspec.structs.replace(
            request.shape, columns=(*request.shape.columns, RAW_PATH), order=column
        )
        request = msgspec.structs.replace(request, shape=shape, is_limited=False)
    return msgspec.structs.replace(replay, rows=rows, sidecar_rows=request)


def _reason(plan: _Plan) -> str:
    if plan.replay.segment.checkpoint is None:
        return f"{plan.traversal}; there is no checkpoint"
    if plan.obstacle is None:
        return f"{plan.traversal}, as the sidecar's parts are sorted"
    return f"{plan.traversal}; the files at the checkpoint are sorted here ({plan.obstacle})"


def _sort_tail(plan: _Plan, sorter: ExternalSorter, seen: RemoveSet) -> None:
    """The live files of the tail; `seen` is left holding every key that it decides."""
    replay = plan.replay
    is_known = replay.tail_memory is not None
    tail = walk_known_tail(replay, seen) if is_known else walk_tail(replay, replay.tail, seen, may_trip=False)
    _sort_walk(plan, sorter, tail)
    if plan.commits_between:
        assert plan.choice.source is not None
        with commits_may_go(replay, plan.choice.source):
            _sort_walk(plan, sorter, walk_tail(replay, plan.commits_between, seen, may_trip=False))
    if replay.tripwire.tripped is not None:
        note_trip(replay)


def _sort_walk(plan: _Plan, sorter: ExternalSorter, walk: TailWalk) -> None:
    with closing(walk):
        for rows in walk:
            sorter.add(_wanted(plan, rows))


def _without_sidecar(replay: Replay) -> Replay:
    return msgspec.structs.replace(replay, sidecar=None)


@contextmanager
def _begun(parts: OrderedRows | None) -> Iterator[None]:
    """Read what comes first of the sidecar beside the tail."""
    if parts is None:
        yield
        return
    with WorkerThreads(1, thread_name_prefix="lazydelta-ordered") as pool:
        beginning = pool.submit(parts.start)
        yield
        beginning.result()


def _merged(plan: _Plan, tail: SortedStream, parts: OrderedRows | None, mask: RemoveSet) -> Batches:
    """The tail with the parts of the sidecar, or with the sorted files at the checkpoint."""
    replay = plan.replay
    merge = LazyMerge(plan.traversal.keys, descending=plan.traversal.descending)
    merge.add(tail)
    if parts is not None:
        try:
            yield from _with_parts(plan, merge, parts)
            return  # noqa: TRY300 - an else would read as if the damage were the rule
        except (DamagedSidecarError, StorageError) as loss:
            parts.close()
            try:
                mask_handed_out(parts, mask, loss)
            finally:
                if replay.memory is not None:
                    replay.memory.distrust_sidecars()
            replay.tally.fallbacks.append(sidecar_lost(replay.storage.root, parts.source, loss))
        for source in parts.sources:
            merge.remove(source)
        replay = _without_sidecar(replay)
    with closing(_sorted_floor(plan, replay, mask)) as floor:
        if replay.segment.checkpoint is not None:
            merge.add(plan.as_source(floor))
        yield from merge.rows()


def _parts(plan: _Plan, mask: RemoveSet) -> OrderedRows:
    replay, source = plan.replay, plan.choice.source
    assert source is not None
    assert replay.sidecar is not None
    assert replay.sidecar_rows is not None

    def judged(rows: pa.RecordBatch) -> pa.RecordBatch:
        dead = mask.holds(FileKeys(rows.column("path"), deletion_vectors(rows)))
        replay.tally.skipped("newer action", int(dead.sum()))
        live = rows.filter(pa.array(~dead)) if dead.any() else rows
        return _wanted(plan, possible(replay, live))

    request = OrderedRequest(
        shape=replay.sidecar_rows.shape,
        traversal=plan.traversal,
        judge=judged,
        pruner=replay.sidecar_rows.pruner,
        anchor=plan.anchor,
        is_limited=plan.may_stop_early,
    )
    memory = replay.sidecar.memory if replay.memory is None else replay.memory
    return OrderedRows(replay.storage, source, request, reading=replay.sidecar.reading, memory=memory)


def _with_parts(plan: _Plan, merge: LazyMerge, parts: OrderedRows) -> Batches:
    tally, source = plan.replay.tally, parts.source
    tally.source = f"sidecar {source.version} ({source.tier.value})"
    tally.source_reason = plan.choice.reason
    tally.fallbacks.extend(plan.choice.fallbacks)
    tally.parts_total = len(source.manifest.parts)
    for part in parts.sources:
        merge.add(part)
    with closing(merge.rows(parts.released)) as stream:
        try:
            for rows in stream:
                _count(plan.replay, parts)
                yield rows
        finally:
            _count(plan.replay, parts)


def _count(replay: Replay, parts: OrderedRows) -> None:
    replay.tally.parts_read = len(parts.parts_opened)
    replay.tally.row_groups_read = parts.row_groups_read
    replay.tally.row_groups_skipped = parts.row_groups_skipped


def _sorted_floor(plan: _Plan, replay: Replay, mask: RemoveSet) -> Batches:
    """The files at the checkpoint, sorted before the first comes out."""
    with closing(plan.sorter()) as sorter:
        with closing(Floor(replay)) as floor, closing(floor.rows(mask)) as stream:
            for rows in stream:
                sorter.add(_wanted(plan, rows))
        if plan.obstacle is None:
            replay.tally.source_reason = "its sidecar was lost half way; the files are sorted here"
        yield from sorter.sorted_batches(limits.BATCH_ROWS)


def _wanted(plan: _Plan, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Those that do not lie before the anchor, as they go out."""
    shaped = _shaped(plan, rows)
    if plan.anchor is None:
        return shaped
    left = from_anchor_on(shaped, plan.anchor, plan.traversal)
    plan.replay.tally.skipped("the pages before", shaped.num_rows - left.num_rows)
    return left


def _from_place(plan: _Plan, batches: Batches) -> Batches:
    """The same, beginning with the anchor's file where that is included, or an error: its place is lost."""
    anchor = plan.anchor
    with closing(batches):
        if anchor is not None and anchor.is_included:
            first = next(batches, None)
            if first is None or (_path(first, 0), dv_ids(first.slice(0, 1))[0]) != (
                anchor.raw_path,
                anchor.dv_id,
            ):
                raise InvalidRequestError(
                    f"the page before ended in {anchor.raw_path}, which is not at its place any more",
                    plan.replay.storage.root,
                    "what the log tells of the files' order has changed: begin with the first page again",
                )
            yield first
        yield from batches


def _settled(plan: _Plan, batches: Batches) -> Batches:
    """The same, files of one path by their deletion vectors: whatever source tells of them, in one order.

    Once there are vectors, the last row of a batch waits for the next: that may begin with the same path.
    """
    if "deletion_vector" not in plan.columns:
        yield from batches
        return
    held: pa.RecordBatch | None = None
    has_vectors = False
    with closing(batches):
        for batch in batches:
            rows = batch
            has_vectors |= batch.column("deletion_vector").null_count < batch.num_rows
            if held is not None:
                if _path(held, -1) == _path(batch, 0):
                    rows = pa.concat_batches([held, batch])
                else:
                    yield held
            rows, held = with_ties_in_order(rows, plan.traversal), None
            if has_vectors:
                count = rows.num_rows - 1
                while count and _path(rows, count - 1) == _path(rows, count):
                    count -= 1
                rows, held = rows.slice(0, count), rows.slice(count)
            if rows.num_rows:
                yield rows
        if held is not None:
            yield held


def _path(rows: pa.RecordBatch, row: int) -> str | None:
    path: str | None = rows.column(RAW_PATH)[row].as_py()
    return path


def _shaped(plan: _Plan, rows: pa.RecordBatch) -> pa.RecordBatch:
    """The columns that go out, and the keys."""
    keyed = with_keys(rows, plan.traversal.column)
    if NUM_RECORDS in plan.columns:
        keyed = with_record_counts(keyed)
    arrays = []
    for field in plan.schema:
        if field.name not in keyed.schema.names:
            arrays.append(pa.nulls(keyed.num_rows, field.type))
        else:
            column = keyed.column(field.name)
            arrays.append(column if column.type == field.type else column.cast(field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=plan.schema)
