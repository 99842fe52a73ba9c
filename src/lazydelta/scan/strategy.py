"""Which order a scan reads the log in, decided from the listing, the hint, the manifest and the counts alone.

The rows of the matrix, first match wins: a limit goes reverse; so does a log without a checkpoint, and one
whose checkpoint has a sidecar by its manifest; more than a hundred commits since the checkpoint go forward; a
tail with more than half as many adds as the checkpoint goes reverse; a predicate on a recent partition goes
reverse; everything else goes forward. The checkpoint is never read to decide.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable

from lazydelta import limits
from lazydelta.log.segment import LogSegment
from lazydelta.predicate import BoundPredicate, partition_lower_bounds
from lazydelta.protocol.actions import VersionChecksum
from lazydelta.scan.config import LazyScanConfig, ScanStrategy

Choice = tuple[ScanStrategy, str]
_DIGITS = re.compile(r"^(\d{4})-?(\d{2})-?(\d{2})")


def choose_strategy(
    segment: LogSegment,
    config: LazyScanConfig,
    predicate: BoundPredicate | None,
    checksum: VersionChecksum | None,
    *,
    is_hurried: bool = False,
    has_sidecar: Callable[[], bool] = lambda: False,
) -> Choice:
    """The strategy and the reason for it; `is_hurried`: whoever pulls files may stop after a few."""
    if config.strategy != ScanStrategy.AUTO or config.order is not None:
        return ScanStrategy(config.strategy), "asked for"
    if config.limit is not None or is_hurried:
        return ScanStrategy.REVERSE, "a limit can stop early"
    if segment.checkpoint is None:
        return ScanStrategy.REVERSE, "there is no checkpoint"
    if has_sidecar():
        return ScanStrategy.REVERSE, "a sidecar serves the newest first"
    if len(segment.commits) > limits.AUTO_COMMITS_MAX:
        text = f"{len(segment.commits):,} commits since the checkpoint, more than {limits.AUTO_COMMITS_MAX}"
        return ScanStrategy.FORWARD, text
    return _by_counts(segment, predicate, checksum)


def _by_counts(
    segment: LogSegment, predicate: BoundPredicate | None, checksum: VersionChecksum | None
) -> Choice:
    tail_adds, checkpoint_adds = _tail_adds(segment, checksum), _checkpoint_adds(segment)
    if tail_adds > checkpoint_adds / 2:
        text = f"about {tail_adds:,} adds in the tail, over half of the checkpoint's {checkpoint_adds:,}"
        return ScanStrategy.REVERSE, text
    if predicate is not None and _is_recent(predicate, segment):
        return ScanStrategy.REVERSE, "the predicate asks for a recent partition"
    return ScanStrategy.FORWARD, "most files are in the checkpoint"


def _checkpoint_adds(segment: LogSegment) -> int:
    if segment.hint is not None and segment.hint.num_of_add_files is not None:
        return segment.hint.num_of_add_files
    if segment.hint is not None and segment.hint.size is not None:
        return segment.hint.size
    assert segment.checkpoint is not None
    return segment.checkpoint.size_bytes // limits.CHECKPOINT_BYTES_PER_ADD


def _tail_adds(segment: LogSegment, checksum: VersionChecksum | None) -> int:
    estimate = segment.tail_bytes // limits.COMMIT_BYTES_PER_ADD
    if checksum is not None and checksum.num_files is not None and segment.hint is not None:
        grown = checksum.num_files - (segment.hint.num_of_add_files or checksum.num_files)
        return max(grown, estimate)
    return estimate


def _is_recent(predicate: BoundPredicate, segment: LogSegment) -> bool:
    """Whether a partition column must be at or after the day the tail began."""
    if not segment.commits:
        return False
    try:
        began = dt.datetime.fromtimestamp(segment.commits[0].info.modified_ms / 1000, dt.UTC).date()
    except (OverflowError, ValueError, OSError):  # a time beyond Python's years, as a broken clock leaves it
        return False
    days = (_day(value) for value in partition_lower_bounds(predicate))
    return any(day is not None and day >= began for day in days)


def _day(value: object) -> dt.date | None:
    """The day a partition value names: a date, a time, or text and numbers that begin with yyyyMMdd."""
    if isinstance(value, dt.datetime):
        return value.date()
    if isinstance(value, dt.date):
        return value
    match = _DIGITS.match(str(value))
    try:
        return dt.date(int(match[1]), int(match[2]), int(match[3])) if match else None
    except ValueError:
        return None
