"""What the commits between two checkpoints did: new rows, the keys they decide, and where those may lie.

Why: an incremental build reads the change, not the table. Contract: `read_changes` streams the adds that are
live after the last of the commits and leaves every key that the commits add or remove in `seen`: each of them
shadows the rows of older parts. `TouchedOrder` says which values of the order column these keys may have, so
that only row groups in reach are searched; it is a guess, because a file may be added again, even with other
partition values, and who relies on it must count afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from enum import Enum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lazydelta.log.checkpoint import RowRequest
from lazydelta.log.commits import CommitSlice, Demand, ReverseCommitReader
from lazydelta.log.file_rows import Batches, Mask
from lazydelta.log.segment import CheckpointFiles, LogFile, LogSegment
from lazydelta.protocol.value_text import values_from_text
from lazydelta.scan.config import LazyScanConfig
from lazydelta.scan.remove_set import RemoveSet
from lazydelta.scan.replay import tail_files
from lazydelta.scan.report import ScanTally
from lazydelta.scan.run import Replay
from lazydelta.scan.tripwire import FeatureTripwire
from lazydelta.sidecar.format.layout import SidecarLayout
from lazydelta.sidecar.format.typed_rows import BUILD_COLUMNS
from lazydelta.storage import Storage

_VALUES_MAX = 100_000  # distinct values kept; with more, every row group is searched
_OrderTexts = Sequence[str | None]


class Reach(Enum):
    """How far a search for the rows of some keys goes, the cheapest first."""

    REMOVES = "where the removed files lie"  # enough unless a file was added again without a remove
    ADDS_TOO = "where the added files lie, too"
    EVERYWHERE = "every row"


class TouchedOrder:
    """Values of the order column that the keys of some commits may have."""

    def __init__(self, layout: SidecarLayout) -> None:
        partition = next((p for p in layout.partitions if p.column == layout.order_column), None)
        self._column = None if partition is None else partition.physical_name
        self._type_name = layout.order_type or "string"
        # None: some file may lie anywhere.
        self._removed: set[str | None] | None = set()
        self._added: set[str | None] | None = set()

    def watch(self, part: CommitSlice) -> None:
        """Note where the files of a slice lie."""
        self._added = self._with(self._added, (add.partition_values or {} for add in part.adds))
        self._removed = self._with(self._removed, (remove.partition_values for remove in part.removes))

    def values(self, reach: Reach) -> set[str | None] | None:
        """The values as the log spells them; None where any may be meant."""
        if reach is Reach.REMOVES:
            return self._removed
        if reach is Reach.EVERYWHERE or self._removed is None or self._added is None:
            return None
        return self._removed | self._added

    def may_touch(self, reach: Reach, low: _OrderTexts, high: _OrderTexts, nulls: Sequence[int]) -> Mask:
        """Which of the ranges may hold one of the keys; `nulls` counts the rows that have no value.

        A range without a bound may hold anything.
        """
        texts = self.values(reach)
        if texts is None or not texts:
            return np.full(len(low), texts is None)
        values = self._typed([text for text in texts if text is not None])
        found = values.filter(pc.invert(pc.is_null(values, nan_is_null=True)))
        has_null = len(found) < len(texts)
        lows, highs = self._typed(low), self._typed(high)
        unbounded = pc.or_(pc.is_null(lows), pc.is_null(highs)).to_numpy(zero_copy_only=False)
        answer = unbounded | (np.asarray(nulls) > 0) if has_null else unbounded
        if len(found):
            answer = answer | _overlap(found, lows, highs)
        return np.asarray(answer, np.bool_)

    def _with(
        self, texts: set[str | None] | None, maps: Iterable[Mapping[str, str | None] | None]
    ) -> set[str | None] | None:
        for values in maps:
            # Statistics order the rows where no partition column does, and removes have none.
            if texts is None or values is None or self._column is None or self._column not in values:
                return None
            texts.add(values[self._column])
        return None if texts is not None and len(texts) > _VALUES_MAX else texts

    def _typed(self, texts: Sequence[str | None]) -> pa.Array:
        return values_from_text(pa.array(texts, pa.string()), self._type_name)


def read_changes(
    storage: Storage, commits: Sequence[LogFile], *, touched: TouchedOrder, seen: RemoveSet
) -> Batches:
    """The live adds of these commits (ascending, contiguous) as rows of the log room, statistics as JSON."""
    first, last = commits[0].version, commits[-1].version
    segment = LogSegment(
        root=storage.root,
        version=last,
        checkpoint=CheckpointFiles(first - 1, ()),
        commits=tuple(commits),
        compactions=(),
        crcs=(),
        checkpoint_commit=None,
        hint=None,
    )
    with closing(_WatchedCommits(storage, touched)) as reader:
        replay = Replay(
            storage=storage,
            segment=segment,
            damaged=frozenset(),
            commits=reader,
            rows=RowRequest(columns=(*BUILD_COLUMNS, "stats")),
            config=LazyScanConfig(),
            tally=ScanTally(),
            tripwire=FeatureTripwire(),
            demand=lambda: None,
        )
        yield from tail_files(replay, seen)


def removed_ranges(mask: Mask) -> tuple[int, ...]:
    """The true positions as first, count, first, count, …"""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8)))
    starts, ends = edges[0::2], edges[1::2]
    return tuple(int(number) for number in np.column_stack([starts, ends - starts]).ravel())


def removed_mask(ranges: Sequence[int], num_rows: int) -> Mask:
    """The same positions as a mask."""
    mask = np.zeros(num_rows, np.bool_)
    for first, count in zip(ranges[0::2], ranges[1::2], strict=True):
        mask[first : first + count] = True
    return mask


class _WatchedCommits(ReverseCommitReader):
    """Commits that show every slice to the watcher as it goes by."""

    def __init__(self, storage: Storage, touched: TouchedOrder) -> None:
        super().__init__(storage)
        self._touched = touched

    def slices(
        self,
        files: Iterable[LogFile],
        *,
        demand: Demand = lambda: None,
        keep: bool = False,
        joins: bool = False,
    ) -> Iterator[CommitSlice]:
        for part in super().slices(files, demand=demand, keep=keep, joins=joins):
            self._touched.watch(part)
            yield part


def _overlap(values: pa.Array, lows: pa.Array, highs: pa.Array) -> Mask:
    """Which ranges hold a value. By ranks: they compare alike whatever the type is."""
    joined = pa.concat_arrays([values, lows, highs])
    ranks = pc.rank(joined, sort_keys="ascending", tiebreaker="dense").to_numpy()
    sorted_values = np.sort(ranks[: len(values)])
    low_ranks, high_ranks = np.split(ranks[len(values) :], 2)
    first = np.searchsorted(sorted_values, low_ranks, side="left")
    after = np.searchsorted(sorted_values, high_ranks, side="right")
    return np.asarray(after > first, np.bool_)
