"""The memory that the scans of one client may hold together, beside what the process may.

Contract: as `MemoryBudget`: who needs more waits until another scan of the client gives some back, and is let
in all the same where nothing moves; what is read ahead goes without. What is granted here is of the process's
budget, too. Statements of SQL have a share of their own (`flight_sql`), and are not counted.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from lazydelta.memory_budget import PROCESS_MEMORY, MemoryBudget, MemoryKind
from lazydelta.memory_share import within
from lazydelta.serve.sign_in import Client


class _ClientBudget(MemoryBudget):
    """Of one client; grants what the process grants, too."""

    def try_take(self, byte_count: int) -> bool:
        if not super().try_take(byte_count):
            return False
        if PROCESS_MEMORY.try_take(byte_count):
            return True
        super().give(byte_count, MemoryKind.AHEAD)
        return False

    def take(
        self,
        byte_count: int,
        kind: MemoryKind,
        *,
        may_wait: bool = True,
        stop: threading.Event | None = None,
        until: float = math.inf,
    ) -> tuple[int, float]:
        own, seconds = super().take(byte_count, kind, may_wait=may_wait, stop=stop, until=until)
        try:
            granted, more = PROCESS_MEMORY.take(own, kind, may_wait=may_wait, stop=stop, until=until)
        except BaseException:
            super().give(own, kind)
            raise
        super().give(own - granted, kind)
        return granted, seconds + more

    def stop_waiting(self, stop: threading.Event) -> None:
        super().stop_waiting(stop)
        PROCESS_MEMORY.stop_waiting(stop)

    def hold(self, byte_count: int) -> None:
        super().hold(byte_count)
        PROCESS_MEMORY.hold(byte_count)

    def give(self, byte_count: int, kind: MemoryKind) -> None:
        super().give(byte_count, kind)
        PROCESS_MEMORY.give(byte_count, kind)


class ClientMemory:
    """The budgets of all clients."""

    def __init__(self, bytes_per_client: int) -> None:
        self._lock = threading.Lock()
        self._bytes = bytes_per_client
        self._budgets: dict[str, _ClientBudget] = {}  # by name: as many as the configuration has clients

    def limit_to(self, bytes_per_client: int) -> None:
        """From now on; what runs goes on with what it has."""
        self._bytes = bytes_per_client

    @contextmanager
    def of(self, client: Client) -> Iterator[None]:
        """Scans that begin in here, in this thread, are of the client's memory."""
        with within(self._budget(client)):
            yield

    def held_bytes(self, client: Client) -> int:
        """By what runs now."""
        with self._lock:
            found = self._budgets.get(client.name)
        return 0 if found is None else found.use().held_bytes

    def _budget(self, client: Client) -> _ClientBudget | None:
        own = client.limits.memory_bytes
        most = self._bytes if own is None else own
        if most <= 0:
            return None
        with self._lock:
            found = self._budgets.get(client.name)
            if found is None:
                found = self._budgets[client.name] = _ClientBudget(most)
        if found.limit_bytes != most:
            found.limit_to(most)
        return found
