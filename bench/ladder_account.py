"""The account of a server that makes its readers wait: requests, bytes, round trips, each request by itself.

Contract: thread-safe; round trips are judged as `lazydelta` judges its own, but on this side of the line.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from lazydelta.storage import IoCounters, IoSnapshot


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
    def counted(self, kind: str, path: str, ask: str) -> Iterator[Callable[[int], None]]:
        """One request: it waits, then the block answers.

        The block tells how many bytes it sends before the last of them goes out: whoever has that one may ask
        again at once, and that request comes after this one.
        """
        counters, log = self._counters, self.log
        ticket, began = counters.begin(kind), time.monotonic()
        is_open = True

        def end(byte_count: int) -> None:
            nonlocal is_open
            if is_open:
                is_open = False
                counters.finish(ticket, bytes_read=byte_count)
                times = {"began": began, "ended": time.monotonic()}
                log.append({"kind": kind, "path": path, "range": ask, "depth": ticket.depth, **times})

        try:
            time.sleep(self._latency_s)
            yield end
        finally:
            end(0)
