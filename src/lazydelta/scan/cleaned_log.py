"""A scan whose commits are cleaned up while it reads them, continued from a newer checkpoint.

Why: log cleanup takes commits that a checkpoint stands for by now. A scan that listed them before would end
in an error although its version can still be read.
Contract: the pinned version V, exactly. What serves is the log as it is now: a checkpoint at or below V and
every commit after it, of the same table, none of the known commits changed. A walk comes newest first, so
every version above the commit that is gone was decided before; what the checkpoint has and nothing newer has
touched is the rest. Nothing is kept for that: the keys that a walk decides are in its set anyway. Where the
log does not tell V any more, or the fallback is off, the error that the commit is gone stays.
Design: docs/adr/0020-commits-cleaned-up-under-a-scan.md.
"""

from __future__ import annotations

from contextlib import closing

import msgspec
import pyarrow as pa

from lazydelta import limits
from lazydelta.errors import CorruptLogError, VersionNotFoundError
from lazydelta.log.commits import CommitVanishedError, newest_first
from lazydelta.log.fallback import FallbackKind, fell_back
from lazydelta.log.file_rows import Batches, deletion_vectors
from lazydelta.log.parquet_part import CheckpointVanishedError
from lazydelta.log.segment import LogFile, LogSegment, find_segment
from lazydelta.scan.checkpoint_rows import check_table, checkpoint_rows
from lazydelta.scan.keys import FileKeys
from lazydelta.scan.remove_set import RemoveSet
from lazydelta.scan.run import Replay
from lazydelta.scan.tail import walk_tail
from lazydelta.storage import ObjectReplacedError


def replay_after_cleanup(replay: Replay, gone: CommitVanishedError) -> Replay:
    """The same run over the log as it is now, noted as a fallback; or the error is raised."""
    listings, now = replay.listings, None
    while now is None:
        if not replay.config.enable_fallback or listings >= limits.LISTINGS_MAX:
            raise gone
        listings += 1
        now = _segment_now(replay, gone)
    floor = "version 0" if now.checkpoint is None else f"checkpoint {now.floor}"
    told = f"{gone.what}; went on from {floor}"
    replay.tally.fallbacks.append(fell_back(replay.storage.root, FallbackKind.LOG_CLEANED_UP, told))
    # What is known of sidecars and tails is of the checkpoint before.
    return msgspec.structs.replace(replay, segment=now, sidecar=None, memory=None, listings=listings)


def rest_after_cleanup(replay: Replay, seen: RemoveSet, gone: CommitVanishedError) -> Batches:
    """What a walk newest first had not given when a commit was gone; `seen` is what it had decided."""
    now = replay_after_cleanup(replay, gone)
    left = msgspec.structs.replace(now.segment, version=gone.version)
    try:
        files = newest_first(left, use_compacted=now.config.use_log_compaction)
        yield from walk_tail(now, files, seen, may_trip=False)
    except CommitVanishedError as more:
        yield from rest_after_cleanup(now, seen, more)
        return
    if now.segment.checkpoint is not None:
        now.tally.source = f"checkpoint {now.segment.floor}"
        now.tally.source_reason = "the commits before it were cleaned up under the scan"
        yield from checkpoint_rows(now, now.segment, seen)


def only_keys(batches: Batches, keys: RemoveSet) -> Batches:
    """The rows whose keys are in the set."""
    with closing(batches) as stream:
        for rows in stream:
            inside = keys.holds(FileKeys(rows.column("path"), deletion_vectors(rows)))
            kept = rows if inside.all() else rows.filter(pa.array(inside))
            if kept.num_rows:
                yield kept


def _segment_now(replay: Replay, gone: CommitVanishedError) -> LogSegment | None:
    """The log as it is now; None where that is gone in its turn; the error where it does not do."""
    try:
        now = find_segment(replay.storage, replay.segment.version, replay.damaged)
        if _is_contradicted(replay.segment, now) or gone.name in (file.name for file in _tail_of(now)):
            raise gone
        if now.checkpoint is not None:
            check_table(replay, now, gone)
    except (CheckpointVanishedError, ObjectReplacedError) as trouble:
        replay.storage.forget_version(trouble.where)
        return None
    except (CorruptLogError, VersionNotFoundError):
        raise gone from None
    return now


def _is_contradicted(known: LogSegment, now: LogSegment) -> bool:
    """Whether a commit that both list is not the same any more."""
    infos = {file.name: file.info for file in _commits_of(known)}
    return any(infos.get(file.name, file.info) != file.info for file in _commits_of(now))


def _commits_of(segment: LogSegment) -> tuple[LogFile, ...]:
    own = segment.checkpoint_commit
    return segment.commits if own is None else (own, *segment.commits)


def _tail_of(segment: LogSegment) -> tuple[LogFile, ...]:
    return (*segment.commits, *segment.compactions)
