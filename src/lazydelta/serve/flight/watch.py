"""Streams whose client has gone while there was nothing to send to it.

Why: Flight finds out when it sends the next batch, and a query may work for minutes before it has one.
Contract: what is watched is asked a few times a second whether its client is still there, and told to stop
where it is not. Asking takes gRPC some 0.1 ms, in which no other thread may use Python (measured, pyarrow
26): who has only just begun, as the short answers of a busy server have, is not asked yet. A call is not
asked any more once its block is left: Arrow forgets it then. The thread ends some time after the last of
them.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

_LOOK_SECONDS = 0.2
_YOUNG_SECONDS = 0.4  # after these it is asked
_IDLE_SECONDS = 5.0


class _Watched(msgspec.Struct, frozen=True):
    is_cancelled: Callable[[], bool]
    stop: Callable[[], object]
    asked_from: float  # of `time.monotonic()`


class StreamWatch:
    """Those that run."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._watched: dict[int, _Watched] = {}
        self._numbers = itertools.count()
        self._is_running = False

    @contextmanager
    def watched(self, is_cancelled: Callable[[], bool], stop: Callable[[], object]) -> Iterator[None]:
        """Meanwhile: call `stop`, again and again, once the client has gone."""
        number = next(self._numbers)
        with self._changed:
            self._watched[number] = _Watched(is_cancelled, stop, time.monotonic() + _YOUNG_SECONDS)
            if not self._is_running:
                self._is_running = True
                threading.Thread(target=self._look, name="lazydelta-stream-watch", daemon=True).start()
            elif len(self._watched) == 1:  # it sleeps
                self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                del self._watched[number]

    def _look(self) -> None:
        while True:
            with self._changed:
                # Asked with the lock held, so that no call ends while it is asked.
                now = time.monotonic()
                old = (one for one in self._watched.values() if one.asked_from <= now)
                gone = [one.stop for one in old if one.is_cancelled()]
            for stop in gone:
                stop()
            with self._changed:
                is_idle = not self._watched
                self._changed.wait(_IDLE_SECONDS if is_idle else _LOOK_SECONDS)
                if is_idle and not self._watched:
                    self._is_running = False
                    return
