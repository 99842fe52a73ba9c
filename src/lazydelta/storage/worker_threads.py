"""Threads that work for a scan, also while the interpreter ends.

Why: once the main thread has come to its end Python's executors take no more work, though other threads of
the program may be in the middle of a scan. Contract: as `ThreadPoolExecutor`; what it does not take any more
for that reason is done by whoever gives it, before `submit` returns.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from lazydelta.storage.at_once import AtOnce

P = ParamSpec("P")
T = TypeVar("T")


class WorkerThreads(ThreadPoolExecutor):
    """Threads of one's own."""

    _is_closed = False

    def submit(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Let a thread do it."""
        try:
            return super().submit(work, *args, **kwargs)
        except RuntimeError:
            if self._is_closed:
                raise
        return AtOnce().submit(work, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take nothing more."""
        self._is_closed = True
        super().shutdown(wait, cancel_futures=cancel_futures)
