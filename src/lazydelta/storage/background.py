"""The threads that fetch beside the caller: one bounded pool for the process, and short-lived ones.

Contract: to the shared pool only single requests are submitted, never work that waits for other submitted
work, so it cannot lock itself up. Threads are made when first needed. A forked child starts with a pool of
its own, because threads do not survive a fork. Of a quick folder nothing is fetched beside the caller: what
a thread would save in waiting it costs in handing over, many times.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import cache
from typing import ParamSpec, TypeVar

from lazydelta import limits
from lazydelta.storage.interface import Storage
from lazydelta.storage.local import is_quick

P = ParamSpec("P")
T = TypeVar("T")


@cache
def pool() -> ThreadPoolExecutor:
    """The shared pool; a host that stalls may keep as many of its threads as it has permits, others go on."""
    return ThreadPoolExecutor(
        limits.HOSTS_BUSY_MAX * limits.CONNECTIONS_MAX, thread_name_prefix="lazydelta-io"
    )


def workers(storage: Storage, count: int, name: str) -> Executor:
    """Threads of one's own for work on this storage; of a quick folder none, work is done when given."""
    return AtOnce() if is_quick(storage) else ThreadPoolExecutor(count, thread_name_prefix=name)


class AtOnce(Executor):
    """Does what it is given before `submit` returns."""

    def submit(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Do it now; the future is done."""
        done: Future[T] = Future()
        try:
            done.set_result(work(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - raised where the result is asked for
            done.set_exception(error)
        return done


os.register_at_fork(after_in_child=pool.cache_clear)
