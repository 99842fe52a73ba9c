"""Work done ahead of its consumer, in order: a few items under way, the rest not begun.

Contract: `start` begins the first ones before anybody pulls. An error is raised at its place. Closing waits
for what is under way and begins nothing more. What an item takes of the process's memory is held until the
consumer asks for the next; where there is no memory for one ahead, it is begun when it is asked for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future
from itertools import islice
from typing import Any, Generic, TypeVar

import msgspec

from lazydelta.memory_budget import MemoryKind
from lazydelta.memory_share import MemoryShare
from lazydelta.storage.worker_threads import WorkerThreads

Item = TypeVar("Item")
Result = TypeVar("Result")


class _Failure(msgspec.Struct, frozen=True):
    error: Exception


class ReadAhead(Generic[Item, Result]):
    """`work(item)` for each item, `ahead_max` of them under way beside the one that is consumed.

    What `is_quick` is done by the caller's thread.
    """

    def __init__(
        self,
        items: Iterable[Item],
        work: Callable[[Item], Result],
        ahead_max: int,
        *,
        is_quick: Callable[[Item], bool] = lambda _: False,
        share: MemoryShare | None = None,
        item_bytes: int = 0,
    ) -> None:
        """Each item takes `item_bytes` of the share, about."""
        self._items = iter(items)
        self._work = work
        self._ahead_max = ahead_max
        self._is_quick = is_quick
        self._share = share or MemoryShare()
        self._item_bytes = item_bytes
        self._next: list[Item | _Failure] = []  # the one that is pulled and not begun
        self._under_way: deque[tuple[Future[Result], int, MemoryKind]] = deque()
        self._pool: WorkerThreads | None = None

    def start(self) -> None:
        """Begin as many as may be under way, and have room."""
        while len(self._under_way) < self._ahead_max and self._share.try_take(self._item_bytes):
            if not self._has_next():
                self._share.give(self._item_bytes)
                return
            self._begin(self._item_bytes, MemoryKind.AHEAD)

    def results(self) -> Generator[Result, None, None]:
        """The results in the order of the items."""
        try:
            if self._under_way or self._begin_needed():
                self.start()
            while self._under_way or self._begin_needed():
                future, held, kind = self._under_way.popleft()
                try:
                    result = future.result()
                    self.start()
                    yield result
                finally:
                    self._share.give(held, kind)
        finally:
            self.close()

    def _begin_needed(self) -> bool:
        """Begin the next item, after a wait for memory if need be; whether there is one."""
        if not self._has_next():
            return False
        self._begin(self._share.take(self._item_bytes, MemoryKind.LOG), MemoryKind.LOG)
        return True

    def _has_next(self) -> bool:
        """Whether there is something to begin; where the items themselves fail, that is the last of them."""
        if not self._next:
            try:
                self._next.extend(islice(self._items, 1))
            except Exception as error:  # noqa: BLE001 - raised at its place, not where the work was begun
                self._items = iter(())
                self._next.append(_Failure(error))
        return bool(self._next)

    def _begin(self, held: int, kind: MemoryKind) -> None:
        """Begin the next item, for which so much is held."""
        item = self._next.pop()
        future = _failed(item.error) if isinstance(item, _Failure) else self._begun(item)
        self._under_way.append((future, held, kind))

    def _begun(self, item: Item) -> Future[Result]:
        if self._is_quick(item):  # a thread would take longer to start than the work takes
            done: Future[Result] = Future()
            try:
                done.set_result(self._work(item))
            except Exception as error:  # noqa: BLE001 - raised at its place, as of any other item
                done.set_exception(error)
            return done
        if self._pool is None:
            self._pool = WorkerThreads(self._ahead_max, thread_name_prefix="lazydelta-ahead")
        return self._pool.submit(self._work, item)

    def close(self) -> None:
        """Begin nothing more and wait for what is under way."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None
        self._next.clear()
        while self._under_way:
            _, held, kind = self._under_way.popleft()
            self._share.give(held, kind)


def _failed(error: Exception) -> Future[Any]:  # Any: it never has a result
    future: Future[Any] = Future()
    future.set_exception(error)
    return future
