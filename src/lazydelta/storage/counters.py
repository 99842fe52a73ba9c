"""Requests, bytes and sequential round trips: the numbers that decide latency on a real store.

A request's depth is one more than the deepest request that had finished when it began; the deepest of
all is the number of round trips that had to happen one after the other, however many ran side by side.
Every attempt counts as a request, because every attempt costs a round trip; `retries` says how many of
them repeated a request that had failed. Requests that one thread makes one after the other because they
take no time, though none waits for another, are `side_by_side` all the same.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec


class IoSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The counters at one moment."""

    requests: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    round_trips: int = 0
    retries: int = 0
    requests_by_kind: dict[str, int] = msgspec.field(default_factory=dict)


class IoTicket(msgspec.Struct, frozen=True):
    """A request under way: its depth here, and its depth in the parent's account, which may differ."""

    depth: int
    parent: IoTicket | None = None


class IoCounters:
    """Thread-safe counters; a child adds to its parent as well."""

    def __init__(self, parent: IoCounters | None = None) -> None:
        self._parent = parent
        self._lock = threading.Lock()
        self._by_kind: Counter[str] = Counter()
        self._bytes_read = 0
        self._bytes_written = 0
        self._retries = 0
        self._depth_done = 0
        self._depth_together: dict[int, int] = {}  # by thread, of what it asks for side by side

    @contextmanager
    def side_by_side(self) -> Iterator[None]:
        """What this thread asks for meanwhile has the same depth: nothing of it waits for the rest."""
        thread = threading.get_ident()
        if thread in self._depth_together:
            yield
            return
        self._depth_together[thread] = self._depth_done + 1
        try:
            if self._parent is None:
                yield
            else:
                with self._parent.side_by_side():
                    yield
        finally:
            del self._depth_together[thread]

    def begin(self, kind: str) -> IoTicket:
        """Count one request of that kind (`list`, `get`, `put`, …); keep the ticket for `finish`."""
        above = None if self._parent is None else self._parent.begin(kind)
        with self._lock:
            self._by_kind[kind] += 1
            together = self._depth_together and self._depth_together.get(threading.get_ident())
            return IoTicket(together or self._depth_done + 1, above)

    def finish(self, ticket: IoTicket, *, bytes_read: int = 0, bytes_written: int = 0) -> None:
        """The request that began with `ticket` has ended, well or not. Only once a ticket."""
        if self._parent is not None:
            assert ticket.parent is not None
            self._parent.finish(ticket.parent, bytes_read=bytes_read, bytes_written=bytes_written)
        with self._lock:
            self._bytes_read += bytes_read
            self._bytes_written += bytes_written
            self._depth_done = max(self._depth_done, ticket.depth)

    def add_bytes_read(self, byte_count: int) -> None:
        """Bytes that arrived after the answer had begun: a stream's chunks."""
        if self._parent is not None:
            self._parent.add_bytes_read(byte_count)
        with self._lock:
            self._bytes_read += byte_count

    def retry(self) -> None:
        """One more attempt at a request that failed."""
        if self._parent is not None:
            self._parent.retry()
        with self._lock:
            self._retries += 1

    def snapshot(self) -> IoSnapshot:
        """The numbers so far."""
        with self._lock:
            return IoSnapshot(
                requests=sum(self._by_kind.values()),
                bytes_read=self._bytes_read,
                bytes_written=self._bytes_written,
                round_trips=self._depth_done,
                retries=self._retries,
                requests_by_kind=dict(self._by_kind),
            )
