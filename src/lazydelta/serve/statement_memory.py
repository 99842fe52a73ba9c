"""The memory of statements, whichever language they are in: each has a share, so many run at once.

Contract: all statements that run keep within the server's memory together. Who comes when every share is
taken waits as long as for a place among the scans, and is refused then. The last shares are for clients that
have none, so that nobody keeps all others out; where nobody signs in there is one client, who has all.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from lazydelta import limits
from lazydelta.engines.session import SqlOptions
from lazydelta.engines.sql_errors import QueryMemoryError
from lazydelta.errors import LazyDeltaError
from lazydelta.memory_budget import PROCESS_MEMORY
from lazydelta.serve.refusals import LimitReachedError
from lazydelta.serve.sign_in import ANYONE, Client

AT_ONCE = 8  # statements that share the server's memory
KEPT = 2  # of them, for clients that have none


class StatementMemory:
    """The shares of one process."""

    def __init__(self) -> None:
        self._free = threading.Condition()
        self._running = 0
        self._by_client: Counter[str] = Counter()

    def options(self, what: str) -> SqlOptions:
        """What the session of one statement may spend; `what`: the language, for who is refused."""
        share = PROCESS_MEMORY.limit_bytes // AT_ONCE
        if share < limits.SERVE_SQL_MEMORY_BYTES_MIN:
            raise LimitReachedError(
                f"a statement may use {share:,} bytes here, and needs {limits.SERVE_SQL_MEMORY_BYTES_MIN:,}"
                " at the least (limits.memory_bytes)",
                what,
                f"have limits.memory_bytes of the server set to {AT_ONCE} times that, or read by commands",
            )
        return SqlOptions(memory_limit=min(limits.SQL_MEMORY_BYTES, share))

    @contextmanager
    def share(self, what: str, client: Client, *, waiting_seconds: float) -> Iterator[None]:
        """One share, once there is one for the client."""
        with self._free:
            if not self._free.wait_for(lambda: self._has_one_for(client), waiting_seconds):
                whose = f"{client.name} runs" if self._running < AT_ONCE else "there run"
                raise LimitReachedError(
                    f"{whose} as many statements as share the server's memory (limits.memory_bytes)",
                    what,
                    "ask again when another statement has ended",
                )
            self._running += 1
            self._by_client[client.name] += 1
        try:
            yield
        finally:
            with self._free:
                self._running -= 1
                self._by_client[client.name] -= 1
                self._free.notify_all()

    def _has_one_for(self, client: Client) -> bool:
        is_first = client == ANYONE or not self._by_client[client.name]
        return self._running < (AT_ONCE if is_first else AT_ONCE - KEPT)


def check_memory(error: LazyDeltaError, what: str) -> None:
    """Raise lack of memory as the limit that it is here."""
    if isinstance(error, QueryMemoryError):
        raise LimitReachedError(
            f"{error.what} (limits.memory_bytes)",
            what,
            "ask for less at once; a statement may use an eighth of limits.memory_bytes of the server",
        ) from error
