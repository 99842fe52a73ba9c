"""An executor with a thread for every call, also while the interpreter ends.

Why: once the main thread has come to its end Python's pools take no more work, and at the end they wait for
what they took before, however long that is. Contract: a call runs in a thread of its own, with the context
of who gives it. A daemon's is not waited for when the program ends: for what may never return.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextvars import copy_context
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class OwnThread(Executor):
    """Begins a thread for what it is given."""

    def __init__(self, name: str, *, is_daemon: bool = False) -> None:
        self._name = name
        self._is_daemon = is_daemon

    def submit(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Begin it."""
        done: Future[T] = Future()
        done.set_running_or_notify_cancel()  # it cannot be cancelled any more
        context = copy_context()

        def run() -> None:
            try:
                done.set_result(context.run(work, *args, **kwargs))
            except BaseException as error:  # noqa: BLE001 - raised where the result is asked for
                done.set_exception(error)

        threading.Thread(target=run, name=self._name, daemon=self._is_daemon).start()
        return done
