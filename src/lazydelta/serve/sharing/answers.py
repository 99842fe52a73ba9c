"""The answers that are lines: metadata, files of a version, changes.

Contract: each is a generator for `line_response.py`: a `Head` once the first lines are there, then bytes. It
holds a place among the scans that run from before the head until it is closed, and has one line in the access
log. Tokens are bound to the client, the table, the question and, by what they carry, the version.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager

import msgspec

from lazydelta import limits
from lazydelta.errors import InvalidRequestError
from lazydelta.log.time_travel import CommitTimes, commit_times, version_from, version_until
from lazydelta.rows.source import RowSource
from lazydelta.serve.admitted import Admitted
from lazydelta.serve.calls import Call, call
from lazydelta.serve.config import ServedTable
from lazydelta.serve.file_links import FileLinks
from lazydelta.serve.link_office import LinkOffice
from lazydelta.serve.served import Served
from lazydelta.serve.server_links import ServerLinks
from lazydelta.serve.sharing import lines
from lazydelta.serve.sharing.change_lines import ChangeLines
from lazydelta.serve.sharing.change_query import ChangePage, ChangeQuery, check_feed, commits_of
from lazydelta.serve.sharing.directory import Directory
from lazydelta.serve.sharing.formats import choose_format
from lazydelta.serve.sharing.hints import read_hints
from lazydelta.serve.sharing.line_response import Audience, Head, Lines
from lazydelta.serve.sharing.requests import (
    CAPABILITIES_HEADER,
    DELTA,
    FILE_ID_HEADER,
    VERSION_HEADER,
    Capabilities,
    ChangesAsked,
    QueryBody,
    VersionAsked,
)
from lazydelta.serve.sharing.snapshot_lines import SnapshotLines
from lazydelta.serve.sharing.snapshot_query import PageState, SnapshotQuery, physical_names
from lazydelta.serve.sharing.tokens import TokenOffice
from lazydelta.serve.sign_in import Client
from lazydelta.serve.store_links import StoreLinks
from lazydelta.serve.tracing import part_across
from lazydelta.storage import Deadline, Storage
from lazydelta.table import Table


class Asker(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks for which table, and how the answer must look."""

    client: Client
    share: str
    schema: str
    name: str
    base_url: str  # of this server, as the client reaches it
    capabilities: Capabilities = Capabilities()
    file_id: str | None = None
    request_id: str | None = None
    audience: Audience = msgspec.field(default_factory=Audience)


class _PageOfVersion(msgspec.Struct, frozen=True, array_like=True):
    """What a page token of a version carries."""

    version: int
    state: PageState


class Answers:
    """Answers of one server."""

    def __init__(self, served: Served, key: bytes) -> None:
        self._served = served
        seconds = served.config.server.link_seconds
        self.tokens = TokenOffice(key, valid_seconds=seconds)
        self.links = LinkOffice(key)

    def metadata(self, asker: Asker, asked: VersionAsked) -> Lines:
        """Protocol and metadata of a version."""
        with self._asked(asker, "metadata") as (_, table):
            opened = self._opened(asker, table, version=asked.version, timestamp=asked.timestamp)
            form = choose_format(opened.protocol, opened.metadata, asker.capabilities)
            yield self._head(asker, form, opened.version, None)
            yield self._first_lines(
                opened, form, version=_told_version(asked.version, asked.timestamp, opened)
            )
            if asker.capabilities.wants_end:
                yield lines.end_line(lines.EndStream())

    def version(self, asker: Asker, asked: VersionAsked) -> int:
        """The newest version, or the first from a time on."""
        with self._asked(asker, "version") as (_, table):
            opened = self._opened(asker, table)
            if asked.starting_timestamp is None:
                return opened.version
            return version_from(self._times(opened, asker), asked.starting_timestamp)

    def query(self, asker: Asker, body: QueryBody) -> Lines:
        """The files of a version, or what changed from one on."""
        if body.starting_version is not None:
            asked = ChangesAsked(
                starting_version=body.starting_version,
                ending_version=body.ending_version,
                include_historical_metadata=True,
                include_historical_protocol=bool(body.include_historical_protocol),
                max_files=body.max_files,
                page_token=body.page_token,
            )
            yield from self._changes(asker, asked, "query", by_feed=False)
            return
        with self._asked(asker, "query") as (noted, table):
            yield from self._snapshot(asker, table, body, noted)

    def changes(self, asker: Asker, asked: ChangesAsked) -> Lines:
        """The change data feed."""
        return self._changes(asker, asked, "changes", by_feed=True)

    def _snapshot(self, asker: Asker, table: ServedTable, body: QueryBody, noted: Call) -> Lines:
        bound_to = _bound_to(asker, table, body)
        page = self._page_of(bound_to, body)
        version, table_id = body.version, None
        if page is not None:
            version = page.version
        elif body.refresh_token:
            version, table_id = self.tokens.read(
                "refreshToken", bound_to, body.refresh_token, tuple[int, str]
            )
        is_pinned = page is not None or body.refresh_token
        opened = self._opened(asker, table, version=version, timestamp=None if is_pinned else body.timestamp)
        if table_id not in (None, opened.metadata.id):
            raise InvalidRequestError(
                "the token cannot be used: it is of another table, which had this name before",
                "refreshToken",
                "ask again without it",
            )
        form = choose_format(opened.protocol, opened.metadata, asker.capabilities)
        source = self._source(opened, asker)
        told = _told_version(body.version, body.timestamp, opened)
        writer = SnapshotLines(
            form,
            self._links(asker, table, source.snapshot.storage, opened.version),
            root=source.snapshot.storage.root,
            physical=physical_names(source) if form == DELTA else {},
            version=told,
            timestamp=None if told is None else self._times(opened, asker).of_version(told),
        )
        with self._admitted(asker, table) as admitted:
            query = _query_of(source, body, None if page is None else page.state)
            with closing(query.lines(writer, admitted)) as files:
                with self._served.memory.of(asker.client):
                    first = next(files, b"")
                yield self._head(asker, form, opened.version, admitted)
                yield self._first_lines(opened, form, version=told) + first
                yield from files
            noted.rows = admitted.rows
            refresh = None
            if body.include_refresh_token:
                refresh = self.tokens.write("refreshToken", bound_to, (opened.version, opened.metadata.id))
            after = query.next_page
            yield from self._end(
                asker,
                lines.EndStream(
                    refresh_token=refresh,
                    next_page_token=None
                    if after is None
                    else self.tokens.write("pageToken", bound_to, _PageOfVersion(opened.version, after)),
                    min_url_expiration_timestamp=writer.expires_ms,
                ),
            )

    def _changes(self, asker: Asker, asked: ChangesAsked, method: str, *, by_feed: bool) -> Lines:
        with self._asked(asker, method) as (noted, table):
            newest = self._opened(asker, table)
            times = self._times(newest, asker)
            bound_to = (_bound_to(asker, table, asked), newest.metadata.id)
            page = None
            if asked.page_token:
                page = self.tokens.read("pageToken", (method, bound_to), asked.page_token, ChangePage)
                start, end = page.start, page.end
            else:
                start, end = self._range(asked, newest, times)
            commits = commits_of(times, start, end)
            first, last = self._opened(asker, table, version=start), self._opened(asker, table, version=end)
            if by_feed:
                check_feed(first.metadata, start)
                check_feed(last.metadata, end)
            form = choose_format(last.protocol, last.metadata, asker.capabilities)
            choose_format(first.protocol, first.metadata, asker.capabilities)
            shown = first if form == DELTA or asked.include_historical_metadata else last
            storage = self._source(last, asker).snapshot.storage
            query = ChangeQuery(
                storage=storage.scoped(Deadline.after(self._served.admission.seconds_of(asker.client))),
                commits=commits,
                times=times,
                form=form,
                by_feed=by_feed,
                with_metadata=asked.include_historical_metadata,
                with_protocol=asked.include_historical_protocol,
                max_files=None if asked.max_files is None else min(asked.max_files, limits.PAGE_COUNT_MAX),
                page=page,
            )
            writer = ChangeLines(
                form,
                self._links(asker, table, storage, end),
                root=storage.root,
                is_partitioned=bool(last.metadata.partition_columns),
            )
            with self._admitted(asker, table) as admitted, closing(query.lines(writer, admitted)) as files:
                chunk = next(files, b"")
                yield self._head(asker, form, start, admitted)
                protocol_version = shown.version if asked.include_historical_protocol else None
                yield lines.protocol_line(shown.protocol, form, version=protocol_version)
                yield lines.metadata_line(shown.metadata, form, version=shown.version) + chunk
                yield from files
                noted.rows = writer.files
                token = None
                if query.next_page is not None:
                    token = self.tokens.write("pageToken", (method, bound_to), query.next_page)
                end_stream = lines.EndStream(
                    next_page_token=token, min_url_expiration_timestamp=writer.expires_ms
                )
                yield from self._end(asker, end_stream)

    def _range(self, asked: ChangesAsked, newest: Table, times: CommitTimes) -> tuple[int, int]:
        start, end = asked.starting_version, asked.ending_version
        if start is None:
            assert asked.starting_timestamp is not None
            start = version_from(times, asked.starting_timestamp)
        if asked.ending_timestamp is not None:
            end = version_until(times, asked.ending_timestamp)
        end = newest.version if end is None else min(end, newest.version)
        if start > newest.version:
            raise InvalidRequestError(
                f"the table has no version {start} yet: the newest is {newest.version}",
                "startingVersion",
                f"ask from version {newest.version} or an older one on",
            )
        if start > end:
            raise InvalidRequestError(
                f"the range begins at version {start}, behind its end at {end}",
                "startingVersion",
                "give an end that is not before the start",
            )
        return start, end

    def _page_of(self, bound_to: object, body: QueryBody) -> _PageOfVersion | None:
        if not body.page_token:
            return None
        return self.tokens.read("pageToken", bound_to, body.page_token, _PageOfVersion)

    @contextmanager
    def _asked(self, asker: Asker, method: str) -> Iterator[tuple[Call, ServedTable]]:
        with call(self._served.metrics, "sharing", method, asker.request_id) as noted:
            noted.client = asker.client.name
            directory = Directory(self._served.catalog, asker.client, self.tokens)
            table = directory.table(asker.share, asker.schema, asker.name)
            noted.table = table.name
            yield noted, table

    @contextmanager
    def _admitted(self, asker: Asker, table: ServedTable) -> Iterator[Admitted]:
        what = f"shared files of {table.name}"
        with part_across("scan") as trace, self._served.admission.admitted(asker.client, what) as admitted:
            asker.audience.admit(admitted)
            try:
                yield admitted
            finally:
                trace.note(table=table.name, what="files", rows=admitted.rows)

    def _opened(
        self, asker: Asker, table: ServedTable, *, version: int | None = None, timestamp: str | None = None
    ) -> Table:
        return self._served.catalog.open(table.name, asker.client, version=version, timestamp=timestamp)

    def _source(self, opened: Table, asker: Asker) -> RowSource:
        seconds = self._served.admission.seconds_of(asker.client)
        return opened.scan(scan_timeout_seconds=seconds).source

    def _times(self, opened: Table, asker: Asker) -> CommitTimes:
        storage = self._source(opened, asker).snapshot.storage
        return commit_times(storage.scoped(), parallelism=limits.COMMIT_PARALLELISM)

    def _links(self, asker: Asker, table: ServedTable, storage: Storage, version: int) -> FileLinks:
        seconds = self._served.config.server.link_seconds
        if table.file_links == "store":
            return StoreLinks(storage, valid_seconds=seconds)
        return ServerLinks(
            self.links,
            asker.base_url,
            table=table.name,
            client=asker.client.name,
            version=version,
            valid_seconds=seconds,
        )

    def _head(self, asker: Asker, form: str, version: int, admitted: Admitted | None) -> Head:
        told = f"responseformat={form}"
        if asker.capabilities.wants_end:
            told += ";includeendstreamaction=true"
        headers = {VERSION_HEADER: str(version), CAPABILITIES_HEADER: told}
        if asker.file_id is not None:
            headers[FILE_ID_HEADER] = asker.file_id
        return Head(headers=headers, wants_end=asker.capabilities.wants_end, admitted=admitted)

    def _first_lines(self, opened: Table, form: str, *, version: int | None) -> bytes:
        info = opened.info()
        metadata = lines.metadata_line(
            opened.metadata, form, version=version, size=info.size_bytes, num_files=info.num_files
        )
        return lines.protocol_line(opened.protocol, form) + metadata

    def _end(self, asker: Asker, end: lines.EndStream) -> Generator[bytes, None, None]:
        """The last line, for whoever asked for it or needs what it tells."""
        if asker.capabilities.wants_end or end.next_page_token or end.refresh_token:
            yield lines.end_line(end)


def _query_of(source: RowSource, body: QueryBody, page: PageState | None) -> SnapshotQuery:
    hints = read_hints(source.snapshot, body.predicate_hints, body.json_predicate_hints)
    return SnapshotQuery(
        source=source if hints.predicate is None else source.with_config(predicate=hints.predicate),
        hints=hints,
        limit=body.limit_hint,
        max_files=body.max_files,
        page=page,
    )


def _told_version(version: int | None, timestamp: str | None, opened: Table) -> int | None:
    """Who asks for a version or a time is told which one it is."""
    return None if version is None and timestamp is None else opened.version


def _bound_to(asker: Asker, table: ServedTable, asked: QueryBody | ChangesAsked) -> object:
    """What a token is for: the same question, but for where a page begins and how long it is."""
    question = {
        name: value
        for name, value in msgspec.to_builtins(asked).items()
        if name not in {"maxFiles", "pageToken", "refreshToken", "includeRefreshToken"}
    }
    formats = sorted(asker.capabilities.formats)
    return (asker.client.name, table.name, sorted(question.items()), formats)
