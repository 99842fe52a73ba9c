"""A pinned version: its segment, its protocol and metadata, and what opening it has read already.

Contract: later commits do not exist for a snapshot. A checkpoint that cannot be read is left out, and the
next older one with a longer tail serves, as long as the log still reaches it; that is noted in
`fallbacks`. The bytes of commits read on the way are handed to the first scan.
"""

from __future__ import annotations

from contextlib import closing

import msgspec

from lazydelta import limits
from lazydelta.errors import CorruptLogError, VersionNotFoundError
from lazydelta.log.checkpoint import CheckpointReader
from lazydelta.log.commits import CommitVanishedError, ReverseCommitReader
from lazydelta.log.companion import FloorCompanion
from lazydelta.log.fallback import Fallback, FallbackKind, fell_back
from lazydelta.log.parquet_part import CheckpointVanishedError, DamagedCheckpointError
from lazydelta.log.segment import LogSegment, find_segment
from lazydelta.log.state import TableState, read_state
from lazydelta.log.state_since import KnownState, reaches, read_state_since
from lazydelta.protocol.schema import StructType, table_schema
from lazydelta.storage import IoCounters, ObjectReplacedError, Storage
from lazydelta.telemetry import log_event

_ADD = b'{"add"'


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One version of one table."""

    storage: Storage
    segment: LogSegment
    state: TableState
    schema: StructType
    fallbacks: tuple[Fallback, ...]
    damaged: frozenset[str]  # names of checkpoints that were passed over
    opening: IoCounters  # of the storage it was opened through; what is still under way is yet to count
    opening_round_trips: int  # of what opening waited for
    commits_kept: dict[str, bytes]  # by name, of those read on the way; see `hand_over`
    tail_adds: int | None = None  # files that the tail adds, where it was counted and is not at hand any more

    @property
    def version(self) -> int:
        """The pinned version."""
        return self.segment.version

    def hand_over(self) -> dict[str, bytes]:
        """The bytes of commits that opening has read; the first scan takes them, later ones find none."""
        kept = dict(self.commits_kept)
        self.commits_kept.clear()
        return kept


def count_adds(commit: bytes) -> int:
    """How many files a commit adds, by the beginnings of its lines."""
    return sum(line.lstrip().startswith(_ADD) for line in commit.splitlines())


def open_snapshot(
    storage: Storage,
    *,
    version: int | None = None,
    parallelism: int,
    companion: FloorCompanion | None = None,
) -> Snapshot:
    """Pin a version and learn its protocol and metadata; `companion` reads beside the log where it can."""
    on_hint = companion.hinted if companion is not None else lambda _: None
    for tries_left in reversed(range(limits.LISTINGS_MAX)):
        segment = find_segment(storage, version, on_hint=on_hint)
        try:
            return pin_snapshot(storage, segment, parallelism=parallelism, companion=companion)
        except (
            CommitVanishedError,
            CheckpointVanishedError,
        ):  # not to be read any more: the newest is another one by now
            if version is not None or not tries_left:
                raise
    raise AssertionError("the last try returns or raises")


def pin_snapshot(
    storage: Storage,
    segment: LogSegment,
    *,
    parallelism: int,
    companion: FloorCompanion | None = None,
    since: KnownState | None = None,
) -> Snapshot:
    """The version of a segment that is listed already; `since` spares what an older version told."""
    damaged: frozenset[str] = frozenset()
    fallbacks: list[Fallback] = []
    listings = 1
    with closing(ReverseCommitReader(storage, parallelism)) as commits:
        while True:
            if companion is not None:
                companion.pinned(segment)
            try:
                if since is not None and reaches(since, segment):
                    state = read_state_since(storage, segment, commits, since)
                else:
                    state = _state_of(storage, segment, commits, companion)
                break
            except DamagedCheckpointError as damage:
                listings += 1
                told, known = f"checkpoint {segment.floor} is damaged ({damage.what})", damaged
                segment, damaged = segment_instead(
                    storage, segment, damaged, damage, may_be_anew=listings <= limits.LISTINGS_MAX
                )
                if damaged != known:
                    fallbacks.append(fell_back(storage.root, FallbackKind.CHECKPOINT_DAMAGED, told))
            except (
                ObjectReplacedError
            ) as replaced:  # another writer put the same checkpoint: it is read again
                if listings >= limits.LISTINGS_MAX:
                    raise
                storage.forget_version(replaced.where)
                listings += 1
                segment = find_segment(storage, segment.version, damaged)
            except CommitVanishedError as gone:  # a newer checkpoint may tell the same version
                if listings >= limits.LISTINGS_MAX:
                    raise
                listings += 1
                segment = _segment_without(storage, segment.version, damaged, gone)
        log_event("opened", table=storage.root, version=segment.version, state_from=state.source)
        return Snapshot(
            storage=storage,
            segment=segment,
            state=state,
            schema=table_schema(state.metadata, storage.root),
            fallbacks=tuple(fallbacks),
            damaged=damaged,
            opening=storage.counters,
            opening_round_trips=storage.counters.snapshot().round_trips,
            commits_kept=commits.hand_over(),
        )


def segment_instead(
    storage: Storage,
    segment: LogSegment,
    damaged: frozenset[str],
    damage: DamagedCheckpointError,
    *,
    may_be_anew: bool = True,
) -> tuple[LogSegment, frozenset[str]]:
    """The same version without the checkpoint that cannot be read, and the names of all that cannot.

    One that was written anew after it was listed looks damaged, too: it serves, and is not among the names.
    Where the log reaches no other, the damage itself is raised.
    """
    assert segment.checkpoint is not None
    try:
        now = find_segment(storage, segment.version, damaged)
        if may_be_anew and _is_written_anew(segment, now):
            return now, damaged
        without = damaged | {segment.checkpoint.name}
        return find_segment(storage, segment.version, without), without
    except (CorruptLogError, VersionNotFoundError):
        raise damage from None


def _segment_without(
    storage: Storage, version: int, damaged: frozenset[str], gone: CommitVanishedError
) -> LogSegment:
    """The same version without a commit that is gone, or the error itself."""
    try:
        now = find_segment(storage, version, damaged)
    except (CorruptLogError, VersionNotFoundError):
        raise gone from None
    if any(file.name == gone.name for file in (*now.commits, *now.compactions)):
        raise gone
    return now


def _is_written_anew(known: LogSegment, now: LogSegment) -> bool:
    if known.checkpoint is None or now.checkpoint is None or known.checkpoint == now.checkpoint:
        return False
    return known.checkpoint.name == now.checkpoint.name and known.commits == now.commits


def _state_of(
    storage: Storage,
    segment: LogSegment,
    commits: ReverseCommitReader,
    companion: FloorCompanion | None,
) -> TableState:
    if segment.checkpoint is None:
        return read_state(storage, segment, commits, None)
    with closing(CheckpointReader(storage, segment.checkpoint)) as checkpoint:
        return read_state(storage, segment, commits, checkpoint, companion=companion)
