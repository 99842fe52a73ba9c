"""Which files are live: the tail and the checkpoint merged, newest wins, in one of two orders.

Reverse: commits newest first, each add whose key nothing newer has decided, then the checkpoint's adds
that no commit touched. Forward (also the canonical order a tripped scan falls back to): the keys of the
whole tail as a mask, the checkpoint, then the tail's adds. Both give the same files, none twice.
Contract: batches carry `path` (canonical), the columns asked for and, where some row has one,
`deletion_vector`; memory is one slice of a commit or checkpoint, and the `RemoveSet` within its limit.
Spec: PROTOCOL.md, "Action Reconciliation".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import closing

import msgspec
import numpy as np
import pyarrow as pa

from lazydelta.errors import CorruptLogError, UnsupportedTableError
from lazydelta.log.checkpoint import CheckpointReader, RowRequest
from lazydelta.log.commits import CommitSlice, Demand, ReverseCommitReader, newest_first
from lazydelta.log.file_rows import Batches, Mask, deletion_vectors, rows_from_adds, vector_structs
from lazydelta.log.parquet_part import DamagedCheckpointError
from lazydelta.log.segment import LogFile, LogSegment
from lazydelta.log.snapshot import segment_without
from lazydelta.protocol.paths import canonical_paths
from lazydelta.scan.config import LazyScanConfig
from lazydelta.scan.keys import FileKeys
from lazydelta.scan.remove_set import RemoveSet
from lazydelta.scan.report import ScanTally
from lazydelta.scan.tripwire import FeatureTripwire
from lazydelta.storage import Storage
from lazydelta.telemetry import log_event

# Yields live rows; returns the newest version it has not emitted when it tripped, else None.
TailWalk = Generator[pa.RecordBatch, None, int | None]


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """One run: what to read, with what, and where to count."""

    storage: Storage
    segment: LogSegment
    damaged: frozenset[str]  # names of checkpoints that were passed over
    commits: ReverseCommitReader
    rows: RowRequest
    config: LazyScanConfig
    tally: ScanTally
    tripwire: FeatureTripwire
    demand: Demand

    @property
    def tail(self) -> list[LogFile]:
        """The files of the tail, newest first."""
        return newest_first(self.segment, use_compacted=self.config.use_log_compaction)


def reverse_files(replay: Replay) -> Batches:
    """Newest first: the tail's live adds, then the checkpoint's."""
    with closing(RemoveSet(replay.config.remove_set_memory_limit)) as seen:
        unread = yield from _walk_tail(replay, replay.tail, seen, demand=replay.demand)
        if unread is None:
            yield from _checkpoint_rows(replay, replay.segment, seen)
        else:
            _note_trip(replay)
            yield from _canonical(replay, seen, newest=unread)


def forward_files(replay: Replay) -> Batches:
    """The checkpoint's live adds, then the tail's."""
    with closing(RemoveSet(replay.config.remove_set_memory_limit)) as mask:
        yield from _canonical(replay, mask, newest=replay.segment.version)


def tail_files(replay: Replay, seen: RemoveSet) -> Batches:
    """The live adds of the segment's tail alone; `seen` is left holding every key that the tail decides."""
    yield from _walk_tail(replay, replay.tail, seen, may_trip=False)


def _canonical(replay: Replay, mask: RemoveSet, *, newest: int) -> Batches:
    """The whole tail first, then forward, for versions up to `newest`; newer keys are in `mask` already."""
    rest = [file for file in replay.tail if (file.parsed.until or file.version) <= newest]
    for part in replay.commits.slices(rest, keep=True):
        replay.tripwire.watch(part.others, part.version)
        replay.tally.commits.add(part.version)
        mask.remember(_add_keys(replay, part)[1])
        mask.remember(_remove_keys(part, replay.storage.root))
        _note_set(replay, mask)
    yield from _checkpoint_rows(replay, replay.segment, mask)
    with closing(RemoveSet(replay.config.remove_set_memory_limit)) as seen:
        again = msgspec.structs.replace(replay, tripwire=FeatureTripwire())  # watched once already
        yield from _walk_tail(again, replay.tail, seen, newest=newest, may_trip=False)


def _walk_tail(
    replay: Replay,
    files: Sequence[LogFile],
    seen: RemoveSet,
    *,
    newest: int | None = None,
    may_trip: bool = True,
    demand: Demand = lambda: None,
) -> TailWalk:
    """Live adds of these files, newest first; adds of versions above `newest` only shadow."""
    decider = _CommitDecider(replay, seen)
    for part in replay.commits.slices(files, demand=demand):
        replay.tally.commits.add(part.version)
        tripped = replay.tripwire.watch(_noteworthy(replay, part), part.version) and may_trip
        if tripped and part.is_first:
            return part.version
        rows = _possible(replay, decider.live_rows(part))
        if rows.num_rows and (newest is None or part.version <= newest):
            yield rows
        if part.is_last and tripped:  # met inside a commit that is partly out: the fallback begins below it
            return part.version - 1
    return None


def _checkpoint_rows(replay: Replay, segment: LogSegment, mask: RemoveSet) -> Batches:
    """The checkpoint's adds that no commit touched; an older checkpoint where this one is damaged."""
    if segment.checkpoint is None:
        return
    is_untouched = True
    with closing(CheckpointReader(replay.storage, segment.checkpoint)) as reader:
        try:
            for rows in _masked(replay, reader, mask):
                is_untouched = False
                yield rows
            return  # noqa: TRY300 - an else would read as if the damage were the rule
        except DamagedCheckpointError as damage:
            if not (is_untouched and replay.config.enable_fallback):
                raise
            damaged = replay.damaged | {segment.checkpoint.name}
            older = segment_without(replay.storage, segment, damaged, damage)
            reason = (
                f"checkpoint {segment.floor} is damaged ({damage.what}); used {_floor_text(older)} instead"
            )
            replay.tally.fallbacks.append(reason)
            log_event("fallback", table=replay.storage.root, reason=reason)
    between = [file for file in reversed(older.commits) if file.version <= segment.floor]
    yield from _walk_tail(replay, between, mask, may_trip=False)
    deeper = msgspec.structs.replace(replay, damaged=damaged)
    yield from _checkpoint_rows(deeper, older, mask)


def _masked(replay: Replay, reader: CheckpointReader, mask: RemoveSet) -> Batches:
    with closing(reader.rows(replay.rows)) as stream:
        for rows in stream:
            dead = mask.holds(FileKeys(rows.column("path"), deletion_vectors(rows)))
            replay.tally.row_groups_read = reader.row_groups_read
            replay.tally.row_groups_skipped = reader.row_groups_skipped
            live = _only(rows, ~dead) if dead.any() else rows
            replay.tally.skipped("newer action", rows.num_rows - live.num_rows)
            if live.num_rows:
                yield live
    replay.tally.row_groups_read = reader.row_groups_read
    replay.tally.row_groups_skipped = reader.row_groups_skipped


class _CommitDecider:
    """Newest wins, one commit at a time: within a commit a remove never shadows an add.

    A commit that fits one slice is decided at once; of a longer one the keys are staged until its last
    slice, because a remove may stand before the add of the same commit. In a compacted range the first
    line of a key decides.
    """

    def __init__(self, replay: Replay, seen: RemoveSet) -> None:
        self._replay = replay
        self._seen = seen
        self._staged: list[RemoveSet] = []  # adds, removes

    def live_rows(self, part: CommitSlice) -> pa.RecordBatch:
        """The adds of the slice that nothing newer has decided."""
        rows, adds = _add_keys(self._replay, part)
        removes = _remove_keys(part, self._replay.storage.root)
        if part.is_first and not part.is_last:
            limit = self._replay.config.remove_set_memory_limit
            self._staged = [RemoveSet(limit), RemoveSet(limit)]
        live = ~self._seen.holds(adds) & _first_of_each(part, adds, removes)
        for staged in self._staged if part.is_compacted else self._staged[:1]:
            live &= ~staged.holds(adds)
        self._put(part, adds, removes)
        self._replay.tally.skipped("newer action", len(live) - int(live.sum()))
        return rows if live.all() else _only(rows, live)

    def _put(self, part: CommitSlice, adds: FileKeys, removes: FileKeys) -> None:
        targets = self._staged or [self._seen, self._seen]
        targets[0].remember(adds)
        targets[1].remember(removes)
        if part.is_last:
            for staged in self._staged:
                self._seen.absorb(staged)
                staged.close()
            self._staged = []
        _note_set(self._replay, self._seen)


def _possible(replay: Replay, rows: pa.RecordBatch) -> pa.RecordBatch:
    """The rows that the predicate does not rule out; those of a checkpoint were judged as they were read."""
    if replay.rows.keep_rows is None or rows.num_rows == 0:
        return rows
    return _only(rows, replay.rows.keep_rows(rows, None))


def _noteworthy(replay: Replay, part: CommitSlice) -> Counter[str]:
    """The other actions of a slice; a strict scan counts deletion vectors among them."""
    if not replay.config.strict:
        return part.others
    vectors = [action.deletion_vector for action in part.adds]
    vectors.extend(action.deletion_vector for action in part.removes)
    return part.others + Counter(deletionVector=sum(vector is not None for vector in vectors))


def _first_of_each(part: CommitSlice, adds: FileKeys, removes: FileKeys) -> Mask:
    """Adds whose key does not occur earlier in the slice: among adds, and in a compacted range at all."""
    if len(adds) == 0:
        return np.zeros(0, np.bool_)
    if not part.is_compacted:
        first = np.zeros(len(adds), np.bool_)
        first[np.unique(adds.digests, return_index=True)[1]] = True
        return first
    lines = np.array([*part.add_lines, *part.remove_lines])
    digests = np.concatenate([adds.digests, removes.digests])
    by_line = np.argsort(lines, kind="stable")
    first_at = by_line[np.unique(digests[by_line], return_index=True)[1]]
    return np.isin(np.arange(len(adds)), first_at)


def _add_keys(replay: Replay, part: CommitSlice) -> tuple[pa.RecordBatch, FileKeys]:
    columns = replay.rows.columns
    if replay.rows.stats_paths and "stats" not in columns:
        columns = (*columns, "stats")
    try:
        rows = rows_from_adds(part.adds, columns, replay.storage.root)
    except OverflowError as damage:
        raise CorruptLogError(
            f"commit {part.version} has a number that fits no column: {damage}",
            replay.storage.root,
            "restore the commit",
        ) from damage
    return rows, FileKeys(rows.column("path"), deletion_vectors(rows))


def _remove_keys(part: CommitSlice, root: str) -> FileKeys:
    paths = canonical_paths(pa.array([remove.path for remove in part.removes], pa.string()), root)
    return FileKeys(paths, vector_structs(remove.deletion_vector for remove in part.removes))


def _only(rows: pa.RecordBatch, mask: Mask) -> pa.RecordBatch:
    return rows.filter(pa.array(mask))


def _note_set(replay: Replay, removed: RemoveSet) -> None:
    replay.tally.remove_set_peak = max(replay.tally.remove_set_peak, removed.size)
    replay.tally.remove_set_on_disk |= removed.is_on_disk


def _note_trip(replay: Replay) -> None:
    reason = replay.tripwire.tripped or ""
    if not replay.config.enable_fallback:
        raise UnsupportedTableError(
            f"the lazy scan tripped and the fallback is off ({reason})",
            replay.storage.root,
            "set enable_fallback=True, or strict=False",
        )
    replay.tally.fallbacks.append(f"{reason}; continued in the canonical order")
    log_event("fallback", table=replay.storage.root, reason=reason)


def _floor_text(segment: LogSegment) -> str:
    return "the log from version 0" if segment.checkpoint is None else f"checkpoint {segment.floor}"
