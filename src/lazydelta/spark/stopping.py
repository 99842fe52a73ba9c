"""SIGTERM and Ctrl-C as a request to stop: the first is a wish, the second an order.

Why: a stream must not be cut off in the middle of a batch without need; the next start would do it again.
Contract: inside `stop_on_signals` the first signal sets the event and nothing else; the second ends the
process at once, with the signal's usual exit code. What was in place before is restored at the end. Away from
the main thread, where Python allows no handlers, the event is simply never set. What is started inside
`children_deaf_to_sigterm` leaves the decision to this process, even when a supervisor asks the whole group.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def stop_on_signals() -> Iterator[threading.Event]:
    """An event that SIGTERM or SIGINT sets, for as long as the body runs."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def request(number: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            os._exit(128 + number)
        stop.set()

    # Whoever watches for Ctrl-C by its descriptor would end the process after a short grace.
    descriptor = signal.set_wakeup_fd(-1)
    before = {number: signal.signal(number, request) for number in _STOP_SIGNALS}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(descriptor)


@contextmanager
def children_deaf_to_sigterm() -> Iterator[None]:
    """Processes started by the body ignore SIGTERM; Java inherits that, and ends with this process."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
