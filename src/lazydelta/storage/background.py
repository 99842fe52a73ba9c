"""The threads that fetch beside the caller: one bounded pool for the process, and short-lived ones.

Contract: to the shared pool only single requests are submitted, never work that waits for other submitted
work, so it cannot lock itself up. Threads are made when first needed. A forked child starts with a pool of
its own, because threads do not survive a fork. Of a quick folder nothing is fetched beside the caller: what
a thread would save in waiting it costs in handing over, many times.
"""

from __future__ import annotations

import os
from concurrent.futures import Executor
from functools import cache

from lazydelta import limits
from lazydelta.storage.at_once import AtOnce
from lazydelta.storage.interface import Storage
from lazydelta.storage.local import is_quick
from lazydelta.storage.worker_threads import WorkerThreads


@cache
def pool() -> WorkerThreads:
    """The shared pool; a host that stalls may keep as many of its threads as it has permits, others go on."""
    return WorkerThreads(limits.HOSTS_BUSY_MAX * limits.CONNECTIONS_MAX, thread_name_prefix="lazydelta-io")


def workers(storage: Storage, count: int, name: str) -> Executor:
    """Threads of one's own for work on this storage; of a quick folder none, work is done when given."""
    return AtOnce() if is_quick(storage) else WorkerThreads(count, thread_name_prefix=name)


os.register_at_fork(after_in_child=pool.cache_clear)
