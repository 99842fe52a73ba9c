"""What changed from one version to another, as lines: for change data feeds, and for streams.

Contract: versions oldest first, each with its number and time; metadata and protocol of later versions where
they are asked for. A feed is there only where the table had it enabled in all versions: others are refused.
A page goes on behind the last action of the one before.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence

import msgspec

from lazydelta import limits
from lazydelta.errors import CorruptLogError, InvalidRequestError
from lazydelta.log.segment import LogFile
from lazydelta.log.time_travel import CommitTimes
from lazydelta.protocol.actions import Metadata, Protocol
from lazydelta.serve.admitted import Admitted
from lazydelta.serve.sharing import lines
from lazydelta.serve.sharing.change_lines import ChangeLines
from lazydelta.serve.sharing.commit_actions import Change, changes_of
from lazydelta.serve.sharing.formats import features_needed
from lazydelta.serve.sharing.requests import DELTA, PARQUET
from lazydelta.storage import Storage

_FEED = "delta.enableChangeDataFeed"
_MAPPING_ALLOWED = Protocol(min_reader_version=2, min_writer_version=5)


class ChangePage(msgspec.Struct, frozen=True, array_like=True):
    """Where the next page goes on, and the range that the first one fixed."""

    start: int
    end: int
    version: int
    action: int  # of that version, from which on


class ChangeQuery(msgspec.Struct, kw_only=True, eq=False):
    """One question for changes; its end is known once `lines` has ended."""

    storage: Storage
    commits: Sequence[LogFile]  # of the range, oldest first
    times: CommitTimes
    form: str
    by_feed: bool
    with_metadata: bool
    with_protocol: bool
    max_files: int | None = None
    page: ChangePage | None = None
    next_page: ChangePage | None = None  # set at the end

    def lines(self, writer: ChangeLines, admitted: Admitted) -> Generator[bytes, None, None]:
        """The lines of the changes."""
        missing = self.max_files
        for commit in self._commits_left():
            at_ms = self.times.of_version(commit.version)
            index = 0
            for changes in changes_of(self.storage, commit, by_feed=self.by_feed):
                skipped = self._skipped(commit, index, len(changes))
                index += skipped
                left = changes[skipped:]
                for part in _parts(left if missing is None else left[:missing]):
                    admitted.gave(len(part), is_limited=False)
                    yield b"".join(self._written(writer, part, commit.version, at_ms))
                    index += len(part)
                if missing is not None:
                    if len(left) > missing or (missing == 0 and left):
                        self.next_page = self._page(commit.version, index)
                        return
                    missing -= len(left)
            admitted.check()

    def _commits_left(self) -> Iterator[LogFile]:
        return iter(
            commit for commit in self.commits if self.page is None or commit.version >= self.page.version
        )

    def _skipped(self, commit: LogFile, index: int, count: int) -> int:
        """How many of these the pages before had."""
        if self.page is None or commit.version != self.page.version:
            return 0
        return max(0, min(count, self.page.action - index))

    def _page(self, version: int, action: int) -> ChangePage:
        return ChangePage(self.commits[0].version, self.commits[-1].version, version, action)

    def _written(
        self, writer: ChangeLines, part: Sequence[Change], version: int, at_ms: int | None
    ) -> Iterator[bytes]:
        is_first = version == self.commits[0].version
        yield writer.lines(
            [change for change in part if change.kind in {"add", "remove", "cdc"}], version, at_ms
        )
        for change in part:
            if change.kind == "metaData":
                self._check_feed(change.action, version)
                self._check_form(_MAPPING_ALLOWED, change.action, version)
                if self.with_metadata and not is_first:
                    yield lines.metadata_line(change.action, self.form, version=version)
            elif change.kind == "protocol":
                self._check_form(change.action, Metadata(), version)
                if self.with_protocol and self.form == DELTA and not is_first:
                    yield lines.protocol_line(change.action, self.form, version=version)

    def _check_form(self, protocol: Protocol, metadata: Metadata, version: int) -> None:
        needed = features_needed(protocol, metadata) if self.form == PARQUET else None
        if needed:
            raise InvalidRequestError(
                f"from version {version} on the table has {', '.join(sorted(needed))}, which the parquet "
                "response format cannot tell",
                "responseformat",
                f"ask for responseformat=delta;readerfeatures={','.join(sorted(needed))}",
            )

    def _check_feed(self, metadata: Metadata, version: int) -> None:
        if self.by_feed:
            check_feed(metadata, version)


def check_feed(metadata: Metadata, version: int) -> None:
    """Raise unless the table keeps a feed of its changes."""
    if (metadata.configuration.get(_FEED) or "").lower() != "true":
        raise InvalidRequestError(
            f"the table has no change data feed at version {version}",
            "changes",
            f"ask for versions that have it, or set {_FEED} = true on the table",
        )


def commits_of(times: CommitTimes, start: int, end: int) -> list[LogFile]:
    """The commits of a range, all of them."""
    found = [commit for commit in times.commits if start <= commit.version <= end]
    if not found or found[0].version != start or len(found) != end - start + 1:
        oldest = max(times.commits[0].version, times.readable_from)
        raise InvalidRequestError(
            f"the changes of version {start} are not there any more: changes begin at version {oldest}",
            "startingVersion",
            f"ask from version {oldest} on",
        )
    if found[-1].version != end:
        raise CorruptLogError(f"commit {end} is missing", times.root, "restore it")
    return found


def _parts(changes: Sequence[Change]) -> Iterator[Sequence[Change]]:
    for start in range(0, len(changes), limits.SERVE_LINES_ROWS):
        yield changes[start : start + limits.SERVE_LINES_ROWS]
