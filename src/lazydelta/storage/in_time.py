"""A call that is waited for until the scan's deadline and no longer.

Why: obstore's timeouts belong to the client, which many scans share. A store that accepts a request and then
says nothing is found out only after seconds, and a scan may have less.
Contract: without a deadline the call is made by the calling thread. With one, another thread makes it; past
the deadline the caller gets its error, and the call ends by itself at the client's timeout: what it holds,
its permit at the host's gate, it gives back then.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from functools import cache
from typing import TypeVar

from lazydelta import limits
from lazydelta.storage.deadline import NEVER, Deadline
from lazydelta.storage.worker_threads import WorkerThreads

T = TypeVar("T")


def in_time(call: Callable[[], T], deadline: Deadline, where: str) -> T:
    """The call's answer, or the error of the deadline."""
    if deadline.at == NEVER.at:
        return call()
    return awaited(_threads().submit(call), deadline, where)


def awaited(future: Future[T], deadline: Deadline, where: str) -> T:
    """What another thread works on, or the error of the deadline."""
    if deadline.at == NEVER.at:
        return future.result()
    try:
        return future.result(timeout=deadline.seconds_left())
    except FutureTimeoutError:
        if future.done():  # the call's own
            return future.result()
    raise deadline.passed(where)


@cache
def _threads() -> WorkerThreads:
    count = limits.HOSTS_BUSY_MAX * limits.CONNECTIONS_MAX
    return WorkerThreads(count, thread_name_prefix="lazydelta-in-time")


os.register_at_fork(after_in_child=_threads.cache_clear)
