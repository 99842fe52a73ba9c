"""The files of a checkpoint that no newer commit touched, and what serves where it cannot be read to its end.

Contract: each file once. A damaged checkpoint is left for an older one with the commits in between, as long
as nothing of it went out and the log still reaches that one. One that somebody wrote anew meanwhile is read
anew: it has the same files, in an order of its own. So it is with one that log cleanup took because there is
a newer one by now: of the newer one's files those that no commit after the older one touched. What went out
before is masked, if its keys were few enough to be kept and the new one has every one of them; else the scan
ends with an error that says to run it again.
The mask holds the keys of every commit after the checkpoint.
Design: docs/adr/0019-checkpoints-written-anew.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

import msgspec
import pyarrow as pa

from lazydelta import limits
from lazydelta.errors import CorruptLogError, LazyDeltaError, VersionNotFoundError
from lazydelta.log.checkpoint import CheckpointReader, RowRequest
from lazydelta.log.fallback import FallbackKind, fell_back
from lazydelta.log.file_rows import Batches, deletion_vectors
from lazydelta.log.parquet_part import CheckpointVanishedError, DamagedCheckpointError
from lazydelta.log.segment import CheckpointFiles, LogFile, LogSegment, find_segment
from lazydelta.log.snapshot import segment_instead
from lazydelta.scan.handed_out import HandedOut
from lazydelta.scan.keys import FileKeys
from lazydelta.scan.remove_set import RemoveSet
from lazydelta.scan.run import Replay
from lazydelta.scan.tail import walk_tail
from lazydelta.sidecar.read.reader import SidecarReader
from lazydelta.storage import ObjectReplacedError


class _Instead(msgspec.Struct, frozen=True):
    """What is read in the place of a checkpoint."""

    segment: LogSegment
    damaged: frozenset[str]
    text: str


def checkpoint_rows(replay: Replay, segment: LogSegment, mask: RemoveSet, *, tries: int = 1) -> Batches:
    """The checkpoint's adds that the mask does not hold, or the same files from what is there instead."""
    if segment.checkpoint is None:
        return
    with (
        closing(HandedOut(replay.share)) as handed_out,
        closing(CheckpointReader(replay.storage, segment.checkpoint, replay.share)) as reader,
    ):
        try:
            for rows in masked(replay, reader.rows(replay.rows), mask, reader):
                handed_out.add(rows)
                yield rows
            return  # noqa: TRY300 - an else would read as if the damage were the rule
        except (DamagedCheckpointError, ObjectReplacedError) as trouble:
            is_last = tries >= limits.LISTINGS_MAX
            if not replay.config.enable_fallback or (is_last and isinstance(trouble, ObjectReplacedError)):
                raise
            replay.storage.forget_version(trouble.where)
            instead = _instead(replay, segment, handed_out, trouble, is_last=is_last)
        for keys in handed_out.all_keys():
            mask.remember(keys)
    told = f"checkpoint {segment.floor} {instead.text}; used {_floor_text(instead.segment)} instead"
    replay.tally.fallbacks.append(fell_back(replay.storage.root, FallbackKind.CHECKPOINT_DAMAGED, told))
    between = [file for file in instead.segment.commits if file.version <= segment.floor]
    yield from rows_between(replay, between, mask)
    deeper = msgspec.structs.replace(replay, damaged=instead.damaged)
    yield from checkpoint_rows(deeper, instead.segment, mask, tries=tries + 1)


def rows_between(replay: Replay, commits: Sequence[LogFile], mask: RemoveSet) -> Batches:
    """The adds of commits below the checkpoint that nothing newer touched, newest first."""
    if commits:
        yield from walk_tail(replay, list(reversed(commits)), mask, may_trip=False)


def masked(
    replay: Replay, rows_below: Batches, mask: RemoveSet, reader: CheckpointReader | SidecarReader
) -> Batches:
    """The rows whose keys the mask does not hold."""
    with closing(rows_below) as stream:
        for rows in stream:
            dead = mask.holds(FileKeys(rows.column("path"), deletion_vectors(rows)))
            _count_row_groups(replay, reader)
            live = rows.filter(pa.array(~dead)) if dead.any() else rows
            replay.tally.skipped("newer action", rows.num_rows - live.num_rows)
            if live.num_rows:
                yield live
    _count_row_groups(replay, reader)


def check_table(replay: Replay, segment: LogSegment, trouble: LazyDeltaError) -> None:
    """Raise the trouble unless the segment's checkpoint is of the scan's table."""
    if segment.checkpoint is None or _table_of(replay, segment.checkpoint) != replay.table_id:
        raise trouble


def _instead(
    replay: Replay,
    segment: LogSegment,
    handed_out: HandedOut,
    trouble: DamagedCheckpointError | ObjectReplacedError,
    *,
    is_last: bool,
) -> _Instead:
    """What to read instead, or the error that ends the scan."""
    if isinstance(trouble, DamagedCheckpointError):
        if handed_out.count and isinstance(trouble, CheckpointVanishedError):
            newer = _with_all_of(replay, segment, handed_out, trouble)
            return _Instead(newer, replay.damaged, "was cleaned up meanwhile")
        if handed_out.count:
            raise trouble
        other, damaged = segment_instead(
            replay.storage, segment, replay.damaged, trouble, may_be_anew=not is_last
        )
        if damaged != replay.damaged:
            return _Instead(other, damaged, f"is damaged ({trouble.what})")
        check_table(replay, other, trouble)
    elif handed_out.count:
        again = ObjectReplacedError(
            "the checkpoint was written anew while it was read, after some of its files had gone out",
            trouble.where,
            "run the scan again: it reads the new one; if this comes again, check who writes there",
        )
        other = _with_all_of(replay, segment, handed_out, again)
    else:
        other = _written_anew(replay, segment, trouble)
    return _Instead(other, replay.damaged, "was written anew meanwhile")


def _written_anew(replay: Replay, segment: LogSegment, replaced: LazyDeltaError) -> LogSegment:
    """The log as it is now: two writers may put a checkpoint of one version under one name, each a whole one.

    It must be the same table's, with the same commits, or it is the replacement that ends the scan.
    """
    other = find_segment(replay.storage, segment.version, replay.damaged)
    known = {file.name: file.info for file in segment.commits}
    if any(known.get(file.name, file.info) != file.info for file in other.commits):
        raise replaced
    check_table(replay, other, replaced)
    return other


def _with_all_of(
    replay: Replay, segment: LogSegment, handed_out: HandedOut, again: LazyDeltaError
) -> LogSegment:
    """The log as it is now, if its checkpoint has every file that went out; else the error is raised."""
    for tries_left in reversed(range(limits.LISTINGS_MAX if handed_out.is_whole else 0)):
        try:
            other = _written_anew(replay, segment, again)
            if other.checkpoint is None or other.floor < segment.floor:
                break
            if _count_of(replay, other.checkpoint, handed_out) == handed_out.count:
                return other
        except (CheckpointVanishedError, ObjectReplacedError) as trouble:  # in its turn
            if trouble is again or not tries_left:
                break
            replay.storage.forget_version(trouble.where)
        except (CorruptLogError, VersionNotFoundError) as trouble:
            raise again from trouble
    raise again


def _count_of(replay: Replay, checkpoint: CheckpointFiles, handed_out: HandedOut) -> int:
    """How many of the files that went out the checkpoint has."""
    count = 0
    with (
        closing(replay.key_set()) as keys,
        closing(CheckpointReader(replay.storage, checkpoint, replay.share)) as reader,
        closing(reader.rows(RowRequest(columns=("path", "deletion_vector")))) as stream,
    ):
        for some in handed_out.all_keys():
            keys.remember(some)
        for rows in stream:
            count += int(keys.holds(FileKeys(rows.column("path"), deletion_vectors(rows))).sum())
    return count


def _table_of(replay: Replay, checkpoint: CheckpointFiles) -> str | None:
    """The table's id; each file of the checkpoint may turn out to be another than before."""
    for tries_left in reversed(range(len(checkpoint.files) + 1)):
        with closing(CheckpointReader(replay.storage, checkpoint, replay.share)) as reader:
            try:
                metadata = reader.state()[1]
            except ObjectReplacedError as replaced:
                if not tries_left:
                    raise
                replay.storage.forget_version(replaced.where)
            else:
                return None if metadata is None else metadata.id
    return None


def _count_row_groups(replay: Replay, reader: CheckpointReader | SidecarReader) -> None:
    replay.tally.row_groups_read = reader.row_groups_read
    replay.tally.row_groups_skipped = reader.row_groups_skipped


def _floor_text(segment: LogSegment) -> str:
    return "the log from version 0" if segment.checkpoint is None else f"checkpoint {segment.floor}"
