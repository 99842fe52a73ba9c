"""Openings of a table's newest version that many ask for at once, done once for them all.

Why: opening lists the log, and a hundred clients that ask in the same moment need not list it as often.
Contract: who asks gets a version that was looked for after it asked: openings that began before are not
shared. Who had to wait before it comes here says since when it asks, and is served by any opening since then:
of a hundred that wait for their turn the first opens for all. Two run side by side, so that one that is slow
does not hold up who asks next.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future

from lazydelta.table import Table

_AT_ONCE = 2


class SharedOpening:
    """The openings of one table."""

    def __init__(self, open_newest: Callable[[], Table]) -> None:
        self._open = open_newest
        self._places = threading.Semaphore(_AT_ONCE)
        self._lock = threading.Lock()
        self._next: Future[Table] | None = None  # has not begun yet
        self._latest: tuple[float, Table] | None = None  # when it began, and what it found

    def newest(self, asked_at: float | None = None) -> Table:
        """The newest version as of that moment of `time.monotonic()`, of now if there is none, or later."""
        asked_at = time.monotonic() if asked_at is None else asked_at
        with self._lock:
            if self._latest is not None and self._latest[0] >= asked_at:
                return self._latest[1]
            is_first = self._next is None
            if self._next is None:
                self._next = Future()
            mine = self._next
        if is_first:
            self._run(mine)
        return mine.result()

    def _run(self, mine: Future[Table]) -> None:
        with self._places:
            with self._lock:
                self._next = None  # who asks from here on may have missed something
                began = time.monotonic()
            try:
                found = self._open()
            except BaseException as error:  # noqa: BLE001 - it is everybody's
                mine.set_exception(error)
                return
            with self._lock:
                if self._latest is None or self._latest[0] < began:
                    self._latest = (began, found)
            mine.set_result(found)
