"""The tail walked with what is known of it: new commits are read, the rest is a settled state.

Contract: the same rows in the same order as `walk_tail` over the whole tail, and the same keys decided. What
was walked is kept when the run has ended, down to the last commit that was walked whole; a tail that would
take more than a quarter of the cache is not. A strict scan watches every commit and takes nothing from here.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lazydelta.log.commits import Demand
from lazydelta.log.file_rows import STATS_PARSED
from lazydelta.log.segment import LogFile
from lazydelta.scan.known_rows import KnownRows, Paths
from lazydelta.scan.known_tail import Decided, KnownTail, settled
from lazydelta.scan.remove_set import RemoveSet
from lazydelta.scan.run import Replay
from lazydelta.scan.table_memory import TableMemory
from lazydelta.scan.tail import TailWalk, note_set, shadow_tail, walk_tail
from lazydelta.scan.tail_slices import TailSlice


def walk_known_tail(replay: Replay, seen: RemoveSet, *, demand: Demand = lambda: None) -> TailWalk:
    """Live adds of the whole tail, newest first; `seen` is left holding what it decides."""
    memory = replay.tail_memory
    if memory is None or not replay.segment.commits:
        return (yield from walk_tail(replay, replay.tail, seen, demand=demand))
    known = _known(replay, memory)
    record = _TailRecord(replay, memory)
    try:
        if known is None:
            yield from walk_tail(replay, replay.tail, seen, demand=demand, record=record.slice)
        else:
            newer = _commits_between(replay, known.version, replay.segment.version)
            yield from walk_tail(replay, newer, seen, demand=demand, record=record.slice)
            kept = record.known(known, seen)
            _take(replay, known, seen)
            for rows in kept:
                batch = rows.possible(replay.rows, replay.predicate, replay.tally)
                if batch.num_rows:
                    yield batch
            older = _commits_between(replay, replay.segment.floor, known.below)
            yield from walk_tail(replay, older, seen, demand=demand, record=record.slice)
        record.whole()
    finally:
        memory.later(record.keep)
    return None


def shadow_known_tail(replay: Replay, mask: RemoveSet) -> None:
    """Put every key that the tail decides into the mask."""
    known = None if replay.tail_memory is None else _known(replay, replay.tail_memory)
    if known is None:
        shadow_tail(replay, replay.tail, mask)
        return
    shadow_tail(replay, _commits_between(replay, known.version, replay.segment.version), mask)
    replay.tripwire.watch(known.others, known.version)
    mask.rest_on(known.mask)
    note_set(replay, mask)
    shadow_tail(replay, _commits_between(replay, replay.segment.floor, known.below), mask)


def _known(replay: Replay, memory: TableMemory) -> KnownTail | None:
    rows = replay.rows
    return memory.tail(
        replay.segment,
        use_compacted=replay.config.use_log_compaction,
        columns=rows.columns,
        stats_paths=rows.stats_paths,
    )


def _take(replay: Replay, known: KnownTail, seen: RemoveSet) -> None:
    """Count and decide as a walk would have."""
    replay.tripwire.watch(known.others, known.version)
    replay.tally.skipped("newer action", known.shadowed)
    seen.rest_on(known.mask)
    note_set(replay, seen)


def _commits_between(replay: Replay, after: int, until: int) -> Sequence[LogFile]:
    """Commits after < v <= until, newest first."""
    floor = replay.segment.floor
    return replay.segment.commits[after - floor : until - floor][::-1]


class _TailRecord:
    """What a walk decides, kept for the next one."""

    def __init__(self, replay: Replay, memory: TableMemory) -> None:
        self._replay = replay
        self._memory = memory
        self._room = memory.budget_bytes // 4
        self._held = 0  # of the process's memory; given back when the run ends
        self._pieces: list[Decided] = []  # of versions that are decided whole, newest first
        self._pending: list[Decided] = []  # of the version under way
        self._below = replay.segment.version
        self._is_new = False  # whether anything was walked that was not known

    def slice(self, part: TailSlice, live: pa.RecordBatch) -> None:
        """A slice was decided."""
        if part.is_first:
            self._settle_at(part.version)
        shadowed = part.adds.num_rows - live.num_rows
        rows = KnownRows(rows=live, stats_paths=self._stats_paths(live))
        self._add(self._pending, Decided((rows,), (part.add_keys, part.remove_keys), part.others, shadowed))
        self._is_new = True
        if part.is_last:
            self._settle_at(part.oldest - 1)

    def known(self, state: KnownTail, seen: RemoveSet) -> tuple[KnownRows, ...]:
        """A settled state comes next; its rows that newer commits have not touched."""
        self._settle_at(state.version)
        rows = tuple(each.without(seen.holds(each.keys)) for each in state.rows)
        gone = sum(each.rows.num_rows for each in state.rows) - sum(each.rows.num_rows for each in rows)
        self._replay.tally.skipped("newer action", gone)
        self._add(self._pieces, Decided(rows, (state.decided,), state.others, state.shadowed + gone))
        self._below = state.below
        return rows

    def whole(self) -> None:
        """The walk has come to its end."""
        self._settle_at(self._replay.segment.floor)

    def keep(self) -> None:
        """Put what was walked into the cache."""
        segment = self._replay.segment
        if self._room >= 0 and self._is_new and self._pieces and self._below < segment.version:
            state = settled(segment, segment.version, self._below, self._pieces)
            flag = self._replay.config.use_log_compaction
            self._memory.keep_tail(segment, state, use_compacted=flag)

    def _settle_at(self, below: int) -> None:
        self._pieces.extend(self._pending)
        self._pending.clear()
        self._below = min(self._below, below)

    def _add(self, pieces: list[Decided], piece: Decided) -> None:
        """Hold it, unless that is too much: then let go of all and hold nothing more."""
        if self._room < 0:
            return
        size = sum(int(rows.rows.nbytes) for rows in piece.rows) + 64 * sum(len(keys) for keys in piece.keys)
        self._room -= size
        pieces.append(piece)
        if not self._replay.share.try_take(size):
            self._room = -1
        if self._room < 0:
            self._pieces.clear()
            self._pending.clear()
            self._replay.share.give(self._held)
        self._held = 0 if self._room < 0 else self._held + size

    def _stats_paths(self, rows: pa.RecordBatch) -> Paths:
        return tuple(self._replay.rows.stats_paths) if STATS_PARSED in rows.schema.names else ()
