"""A store in memory that lets something happen before each of its calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fuzz.memory_storage import MemoryStorage

from lazydelta.storage import Deadline, IoCounters, ObjectInfo


class CleanedStorage(MemoryStorage):
    """Calls `on_call` first, in whichever thread; `is_local` says whether it is read without threads."""

    def __init__(
        self,
        files: dict[str, bytes],
        on_call: Callable[[], None],
        *,
        is_local: bool,
        counters: IoCounters | None = None,
    ) -> None:
        super().__init__(files, counters)
        self._on_call, self._is_local = on_call, is_local

    @property
    def is_quick(self) -> bool:
        return self._is_local

    def scoped(self, deadline: Deadline | None = None) -> CleanedStorage:
        del deadline
        counters = IoCounters(self.counters)
        return CleanedStorage(self.files, self._on_call, is_local=self._is_local, counters=counters)

    def list_from(self, folder: str, after: str | None = None) -> Iterator[ObjectInfo]:
        self._on_call()
        return super().list_from(folder, after)

    def get(self, name: str) -> bytes:  # ranges and streams ask it, too
        self._on_call()
        return super().get(name)
