"""Leave at once: a request that nobody waits for any more must not keep the process.

Why: while the main thread waits inside a store's client, Python cannot deliver Ctrl-C, and at exit it joins
threads whose requests are still under way; with a store that stalls, either takes as long as its timeout.
Contract: what holds for Ctrl-C holds for SIGTERM; each has its own exit code. While modules are loaded, and
again at the end, nothing has to be cleaned up and Ctrl-C ends the process on the spot (an exception inside an
import could be swallowed, or turned into another). In between, whoever can stop in `GRACE_SECONDS` cleans up
after itself; then the process ends, whatever its threads do. Ctrl-C stays ignored where the caller ignores
it. Output is flushed as it is written, so none is lost.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType

GRACE_SECONDS = 1.0
EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143


class Terminated(KeyboardInterrupt):
    """SIGTERM came."""


def leave_on_interrupt() -> None:
    """From now on Ctrl-C ends the process on the spot: there is nothing to clean up."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave_at_once)
    if signal.getsignal(signal.SIGTERM) is _terminate:
        signal.signal(signal.SIGTERM, _leave_at_once)


def raise_on_interrupt() -> None:
    """From now on Ctrl-C is a `KeyboardInterrupt`, so that whoever holds something can let go of it."""
    if signal.getsignal(signal.SIGINT) is _leave_at_once:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGTERM) is _leave_at_once:
        signal.signal(signal.SIGTERM, _terminate)


def watch_for_interrupts() -> None:
    """From now on Ctrl-C and SIGTERM end the process soon, even if the main thread cannot hear them."""
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _leave_at_once)
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    # The interpreter writes the signal's number here at once, from whichever state it is in.
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(reader,), name="lazydelta-interrupts", daemon=True).start()


def leave_interrupts_alone() -> None:
    """From now on Ctrl-C is the command's own affair: it ends in order, however long that takes."""
    signal.set_wakeup_fd(-1)


def on_interrupt(act: Callable[[], None]) -> None:
    """From now on each Ctrl-C has this done at once, by another thread, and is a `KeyboardInterrupt`."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    threading.Thread(target=_act, args=(reader, act), name="lazydelta-interrupts", daemon=True).start()


def leave_soon(exit_code: int) -> None:
    """End the process with this code after the grace, unless it has ended before."""
    threading.Thread(target=_leave, args=(exit_code,), name="lazydelta-exit", daemon=True).start()


def _leave_at_once(number: int, _frame: FrameType | None) -> None:
    os._exit(128 + number)


def _terminate(_number: int, _frame: FrameType | None) -> None:
    raise Terminated


def _watch(reader: int) -> None:
    while not (seen := {signal.SIGINT, signal.SIGTERM}.intersection(os.read(reader, 16))):
        pass
    _leave(128 + min(seen))


def _act(reader: int, act: Callable[[], None]) -> None:
    while True:
        seen = os.read(reader, 16)
        if signal.SIGINT in seen:
            act()
        if signal.SIGTERM in seen:
            _leave(128 + signal.SIGTERM)


def _leave(exit_code: int) -> None:
    time.sleep(GRACE_SECONDS)
    os._exit(exit_code)
