"""Read-ahead as one more stage: the stage below works in a thread while the consumer works.

Contract: at most `batches_max` batches wait; order is kept; an error below is raised at its place; closing
the generator stops the thread after the batch it is at and closes the stage below.
"""

from __future__ import annotations

import threading
from collections.abc import Generator
from queue import Queue
from typing import TypeVar

Item = TypeVar("Item")
_END = object()


def prefetch(stream: Generator[Item, None, None], batches_max: int = 4) -> Generator[Item, None, None]:
    """The same items, made ahead of time."""
    waiting: Queue[object] = Queue(batches_max)
    stop = threading.Event()
    worker = threading.Thread(
        target=_fill, args=(stream, waiting, stop), name="lazydelta-prefetch", daemon=True
    )
    worker.start()
    try:
        while (item := waiting.get()) is not _END:
            if isinstance(item, _Failure):
                raise item.error
            yield item  # type: ignore[misc]  # the queue holds items, failures and the end mark
    finally:
        stop.set()
        while worker.is_alive():
            while not waiting.empty():
                waiting.get_nowait()
            worker.join(timeout=0.01)


class _Failure:
    def __init__(self, error: BaseException) -> None:
        self.error = error


def _fill(stream: Generator[Item, None, None], waiting: Queue[object], stop: threading.Event) -> None:
    try:
        for item in stream:
            waiting.put(item)
            if stop.is_set():
                break
        stream.close()
        waiting.put(_END)
    except BaseException as error:  # noqa: BLE001 - handed to the consumer, who raises it
        waiting.put(_Failure(error))
