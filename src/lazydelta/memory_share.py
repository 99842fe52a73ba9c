"""What one scan holds of the process's memory: counted, told by `explain`, and given back when it ends.

Contract: thread-safe. `close` gives back whatever is still held; what comes afterwards, from a thread that
had not noticed, counts for nothing. A share that was never closed holds only what `held` and `give` leave.
`stop_waiting` and `close` end a wait in another thread at once, by an error, and the scan's deadline ends it.
Threads of one share never wait for memory that the share holds.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from lazydelta import limits
from lazydelta.errors import InvalidRequestError, StorageError
from lazydelta.memory_budget import (
    PROCESS_MEMORY,
    MemoryBudget,
    MemoryKind,
    WaitStoppedError,
    WaitTimedOutError,
)
from lazydelta.telemetry import log_event

_budget: ContextVar[MemoryBudget | None] = ContextVar("budget", default=None)


@contextmanager
def within(budget: MemoryBudget | None) -> Iterator[None]:
    """Shares that are made in here, in this thread, are of that budget; None: of the process's own."""
    token = _budget.set(budget)
    try:
        yield
    finally:
        _budget.reset(token)


class MemoryShare:
    """One scan's account."""

    def __init__(self, budget: MemoryBudget | None = None) -> None:
        self._budget = budget or _budget.get() or PROCESS_MEMORY
        self._lock = threading.Lock()
        self._held = [0, 0, 0]  # by kind
        self._taking = [threading.Lock() for _ in MemoryKind]  # by kind
        self._is_closed = False
        self._stop = threading.Event()
        self._until = self._timeout_seconds = math.inf
        self._where = ""
        self.waits = 0
        self.wait_seconds = 0.0

    @property
    def held_bytes(self) -> int:
        """At this moment."""
        return sum(self._held)

    def begin(self) -> None:
        """A run begins: what it needs at the least is counted, and always granted."""
        self._budget.hold(limits.MEMORY_SCAN_BYTES)
        self._note(limits.MEMORY_SCAN_BYTES, MemoryKind.AHEAD)

    def wait_until(self, moment: float, *, timeout_seconds: float, where: str) -> None:
        """Nobody waits here past that moment of `time.monotonic()`, which is the deadline of a scan."""
        self._until, self._timeout_seconds, self._where = moment, timeout_seconds, where

    def try_take(self, byte_count: int) -> bool:
        """Whether so much may be held besides what is needed: read ahead, kept, remembered."""
        if byte_count <= 0:
            return True
        if self._is_closed or not self._budget.try_take(byte_count):
            return False
        self._note(byte_count, MemoryKind.AHEAD)
        return True

    def take(self, byte_count: int, kind: MemoryKind) -> int:
        """What is needed to go on, after a wait unless some of the kind is held; how much to give back.

        One thread of the scan stands in line for a kind. The others get theirs without a wait once it has its
        piece, which it may not be able to give back before they go on.
        """
        if self._is_closed or byte_count <= 0:
            return 0
        with self._taking[kind]:
            try:
                granted, seconds = self._budget.take(
                    byte_count, kind, may_wait=self._held[kind] == 0, stop=self._stop, until=self._until
                )
            except WaitTimedOutError:
                raise StorageError(
                    f"the scan's deadline of {self._timeout_seconds:g} s passed while it waited for memory",
                    f"{self._where}; the memory of this process is held by other scans",
                    "raise scan_timeout_seconds or delta.memory.bytes, run fewer scans at once, or close "
                    "those that nobody reads from",
                ) from None
            except WaitStoppedError:
                raise InvalidRequestError(
                    "the scan was closed while it waited for memory",
                    "the memory of this process",
                    "run the scan again; delta.memory.bytes gives scans more room",
                ) from None
            if seconds:
                self.waits += 1
                self.wait_seconds += seconds
                log_event("waited for memory", kind=kind.name, byte_count=granted, seconds=seconds)
            self._note(granted, kind)
        return granted

    def give(self, byte_count: int, kind: MemoryKind = MemoryKind.AHEAD) -> None:
        """So much is not held any more."""
        with self._lock:
            gone = min(byte_count, self._held[kind])
            self._held[kind] -= gone
        if gone:
            self._budget.give(gone, kind)

    @contextmanager
    def held(self, byte_count: int, kind: MemoryKind) -> Iterator[None]:
        """Hold so much for a while, after a wait if need be."""
        granted = self.take(byte_count, kind)
        try:
            yield
        finally:
            self.give(granted, kind)

    def stop_waiting(self) -> None:
        """Whoever waits here for memory, in whichever thread, ends with an error; nobody waits any more."""
        self._budget.stop_waiting(self._stop)

    def close(self) -> None:
        """Give everything back."""
        self.stop_waiting()
        with self._lock:
            self._is_closed = True
            held, self._held = self._held, [0, 0, 0]
        for kind, byte_count in zip(MemoryKind, held, strict=True):
            if byte_count:
                self._budget.give(byte_count, kind)

    def _note(self, byte_count: int, kind: MemoryKind) -> None:
        with self._lock:
            is_late = self._is_closed
            if not is_late:
                self._held[kind] += byte_count
        if is_late:
            self._budget.give(byte_count, kind)
