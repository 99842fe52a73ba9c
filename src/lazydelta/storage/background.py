"""The threads that fetch beside the caller: one bounded pool for the process.

Contract: only single requests are submitted, never work that waits for other submitted work, so the pool
cannot lock itself up. Threads are made when first needed. A forked child starts with a pool of its own,
because threads do not survive a fork.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache

from lazydelta import limits


@cache
def pool() -> ThreadPoolExecutor:
    """The shared pool, of as many threads as requests may be under way."""
    return ThreadPoolExecutor(limits.CONNECTIONS_MAX, thread_name_prefix="lazydelta-io")


os.register_at_fork(after_in_child=pool.cache_clear)
