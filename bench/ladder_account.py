"""The account of a server that makes its readers wait: requests, bytes, round trips, each request by itself.

Contract: thread-safe; round trips are judged as `lazydelta` judges its own, but on this side of the line.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lazydelta.storage.counters import IoCounters, IoSnapshot


class RequestAccount:
    """Counts since the latest `begin_anew`."""

    def __init__(self, latency_s: float) -> None:
        self._latency_s = latency_s
        self.begin_anew()

    def begin_anew(self) -> None:
        """Forget what was counted; what is under way is counted nowhere."""
        self._counters = IoCounters()
        self.log: list[dict[str, Any]] = []

    def snapshot(self) -> IoSnapshot:
        """The sums so far."""
        return self._counters.snapshot()

    @contextmanager
    def counted(self, kind: str, path: str, ask: str) -> Iterator[list[int]]:
        """One request: it waits, then the block answers and notes the bytes that it sent."""
        counters, log, sent = self._counters, self.log, [0]
        ticket, began = counters.begin(kind), time.monotonic()
        try:
            time.sleep(self._latency_s)
            yield sent
        finally:
            counters.finish(ticket, bytes_read=sent[0])
            times = {"began": began, "ended": time.monotonic()}
            log.append({"kind": kind, "path": path, "range": ask, "depth": ticket.depth, **times})
