"""Leave at once: a request that nobody waits for any more must not keep the process.

Why: while the main thread waits inside a store's client, Python cannot deliver Ctrl-C, and at exit it joins
threads whose requests are still under way; with a store that stalls, either takes as long as its timeout.
Contract: while modules are loaded, and again at the end, nothing has to be cleaned up and Ctrl-C ends the
process on the spot (an exception inside an import could be swallowed, or turned into another). In between,
whoever can stop in `GRACE_SECONDS` cleans up after itself; then the process ends, whatever its threads do.
Ctrl-C stays ignored where the caller ignores it. Output is flushed as it is written, so none is lost.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from types import FrameType

GRACE_SECONDS = 1.0
EXIT_INTERRUPTED = 130


def leave_on_interrupt() -> None:
    """From now on Ctrl-C ends the process on the spot: there is nothing to clean up."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave_at_once)


def raise_on_interrupt() -> None:
    """From now on Ctrl-C is a `KeyboardInterrupt`, so that whoever holds something can let go of it."""
    if signal.getsignal(signal.SIGINT) is _leave_at_once:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def watch_for_interrupts() -> None:
    """From now on Ctrl-C ends the process soon, even if the main thread cannot hear it."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    # The interpreter writes the signal's number here at once, from whichever state it is in.
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(reader,), name="lazydelta-interrupts", daemon=True).start()


def leave_soon(exit_code: int) -> None:
    """End the process with this code after the grace, unless it has ended before."""
    threading.Thread(target=_leave, args=(exit_code,), name="lazydelta-exit", daemon=True).start()


def _leave_at_once(_signal: int, _frame: FrameType | None) -> None:
    os._exit(EXIT_INTERRUPTED)


def _watch(reader: int) -> None:
    while signal.SIGINT not in os.read(reader, 16):
        pass
    _leave(EXIT_INTERRUPTED)


def _leave(exit_code: int) -> None:
    time.sleep(GRACE_SECONDS)
    os._exit(exit_code)
