"""Python as a guest in a process of somebody else's: how it behaves there, and how the process ends.

Why: signals are the host's. And Python is not ended (no host could promise that nobody uses it), but reads
ahead must not outlive the libraries that they run in. Contract: both functions are called once, by c/start.c,
and only where Python was not there before; `leave` takes a bounded time, and raises nothing.
"""

from __future__ import annotations

import atexit
import sys
import threading
import time
from collections.abc import Generator
from contextlib import suppress
from weakref import WeakSet

import pyarrow as pa

OPEN_STREAMS: WeakSet[Generator[pa.RecordBatch, None, None]] = WeakSet()
WAIT_SECONDS_MAX = 2.0
# Where threads wait that have nothing to do: for a lock, for the next item of a queue, for work of a pool.
_RESTING_PLACES = ("threading.py", "queue.py", "concurrent/futures/thread.py")


def settle() -> bool:
    """Leave signals to the host."""
    pa.enable_signal_handlers(False)
    return True


def leave() -> bool:
    """Stop reads of streams never released, then what asked to be told of the end; whether all rest."""
    for stream in list(OPEN_STREAMS):
        with suppress(Exception):
            stream.close()
    with suppress(Exception):
        atexit._run_exitfuncs()
    give_up = time.monotonic() + WAIT_SECONDS_MAX
    while _is_anyone_at_work() and time.monotonic() < give_up:
        time.sleep(0.002)
    return not _is_anyone_at_work()


def _is_anyone_at_work() -> bool:
    """Whether a thread of Python's own is at something, such as Arrow's code; the host's are not asked."""
    frames = sys._current_frames()
    for thread in threading.enumerate():
        frame = frames.get(thread.ident or 0)
        is_of_the_host = isinstance(thread, threading._DummyThread) or thread is threading.main_thread()
        if frame is None or is_of_the_host or thread is threading.current_thread():
            continue
        if not frame.f_code.co_filename.endswith(_RESTING_PLACES):
            return True
    return False
