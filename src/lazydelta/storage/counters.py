"""Requests, bytes and sequential round trips: the numbers that decide latency on a real store.

A request's depth is one more than the deepest request that had finished when it began; the deepest of
all is the number of round trips that had to happen one after the other, however many ran side by side.
"""

from __future__ import annotations

import threading
from collections import Counter

import msgspec


class IoSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The counters at one moment."""

    requests: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    round_trips: int = 0
    retries: int = 0
    requests_by_kind: dict[str, int] = msgspec.field(default_factory=dict)


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

    def begin(self, kind: str) -> int:
        """Count one request of that kind (`list`, `get`, `put`, …); keep the depth for `finish`."""
        if self._parent is not None:
            self._parent.begin(kind)
        with self._lock:
            self._by_kind[kind] += 1
            return self._depth_done + 1

    def finish(self, depth: int, *, bytes_read: int = 0, bytes_written: int = 0) -> None:
        """The request that began at `depth` has ended, well or not."""
        if self._parent is not None:
            self._parent.finish(depth, bytes_read=bytes_read, bytes_written=bytes_written)
        with self._lock:
            self._bytes_read += bytes_read
            self._bytes_written += bytes_written
            self._depth_done = max(self._depth_done, depth)

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
