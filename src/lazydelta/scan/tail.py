"""The live adds of the tail, newest commit first: the first action seen for a key decides.

Contract: batches carry `path` (canonical), the columns asked for and, where some row has one,
`deletion_vector`. The `RemoveSet` is left holding every key that the commits walked have decided.
Spec: PROTOCOL.md, "Action Reconciliation".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Sequence

import numpy as np
import pyarrow as pa

from lazydelta.log.commits import Demand
from lazydelta.log.file_rows import Mask
from lazydelta.log.segment import LogFile
from lazydelta.scan.delta_slices import tail_slices
from lazydelta.scan.keys import equal_hashes
from lazydelta.scan.remove_set import RemoveSet
from lazydelta.scan.run import Replay
from lazydelta.scan.tail_slices import TailSlice

# Yields live rows; returns the newest version it has not emitted when it tripped, else None.
TailWalk = Generator[pa.RecordBatch, None, int | None]
Record = Callable[[TailSlice, pa.RecordBatch], None]


def walk_tail(
    replay: Replay,
    files: Sequence[LogFile],
    seen: RemoveSet,
    *,
    newest: int | None = None,
    may_trip: bool = True,
    demand: Demand = lambda: None,
    record: Record = lambda _part, _live: None,
) -> TailWalk:
    """Live adds of these files, newest first; adds of versions above `newest` only shadow.

    `record` is told of each slice and of its live rows, before any of them goes out.
    """
    decider = _CommitDecider(replay, seen)
    for part in tail_slices(replay, files, demand=demand):
        tripped = replay.tripwire.watch(_noteworthy(replay, part), part.version) and may_trip
        if tripped and part.is_first:
            return part.version
        live = decider.live_rows(part)
        record(part, live)
        rows = possible(replay, live)
        if rows.num_rows and (newest is None or part.version <= newest):
            yield rows
        if part.is_last and tripped:  # met inside a commit that is partly out: the fallback begins below it
            return part.version - 1
    return None


def shadow_tail(replay: Replay, files: Sequence[LogFile], mask: RemoveSet) -> None:
    """Put every key that these files decide into the mask; their bytes are kept for a walk after it."""
    for part in tail_slices(replay, files, keep=True):
        replay.tripwire.watch(part.others, part.version)
        mask.remember(part.add_keys)
        mask.remember(part.remove_keys)
        note_set(replay, mask)


def possible(replay: Replay, rows: pa.RecordBatch) -> pa.RecordBatch:
    """The rows that the predicate does not rule out; those of a checkpoint were judged as they were read."""
    if replay.rows.keep_rows is None or rows.num_rows == 0:
        return rows
    return _only(rows, replay.rows.keep_rows(rows, None))


def note_set(replay: Replay, removed: RemoveSet) -> None:
    """Count the keys for explain."""
    replay.tally.remove_set_peak = max(replay.tally.remove_set_peak, removed.size)
    replay.tally.remove_set_on_disk |= removed.is_on_disk


class _CommitDecider:
    """Newest wins, one commit at a time: within a commit a remove never shadows an add.

    So the removes of a commit that comes in several slices are staged until its last one: an add of the same
    commit may stand behind them. In a compacted range the first line of a key decides.
    """

    def __init__(self, replay: Replay, seen: RemoveSet) -> None:
        self._replay = replay
        self._seen = seen
        self._removes: RemoveSet | None = None  # staged

    def live_rows(self, part: TailSlice) -> pa.RecordBatch:
        """The adds of the slice that nothing newer has decided."""
        if part.is_first and not part.is_last and not part.is_compacted:
            self._removes = self._replay.key_set()
        live = ~self._seen.holds(part.add_keys) & _first_of_each(part)
        self._put(part)
        self._replay.tally.skipped("newer action", len(live) - int(live.sum()))
        return part.adds if live.all() else _only(part.adds, live)

    def _put(self, part: TailSlice) -> None:
        self._seen.remember(part.add_keys)
        removes = self._seen if self._removes is None else self._removes
        removes.remember(part.remove_keys)
        if part.is_last and self._removes is not None:
            self._seen.absorb(self._removes)
            self._removes.close()
            self._removes = None
        note_set(self._replay, self._seen)


def _noteworthy(replay: Replay, part: TailSlice) -> Counter[str]:
    """The other actions of a slice; a strict scan counts deletion vectors among them."""
    if not replay.config.strict:
        return part.others
    return part.others + Counter(deletionVector=part.vector_count)


def _first_of_each(part: TailSlice) -> Mask:
    """Adds whose key does not occur earlier in the slice: among adds, and in a compacted range at all."""
    adds, removes = part.add_keys, part.remove_keys
    first = np.ones(len(adds), np.bool_)
    if len(adds) == 0:
        return first
    in_question = equal_hashes(
        np.concatenate([adds.hashes, removes.hashes]) if part.is_compacted else adds.hashes
    )
    rows = np.flatnonzero(in_question[: len(adds)])
    if len(rows) == 0:
        return first
    first[rows] = False
    digests, lines = adds.digests_at(rows), part.add_lines[rows]
    if part.is_compacted:
        others = np.flatnonzero(in_question[len(adds) :])
        digests = np.concatenate([digests, removes.digests_at(others)])
        lines = np.concatenate([lines, part.remove_lines[others]])
    by_line = np.argsort(lines, kind="stable")
    first_at = by_line[np.unique(digests[by_line], return_index=True)[1]]
    first[rows[first_at[first_at < len(rows)]]] = True
    return first


def _only(rows: pa.RecordBatch, mask: Mask) -> pa.RecordBatch:
    return rows.filter(pa.array(mask))
