"""An answer that is pulled as fast as the client reads, and not at all once it is gone.

Contract: the generator runs in worker threads, one pull at a time, and nothing is pulled while the connection
is full. A client that goes away, one that takes nothing for too long, and a server that goes down close it.
An error is told by a last chunk, where there is a way to tell it; the connection is cut off besides, unless
the client knows that way, so that no part is taken for the whole.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import Any, TypeVar

import anyio
from anyio import CapacityLimiter, to_thread
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from lazydelta.errors import LazyDeltaError
from lazydelta.serve.admitted import Admitted
from lazydelta.serve.refusals import CancelledError

LOGGER = logging.getLogger("lazydelta.serve")
_TELLING_SECONDS = 1.0  # that a client has to take the last chunk when the server goes down
T = TypeVar("T")
Chunks = Generator[Any, None, None]  # Any: bytes, once its head is taken


class PulledResponse(Response):
    """The chunks of one generator."""

    def __init__(
        self,
        chunks: Chunks,
        limiter: CapacityLimiter,
        *,
        status: int = 200,
        headers: Mapping[str, str],
        stalled_seconds: float,
        admitted: Admitted | None = None,
    ) -> None:
        """`stalled_seconds`: that the client may take nothing; 0 is no limit."""
        super().__init__(status_code=status, headers=headers)
        if "content-length" not in headers and "Content-Length" not in headers:
            del self.headers["content-length"]
        self._chunks = chunks
        self._limiter = limiter
        self._stalled_seconds = stalled_seconds or float("inf")
        self._admitted = admitted

    def told(self, message: str) -> bytes:
        """The last chunk of an answer that breaks off."""
        del message
        return b""

    @property
    def is_told(self) -> bool:
        """Whether the client reads of an error in the last chunk."""
        return False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send them."""
        stopped = anyio.Event()
        if self._admitted is not None:
            self._admitted.when_stopped(partial(_set_from_thread, stopped, asyncio.get_running_loop()))
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(_cancel_when_gone, receive, group.cancel_scope, self._gone)
                group.start_soon(_cancel_when_stopped, stopped, group.cancel_scope)
                with anyio.move_on_after(None) as patience:
                    await self._pump(send, patience, is_head=scope["method"] == "HEAD")
                if patience.cancelled_caught:
                    LOGGER.info(
                        "a client took nothing for %s s: its answer is cut off", self._stalled_seconds
                    )
                group.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(closed, self._chunks, limiter=self._limiter)

    def _gone(self) -> None:
        """Have what works for nobody stop; a pull goes on otherwise until it has something."""
        if self._admitted is not None:
            self._admitted.stop("its client has gone", is_cancelled=True)

    async def _pump(self, send: Send, patience: anyio.CancelScope, *, is_head: bool) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        is_whole = is_head
        while not is_head:
            patience.deadline = float("inf")
            chunk, is_whole = await self._next()
            patience.deadline = anyio.current_time() + self._stalled_seconds
            if chunk:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            if chunk is None or not is_whole:
                break
        if is_whole or self.is_told:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _next(self) -> tuple[bytes | None, bool]:
        """The next chunk, and whether all is well."""
        try:
            return await to_thread.run_sync(next, self._chunks, None, limiter=self._limiter), True
        except LazyDeltaError as error:
            level = logging.INFO if isinstance(error, CancelledError) else logging.WARNING
            LOGGER.log(level, "an answer broke off: %s", error)
            return self.told(told(error)), False
        except Exception:
            LOGGER.exception("an answer broke off")
            return self.told("the server made a mistake; it is in its log"), False


def told(error: LazyDeltaError) -> str:
    """What happened and what to do; not where, which may be an address of the store."""
    return f"{error.what}; {error.fix}"


def closed(chunks: Chunks) -> None:
    """Close a generator, whatever it says to that."""
    try:
        chunks.close()
    except LazyDeltaError as error:
        LOGGER.debug("closing an answer: %s", error)


async def first_piece(
    pieces: Generator[T, None, None], limiter: CapacityLimiter, receive: Receive, gone: Callable[[], None]
) -> T | None:
    """The first piece of an answer, once it is there; None where there is none. Raises what came instead.

    `gone` is called where the client has left before it is there.
    """
    found: list[T | None] = []
    problem: BaseException | None = None
    async with anyio.create_task_group() as group:
        group.start_soon(_tell_when_gone, receive, gone)
        try:
            found.append(await to_thread.run_sync(next, pieces, None, limiter=limiter))
        except Exception as error:  # noqa: BLE001 - raised below: a group would wrap it
            problem = error
        group.cancel_scope.cancel()
    if problem is not None:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(closed, pieces, limiter=limiter)
        raise problem
    return found[0]


async def _tell_when_gone(receive: Receive, gone: Callable[[], None]) -> None:
    """Wait for the client to leave, then call that."""
    while (await receive())["type"] != "http.disconnect":
        pass
    await to_thread.run_sync(gone)


async def _cancel_when_gone(receive: Receive, scope: anyio.CancelScope, gone: Callable[[], None]) -> None:
    await _tell_when_gone(receive, gone)
    scope.cancel()


async def _cancel_when_stopped(stopped: anyio.Event, scope: anyio.CancelScope) -> None:
    await stopped.wait()
    await anyio.sleep(_TELLING_SECONDS)  # the next pull raises, and is told to a client that still reads
    scope.cancel()


def _set_from_thread(event: anyio.Event, loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.call_soon_threadsafe(event.set)
    except RuntimeError:  # the loop is gone, and the answer with it
        LOGGER.debug("an answer had ended before it was told to stop")
