"""How many threads a run may read rows with: several where few runs are under way, one each where many are.

Contract: all runs of a process have `limits.ROW_THREADS_MAX` threads, and one more for each run beyond those.
"""

from __future__ import annotations

import os
import threading

from lazydelta import limits

_lock = threading.Lock()
_in_use = 0


def take_threads(wanted: int) -> int:
    """So many or fewer, at least one; give them back when the run ends."""
    global _in_use  # noqa: PLW0603 - one number for the process
    with _lock:
        granted = max(1, min(wanted, limits.ROW_THREADS_MAX - _in_use))
        _in_use += granted
        return granted


def give_threads(count: int) -> None:
    """The run has ended."""
    global _in_use  # noqa: PLW0603 - as above
    with _lock:
        _in_use = max(0, _in_use - count)


def threads_in_use() -> int:
    """At this moment."""
    return _in_use


def _start_anew() -> None:
    global _lock, _in_use  # another thread may have held it at the fork
    _lock, _in_use = threading.Lock(), 0


os.register_at_fork(after_in_child=_start_anew)
