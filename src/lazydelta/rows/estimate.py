"""How many files, rows and bytes a scan will give, by what was read so far. Reads nothing.

Why: planners choose join sides and memory before the first row. Contract: exact only where it says so.
Before a run, the whole table is told, as `.crc` or the hint and the sizes in the listing have it; a run that
has begun tells which share of the files it judged might match; one that is finished tells all.
"""

from __future__ import annotations

import msgspec

from lazydelta import limits
from lazydelta.log.snapshot import Snapshot, count_adds
from lazydelta.scan import ScanReport

_NO_JUDGEMENT = "newer action"  # files that a newer commit replaced were never candidates


class ScanEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """What to expect; None where nothing tells."""

    files: int
    bytes: int | None  # of the data files, whole
    rows: int | None  # of those files; a filter on rows may leave fewer
    is_exact: bool  # the number of files, and their bytes
    source: str  # what tells


class _Whole(msgspec.Struct, frozen=True):
    """The whole table."""

    files: int
    bytes: int | None
    source: str


def estimate(snapshot: Snapshot, latest: ScanReport | None, *, is_filtered: bool) -> ScanEstimate:
    """By the latest run, if there is one, which may have gone part of the way only."""
    whole = _whole(snapshot)
    if latest is None:
        told = f"{whole.source}; the filter is not judged yet" if is_filtered else whole.source
        is_exact = not is_filtered and whole.bytes is not None
        return ScanEstimate(files=whole.files, bytes=whole.bytes, rows=None, is_exact=is_exact, source=told)
    if latest.is_finished and latest.limit is None:
        return _finished(latest)
    share = _share(latest)
    files = max(latest.files_kept, round(whole.files * share))
    if latest.is_finished and latest.limit is not None:
        files = min(files, latest.limit)
    bytes_ = None if whole.bytes is None else round(whole.bytes * share)
    if latest.file_bytes and latest.files_emitted:
        bytes_ = max(latest.file_bytes, round(files * latest.file_bytes / latest.files_emitted))
    return ScanEstimate(
        files=files,
        bytes=bytes_,
        rows=_rows(latest, files),
        is_exact=False,
        source=f"{whole.source}, and a run that went part of the way",
    )


def _finished(latest: ScanReport) -> ScanEstimate:
    is_sized = latest.file_bytes is not None
    return ScanEstimate(
        files=latest.files_emitted,
        bytes=latest.file_bytes,
        rows=_rows(latest, latest.files_emitted),
        is_exact=is_sized or latest.files_emitted == 0,
        source="a run to the end",
    )


def _whole(snapshot: Snapshot) -> _Whole:
    segment, checksum = snapshot.segment, snapshot.state.checksum
    if checksum is not None and checksum.num_files is not None:
        return _Whole(checksum.num_files, checksum.table_size_bytes, f"the .crc of {snapshot.version}")
    below = 0
    if segment.checkpoint is not None:
        told = None if segment.hint is None else segment.hint.num_of_add_files
        below = segment.checkpoint.size_bytes // limits.CHECKPOINT_BYTES_PER_ADD if told is None else told
    return _Whole(below + _tail_adds(snapshot), None, "the sizes of the log's files")


def _tail_adds(snapshot: Snapshot) -> int:
    """Files that the tail adds: counted where opening has read a commit, which of a small table is all."""
    if snapshot.tail_adds is not None:
        return snapshot.tail_adds
    read = list(snapshot.commits_kept.values())
    unread_bytes = max(0, snapshot.segment.tail_bytes - sum(map(len, read)))
    return unread_bytes // limits.COMMIT_BYTES_PER_ADD + sum(map(count_adds, read))


def _share(latest: ScanReport) -> float:
    """Of the files that were judged, those that might match."""
    dropped = sum(count for rule, count in latest.files_skipped.items() if rule != _NO_JUDGEMENT)
    judged = latest.files_kept + dropped
    return latest.files_kept / judged if judged else 1.0


def _rows(latest: ScanReport, files: int) -> int | None:
    """By the rows of the files that were opened."""
    rows = latest.rows
    if rows is None or not rows.files_opened:
        return 0 if files == 0 else None
    return round(rows.rows_read / rows.files_opened * files)
