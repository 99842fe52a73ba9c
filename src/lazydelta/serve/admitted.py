"""A scan that was admitted: what it gave so far, and whether it has been told to stop.

Contract: whoever tells it to stop may be another thread than the one that runs it.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lazydelta.serve.refusals import CancelledError, LimitReachedError, UnavailableError
from lazydelta.serve.sign_in import Client


class Admitted:
    """One scan on the list."""

    def __init__(
        self,
        client: Client,
        what: str,
        *,
        number: int = 0,
        ticket_id: str = "",
        seconds: float = 0.0,
        rows_max: int = 0,
    ) -> None:
        """`number`: by arrival; `seconds` and `rows_max`: what it may take and give, 0 is no limit."""
        self.id = uuid.uuid4().hex
        self.number = number
        self.ticket_id = ticket_id
        self.ends_at = time.monotonic() + seconds if seconds > 0 else float("inf")
        self.seconds = seconds
        self.rows_max = rows_max
        self.client = client
        self.what = what  # for people: table, and files, rows or SQL
        self.began_at = time.time()
        self.rows = 0
        self._stopped = threading.Event()
        self._on_stop: list[Callable[[], None]] = []
        self.reason = ""
        self.is_cancelled = False  # by the client
        self.is_late = False
        self.is_waiting = False  # for its client: nothing works for it meanwhile

    @property
    def is_stopped(self) -> bool:
        """Whether it has been told to stop."""
        return self._stopped.is_set()

    def when_stopped(self, act: Callable[[], None]) -> None:
        """Call this, from whichever thread tells it to stop."""
        self._on_stop.append(act)
        if self._stopped.is_set():
            act()

    def stop(self, reason: str, *, is_cancelled: bool = False, is_late: bool = False) -> None:
        """Tell it to stop; `is_late`: its time has run out."""
        if not self._stopped.is_set():
            self.reason = reason
            self.is_cancelled = is_cancelled
            self.is_late = is_late
            self._stopped.set()
            for act in self._on_stop:
                act()

    def end(self) -> None:
        """It is over, and lets go of what could be stopped: lists of queries may know it for long."""
        self._on_stop = []

    def gave(self, row_count: int, *, is_limited: bool = True) -> None:
        """Another batch goes out; raises where it must not."""
        self.check()
        self.rows += row_count
        if is_limited and 0 < self.rows_max < self.rows:
            raise LimitReachedError(
                f"there are more than {self.rows_max:,} rows (limits.rows)",
                self.what,
                "ask for fewer, by a filter or a limit",
            )

    @contextmanager
    def handing_over(self) -> Iterator[None]:
        """While a client has what was given, and has not asked for more."""
        self.is_waiting = True
        try:
            yield
        finally:
            self.is_waiting = False

    def check(self) -> None:
        """Raise once it has been told to stop."""
        if self._stopped.is_set() and self.is_cancelled:
            raise CancelledError(f"the scan was stopped: {self.reason}", self.what, "ask for it anew")
        if self._stopped.is_set() and self.is_late:
            raise LimitReachedError(
                f"the scan was stopped: {self.reason}", self.what, "ask for less, or in parts"
            )
        if self._stopped.is_set():
            raise UnavailableError(f"the scan was stopped: {self.reason}", self.what, "ask again later")
