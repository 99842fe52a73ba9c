"""Work done ahead of its consumer, in order: a few items under way, the rest not begun.

Contract: `start` begins the first ones before anybody pulls. An error is raised at its place. Closing waits
for what is under way and begins nothing more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


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
    ) -> None:
        self._items = iter(items)
        self._work = work
        self._ahead_max = ahead_max
        self._is_quick = is_quick
        self._under_way: deque[Future[Result]] = deque()
        self._pool: ThreadPoolExecutor | None = None

    def start(self) -> None:
        """Begin as many as may be under way."""
        while len(self._under_way) < self._ahead_max:
            try:
                item = next(self._items, None)
            except Exception as error:  # noqa: BLE001 - raised at its place, not where the work was begun
                self._under_way.append(_failed(error))
                self._items = iter(())
                return
            if item is None:
                return
            self._under_way.append(self._begun(item))

    def results(self) -> Generator[Result, None, None]:
        """The results in the order of the items."""
        try:
            self.start()
            while self._under_way:
                result = self._under_way.popleft().result()
                self.start()
                yield result
        finally:
            self.close()

    def _begun(self, item: Item) -> Future[Result]:
        if self._is_quick(item):  # a thread would take longer to start than the work takes
            done: Future[Result] = Future()
            try:
                done.set_result(self._work(item))
            except Exception as error:  # noqa: BLE001 - raised at its place, as of any other item
                done.set_exception(error)
            return done
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._ahead_max, thread_name_prefix="lazydelta-ahead")
        return self._pool.submit(self._work, item)

    def close(self) -> None:
        """Begin nothing more and wait for what is under way."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None
        self._under_way.clear()


def _failed(error: Exception) -> Future[Any]:  # Any: it never has a result
    future: Future[Any] = Future()
    future.set_exception(error)
    return future
