"""How many requests may be under way at one host, and whether it asked everybody to wait.

Why: a store throttles an account, not a scan, and a machine has so many connections; two hundred scans that
each keep a limit of their own keep none.
Contract: one gate for a host and a process, shared by every table and scan. Permits are handed over in the
order in which they were asked for, so that nobody starves. Waiting ends at the scan's deadline. Nobody who
holds a permit waits for another one, so that the gate cannot lock itself up.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque

from lazydelta import limits
from lazydelta.storage.deadline import Deadline


class HostGate:
    """The permits of one host, first come, first served."""

    def __init__(self, permits: int = limits.CONNECTIONS_MAX) -> None:
        self._permits = permits
        self.start_anew()

    def start_anew(self) -> None:
        """Forget permits, waiters and pauses: after a fork they are another process's."""
        self._lock = threading.Lock()
        self._free = self._permits
        self._waiting: deque[threading.Lock] = deque()
        self._not_before = -math.inf

    def enter(self, deadline: Deadline, where: str) -> None:
        """Take a permit, in turn; `leave` gives it back. Raises at the scan's deadline."""
        with self._lock:
            if self._free and not self._waiting:
                self._free -= 1
                return
            turn = threading.Lock()
            turn.acquire()
            self._waiting.append(turn)
        has_permit = False
        try:
            has_permit = turn.acquire(timeout=min(deadline.seconds_left(), threading.TIMEOUT_MAX))
        finally:
            if not has_permit:  # the deadline, or an exception out of another thread
                self._give_up(turn)
        if not has_permit:
            raise deadline.passed(where)

    def leave(self) -> None:
        """Give the permit to who has waited longest."""
        with self._lock:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                assert self._free < self._permits, "a permit is given back once"
                self._free += 1

    def hold_back(self, seconds: float) -> None:
        """The host asked for it: no request shall begin for so long."""
        with self._lock:
            self._not_before = max(self._not_before, time.monotonic() + seconds)

    def pause_seconds(self) -> float:
        """How long requests are still held back."""
        return max(0.0, self._not_before - time.monotonic())

    def _give_up(self, turn: threading.Lock) -> None:
        with self._lock:
            if turn in self._waiting:
                self._waiting.remove(turn)
                return
        self.leave()  # it was handed over just now
