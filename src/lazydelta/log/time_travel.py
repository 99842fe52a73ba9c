"""The version that was current at a time.

File times are made strictly increasing, as Delta does, because copies and restores scramble them. From the
version where in-commit timestamps were enabled, only those count. A time before the first commit or after
the last one is an error.
Spec: PROTOCOL.md, "In-Commit Timestamps".
"""

from __future__ import annotations

import datetime as dt
from bisect import bisect_right

from lazydelta.errors import CorruptLogError, InvalidRequestError, TableNotFoundError, VersionNotFoundError
from lazydelta.log.commits import read_commit_head
from lazydelta.log.segment import LogFile, LogListing, earliest_readable, list_log
from lazydelta.log.snapshot import open_snapshot
from lazydelta.log.state import TableState
from lazydelta.protocol.features import has_in_commit_timestamps
from lazydelta.protocol.names import LOG_FOLDER
from lazydelta.storage import Storage

_ENABLED_AT_VERSION = "delta.inCommitTimestampEnablementVersion"
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_VERSION_DIGITS = 20  # as names of the log have


def version_at(storage: Storage, timestamp: dt.datetime | dt.date | str, *, parallelism: int) -> int:
    """The newest version whose commit is not after `timestamp`."""
    wanted_ms = timestamp_ms(timestamp)
    times = commit_times(storage, parallelism=parallelism)
    commits = times.commits
    last_ms = times.at(len(commits) - 1)
    if wanted_ms > last_ms:
        raise VersionNotFoundError(
            f"{_text(wanted_ms)} is after the last commit, version {commits[-1].version} at {_text(last_ms)}",
            storage.root,
            "leave the timestamp out to read the newest version",
        )
    index = times.last_at_or_before(wanted_ms)
    if index < 0:
        raise _before_first(wanted_ms, times)
    return commits[index].version


def version_from(times: CommitTimes, timestamp: dt.datetime | dt.date | str) -> int:
    """The oldest version whose commit is not before `timestamp`."""
    wanted_ms = timestamp_ms(timestamp)
    index = times.last_at_or_before(wanted_ms - 1) + 1
    if index == len(times.commits):
        last_ms = times.at(index - 1)
        raise VersionNotFoundError(
            f"{_text(wanted_ms)} is after the last commit, "
            f"version {times.commits[-1].version} at {_text(last_ms)}",
            times.root,
            f"ask for {_text(last_ms)} or earlier",
        )
    return times.commits[index].version


def version_until(times: CommitTimes, timestamp: dt.datetime | dt.date | str) -> int:
    """The newest version whose commit is not after `timestamp`; the last one, if that is later."""
    wanted_ms = timestamp_ms(timestamp)
    index = times.last_at_or_before(wanted_ms)
    if index < 0:
        raise _before_first(wanted_ms, times)
    return times.commits[index].version


def commit_times(storage: Storage, *, parallelism: int) -> CommitTimes:
    """The times of the commits that are still there, from one listing on."""
    listing = list_log(storage)
    commits = [listing.commits[version] for version in _contiguous(listing, storage.root)]
    newest = open_snapshot(storage, parallelism=parallelism)
    return CommitTimes(
        storage, commits, _own_times_from(newest.state), readable_from=earliest_readable(listing) or 0
    )


def timestamp_ms(timestamp: dt.datetime | dt.date | str) -> int:
    """Milliseconds since 1970; text is ISO 8601, and what has no zone is UTC."""
    if isinstance(timestamp, str):
        try:
            timestamp = dt.datetime.fromisoformat(timestamp)
        except ValueError:
            raise _not_a_time(timestamp) from None
    if isinstance(timestamp, dt.date) and not isinstance(timestamp, dt.datetime):
        timestamp = dt.datetime.combine(timestamp, dt.time())
    if not isinstance(timestamp, dt.datetime):
        raise _not_a_time(timestamp)
    if timestamp.tzinfo is None:
        timestamp = timestamp.replace(tzinfo=dt.UTC)
    # Exact, and also where its zone puts it outside of the years that there are.
    return (timestamp - _EPOCH) // dt.timedelta(milliseconds=1)


class CommitTimes:
    """The time of each commit, each looked up when it is needed."""

    def __init__(
        self, storage: Storage, commits: list[LogFile], own_times_from: int | None, *, readable_from: int
    ) -> None:
        self._storage = storage
        self.root = storage.root
        self.commits = commits
        self.readable_from = readable_from  # the oldest version that is more than a commit
        self._first_own = len(commits)
        if own_times_from is not None:
            self._first_own = bisect_right([c.version for c in commits], own_times_from - 1)
        self._file_times: list[int] = []
        for commit in commits[: self._first_own]:
            floor = self._file_times[-1] + 1 if self._file_times else 0
            self._file_times.append(max(commit.info.modified_ms, floor))

    def at(self, index: int) -> int:
        """The time of one commit, in ms since 1970."""
        return self._file_times[index] if index < self._first_own else self._own_time(index)

    def of_version(self, version: int) -> int | None:
        """The time of a version's commit; None where it is not there."""
        index = version - self.commits[0].version
        return self.at(index) if 0 <= index < len(self.commits) else None

    def last_at_or_before(self, wanted_ms: int) -> int:
        """The position of the newest commit that is not after, or -1."""
        low, high = self._first_own, len(self.commits)
        while low < high:  # in-commit timestamps increase strictly
            middle = (low + high) // 2
            if self._own_time(middle) <= wanted_ms:
                low = middle + 1
            else:
                high = middle
        if low > self._first_own:
            return low - 1
        return bisect_right(self._file_times, wanted_ms) - 1

    def _own_time(self, index: int) -> int:
        commit = self.commits[index]
        info = read_commit_head(self._storage, commit).info
        if info is None or not isinstance(info.in_commit_timestamp, int):
            raise CorruptLogError(
                f"commit {commit.version} has no in-commit timestamp, though the table has them enabled",
                f"{self._storage.root}/{commit.name}",
                "read by version= instead",
            )
        return info.in_commit_timestamp


def _own_times_from(state: TableState) -> int | None:
    """The first version whose own time counts; None where none does."""
    if not has_in_commit_timestamps(state.protocol, state.metadata):
        return None
    enabled_at = state.metadata.configuration.get(_ENABLED_AT_VERSION) or "0"
    if not enabled_at.isdecimal() or len(enabled_at) > _VERSION_DIGITS:
        raise CorruptLogError(
            f"{_ENABLED_AT_VERSION} is {enabled_at[:80]!r}, which is no version",
            "the table's configuration",
            "read by version= instead, or repair the property",
        )
    return int(enabled_at)


def _contiguous(listing: LogListing, root: str) -> range:
    """The newest unbroken run of commits."""
    if not listing.commits:
        raise TableNotFoundError(
            "the log has no commit to find a time by", f"{root}/{LOG_FOLDER}", "check the address"
        )
    newest = oldest = max(listing.commits)
    while oldest - 1 in listing.commits:
        oldest -= 1
    return range(oldest, newest + 1)


def _before_first(wanted_ms: int, times: CommitTimes) -> VersionNotFoundError:
    first = _text(times.at(0))
    return VersionNotFoundError(
        f"{_text(wanted_ms)} is before the first commit that is still there, "
        f"version {times.commits[0].version} at {first}",
        times.root,
        f"ask for {first} or later",
    )


def _not_a_time(value: object) -> InvalidRequestError:
    return InvalidRequestError(
        f"the timestamp {value!r} is not a time",
        "timestamp",
        "write it as 2026-02-08 or 2026-02-08T12:30:00Z",
    )


def _text(ms: int) -> str:
    try:
        return dt.datetime.fromtimestamp(ms / 1000, dt.UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError):  # beyond Python's years
        return f"{ms} ms after 1970"
