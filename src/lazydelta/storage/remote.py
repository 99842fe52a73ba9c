"""A table's root in Azure or S3, through obstore: every attempt counted, bounded, retried, judged.

Contract: `Storage`. At most `limits.CONNECTIONS_MAX` requests are under way at once at one host, over all
tables and scans of the process. Bodies are checked against their length before they are handed out: whole
objects are asked for as ranges from 0 on, because only the answer to a range tells the object's length beside
the body's. Ranges of one object must be of one version of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

import obstore
from obstore.exceptions import AlreadyExistsError

from lazydelta import limits
from lazydelta.errors import StorageError
from lazydelta.storage.background import pool
from lazydelta.storage.counters import IoCounters, IoTicket
from lazydelta.storage.deadline import NEVER, Deadline
from lazydelta.storage.failures import FAILURES, judge, no_credentials
from lazydelta.storage.forks import check_fork
from lazydelta.storage.in_time import awaited, in_time
from lazydelta.storage.interface import ObjectInfo, ObjectNotFoundError, ObjectTooShortError, past_end
from lazydelta.storage.names import checked_name, uri_of
from lazydelta.storage.object_versions import ObjectVersions, replaced
from lazydelta.storage.panics import is_panic, panicked
from lazydelta.storage.places import Places
from lazydelta.storage.providers import ProviderProblem
from lazydelta.storage.ranges import coalesce, cut
from lazydelta.storage.remote_link import RemoteLink
from lazydelta.storage.remote_listing import ListingPlan, pages
from lazydelta.storage.retry import Retrier, TransientError, with_retries
from lazydelta.storage.throttling import ask_retry_after, signed_address

T = TypeVar("T")
GetResult = Any  # obstore's result, options and metadata exist for type checkers only
GetOptions = Any  # likewise
ObjectMeta = Any  # likewise
# How many objects the store sends a page. Azure's offset is inclusive, and obstore drops that one object from
# the first page: asking for one fewer each time never takes a second page to fill a chunk.
PAGE_OBJECTS = {"s3": 1000, "azure": 5000 - 1}
_WHOLE: GetOptions = {"range": {"offset": 0}}
_UNRANGED: GetOptions = {}


class RemoteStorage:
    """`Storage` over obstore."""

    def __init__(
        self,
        link: RemoteLink,
        counters: IoCounters | None = None,
        deadline: Deadline = NEVER,
        versions: ObjectVersions | None = None,
    ) -> None:
        self._link = link
        self._counters = counters or IoCounters()
        self._deadline = deadline
        self._versions = versions or ObjectVersions()

    def __repr__(self) -> str:
        return f"RemoteStorage({self.root!r})"

    @property
    def root(self) -> str:
        """The table's canonical URI."""
        return self._link.root

    @property
    def counters(self) -> IoCounters:
        """What has been asked of the store through this object so far."""
        return self._counters

    @property
    def places(self) -> Places | None:
        """What may be read outside the table's root."""
        return self._link.places

    def scoped(self, deadline: Deadline | None = None) -> RemoteStorage:
        """The same client with counters of its own; the earlier deadline holds."""
        counters = IoCounters(self._counters)
        if deadline is None:  # not a scan's: what it reads holds for the scans after it
            return RemoteStorage(self._link, counters, self._deadline, self._versions)
        earlier = self._deadline.earlier(deadline)
        return RemoteStorage(self._link, counters, earlier, ObjectVersions(self._versions))

    def forget_version(self, where: str) -> None:
        """The object at this address may be another one from now on."""
        self._versions.forget(where)

    def at(self, prefix: str, root: str) -> RemoteStorage:
        """Another place in the same container, with the same client, counters and deadline."""
        return RemoteStorage(self._link.at(prefix, root), self._counters, self._deadline, self._versions)

    def list_from(self, folder: str, after: str | None = None) -> Iterator[ObjectInfo]:
        """Objects directly below `folder` after `after`, a page of the store at a time."""
        name = checked_name(folder, self.root) if folder else ""
        plan = ListingPlan(
            folder=self._link.key(name) if name else self._link.prefix,
            after=after,
            page_objects=PAGE_OBJECTS[self._link.kind],
            page_seconds=self._link.policy.timeout_seconds,
            offset_is_served=self._link.lists_from_offset,
        )
        shown = f"{folder}/" if folder else ""
        for page in pages(self._link.store, plan, self._attempts("list", name)):
            for base_name, meta in page:
                yield ObjectInfo(
                    name=shown + base_name,
                    size_bytes=meta["size"],
                    modified_ms=round(meta["last_modified"].timestamp() * 1000),
                    etag=meta["e_tag"],
                )

    def get(self, name: str) -> bytes:
        """The whole object."""
        key, where = self._locate(name)

        def fetch(options: GetOptions = _WHOLE) -> bytes:
            result = obstore.get(self._link.store, key, options=options)
            body = result.bytes().to_bytes()
            _check_length(len(body), result.meta["size"], where)
            return body

        try:
            return self._request("get", name, fetch, read=len)
        except ObjectTooShortError:  # an empty object has no first byte
            return self._request("get", name, partial(fetch, _UNRANGED), read=len)

    def get_range(self, name: str, start: int, length: int) -> bytes:
        """`length` bytes from `start`."""
        if length == 0:
            return b""
        return self._fetch_range(name, start, length)

    def get_ranges(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Many (start, length) at once; the first span is fetched by the calling thread."""
        spans = coalesce(ranges)
        # All begin before any ends: one round trip, however the threads are scheduled.
        tickets = [self._counters.begin("get_range") for _ in spans]
        fetches = [
            partial(self._fetch_range, name, span.start, span.end - span.start, ticket)
            for span, ticket in zip(spans, tickets, strict=True)
        ]
        later = [pool().submit(fetch) for fetch in fetches[1:]]
        try:
            first = [fetch() for fetch in fetches[:1]]
            where = uri_of(self.root, name)
            bodies = first + [awaited(future, self._deadline, where) for future in later]
        finally:
            for future in later:
                future.cancel()
        return cut(ranges, spans, bodies)

    def get_stream(self, name: str, chunk_bytes: int) -> Iterator[bytes]:
        """The whole object in chunks, resumed by range where a connection broke off."""
        key, where = self._locate(name)
        retrier = self._retrier(key)
        position, size, etag = 0, None, None
        whole = _WHOLE
        while size is None or position < size:
            try:
                opening = partial(self._open_from, key, position, etag, size, whole)
                attempt = partial(self._attempt, "get", name, opening, retrier)
                result = self._link.with_renewal(attempt)
                size, etag = self._same_object(result.meta, size, etag, where)
                for chunk in self._chunks(name, result, chunk_bytes):
                    if position + len(chunk) > size:
                        _check_length(position + len(chunk), size, where)
                    position += len(chunk)
                    retrier.progress()
                    yield chunk
                _check_length(position, size, where)
            except TransientError as error:
                failure = error
            except ObjectTooShortError:
                if whole is _UNRANGED or size is not None:
                    raise
                whole = _UNRANGED  # an empty object has no first byte: the store must say that it is empty
                continue
            else:
                return
            retrier.failed(failure)

    def put_if_absent(self, name: str, body: bytes) -> bool:
        """Write the object unless one is there already.

        An attempt whose answer was lost may have written. If a later attempt finds an object with exactly
        our bytes, it is ours.
        """
        key, where = self._locate(name)
        attempts = 0

        def write() -> bool:
            nonlocal attempts
            attempts += 1
            try:
                obstore.put(self._link.store, key, body, mode="create", use_multipart=False)
            except AlreadyExistsError:
                return False
            return True

        written = self._request("put", name, write, written=lambda done: len(body) if done else 0)
        self._versions.forget(where)
        return written or (attempts > 1 and self.get(name) == body)

    def delete(self, name: str) -> bool:
        """Delete the object. S3 does not say whether there was one, so it is asked first."""
        key, where = self._locate(name)
        self._versions.forget(where)
        try:
            self._request("head", name, lambda: obstore.head(self._link.store, key))
            self._request("delete", name, lambda: obstore.delete(self._link.store, key))
        except ObjectNotFoundError:
            return False
        return True

    def sign(self, names: Sequence[str], valid_seconds: float) -> list[str]:
        """Addresses by which anyone may read these objects, for so long."""
        keys = [self._locate(name)[0] for name in names]
        expires_in = timedelta(seconds=valid_seconds)

        def sign() -> list[str]:
            return list(obstore.sign(self._link.store, "GET", keys, expires_in))

        return self._request("sign", names[0], sign)

    # --- one request ---------------------------------------------------------

    def _fetch_range(self, name: str, start: int, length: int, ticket: IoTicket | None = None) -> bytes:
        key, where = self._locate(name)

        def fetch() -> bytes:
            result = obstore.get(self._link.store, key, options={"range": (start, start + length)})
            self._versions.check(where, result.meta["e_tag"])
            if result.range != (start, start + length):
                raise past_end(where)
            body = result.bytes().to_bytes()
            _check_length(len(body), length, where)
            return body

        return self._request("get_range", name, fetch, read=len, ticket=ticket)

    def _open_from(
        self, key: str, position: int, etag: str | None, size: int | None, whole: GetOptions
    ) -> GetResult:
        options = whole
        if size is not None:
            options = {"range": (position, size), "if_match": etag}
        return obstore.get(self._link.store, key, options=options)

    def _same_object(
        self, meta: ObjectMeta, size: int | None, etag: str | None, where: str
    ) -> tuple[int, str | None]:
        """Size and e-tag of the stream's object; another size or e-tag than before is another object."""
        if size is not None and (meta["size"] != size or meta["e_tag"] != etag):
            raise replaced(where)
        self._versions.check(where, meta["e_tag"])
        return meta["size"], meta["e_tag"]

    def _chunks(self, name: str, result: GetResult, chunk_bytes: int) -> Iterator[bytes]:
        """The body as it arrives. No permit is held between chunks: the consumer may take its time."""
        where = uri_of(self.root, name)
        stream = iter(result.stream(min_chunk_size=chunk_bytes))
        while True:
            self._deadline.check(where)
            self._link.host.gate.enter(self._deadline, where)
            chunk = in_time(
                partial(self._with_permit, partial(next, stream, None), where), self._deadline, where
            )
            if chunk is None:
                return
            body = bytes(chunk)
            self._counters.add_bytes_read(len(body))
            yield body

    def _request(
        self,
        kind: str,
        name: str,
        action: Callable[[], T],
        *,
        read: Callable[[T], int] | None = None,
        written: Callable[[T], int] | None = None,
        ticket: IoTicket | None = None,
    ) -> T:
        begun = iter([ticket])  # the first attempt may have been counted by the caller already
        retrier = self._retrier(self._link.key(name) if name else self._link.prefix or "_")

        def attempt() -> T:
            return self._attempt(
                kind, name, action, retrier, read=read, written=written, ticket=next(begun, None)
            )

        return with_retries(partial(self._link.with_renewal, attempt), retrier)

    def _attempt(
        self,
        kind: str,
        name: str,
        action: Callable[[], T],
        retrier: Retrier,
        *,
        read: Callable[[T], int] | None = None,
        written: Callable[[T], int] | None = None,
        ticket: IoTicket | None = None,
    ) -> T:
        """One request over the wire, counted whatever comes of it."""
        where = uri_of(self.root, name)
        check_fork(where)
        self._enter(retrier, where)
        ticket = ticket or self._counters.begin(kind)

        def counted() -> T:
            bytes_read = bytes_written = 0
            try:
                self._link.prepare(self._deadline, where)
                answer = action()
                bytes_read = 0 if read is None else read(answer)
                bytes_written = 0 if written is None else written(answer)
            finally:
                self._counters.finish(ticket, bytes_read=bytes_read, bytes_written=bytes_written)
            return answer

        return in_time(partial(self._with_permit, counted, where, kind), self._deadline, where)

    def _enter(self, retrier: Retrier, where: str) -> None:
        """Wait for a permit, and until the host wants to be asked again."""
        gate = self._link.host.gate
        while True:
            self._deadline.check(where)
            retrier.hold(gate.pause_seconds(), where)
            gate.enter(self._deadline, where)
            if gate.pause_seconds() == 0:
                retrier.begin()
                return
            gate.leave()

    def _with_permit(self, action: Callable[[], T], where: str, request: str = "get") -> T:
        """What holds a permit, by whichever thread; its failure is judged outside the `except`."""
        try:
            return action()
        except ProviderProblem as problem:
            failure: Exception = no_credentials(problem, kind=self._link.kind, where=where)
        except FAILURES as error:
            end = self._link.signature_end
            failure = judge(error, kind=self._link.kind, where=where, request=request, signature_end=end)
        except BaseException as error:
            if not is_panic(error):
                raise
            failure = panicked(where)
        finally:
            self._link.host.gate.leave()
        raise failure

    def _attempts(self, kind: str, name: str) -> Callable[[Callable[[], T]], T]:
        """A function that runs one action as requests of that kind, retries included."""
        return lambda action: self._request(kind, name, action)

    def _retrier(self, key: str) -> Retrier:
        return Retrier(self._link.policy, self._counters, self._deadline, partial(self._asked_pause, key))

    def _asked_pause(self, key: str) -> float:
        """How long the host wants to be left alone, after it throttled; 0 where there is no time to ask."""
        timeout = min(limits.RETRY_AFTER_ASK_SECONDS, self._deadline.seconds_left())
        if timeout <= 0:
            return 0.0

        def question() -> float | None:
            address = signed_address(self._link.store, key)
            if address is None:
                return None
            ticket = self._counters.begin("retry_after")
            try:
                return ask_retry_after(address, timeout_seconds=timeout)
            finally:
                self._counters.finish(ticket)

        def ask() -> float | None:
            try:  # signing may take a request of its own
                return in_time(question, Deadline.after(timeout), self.root)
            except StorageError:
                return None

        return self._link.host.pause.seconds(ask, timeout_seconds=timeout)

    def _locate(self, name: str) -> tuple[str, str]:
        return self._link.key(checked_name(name, self.root)), uri_of(self.root, name)


def _check_length(have: int, length: int, where: str) -> None:
    if have != length:
        raise TransientError(f"the store sent {have} of {length} bytes", where)
