"""An answer as it goes over HTTP: packed where the client wants that, and stopped where it has gone.

Contract: the head waits for the first rows; a client that goes away meanwhile stops the query, as one does
later on. Packed answers are flushed with each piece, so that rows arrive when they are there.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Generator
from contextlib import closing

import anyio
from anyio import CapacityLimiter, to_thread
from starlette.types import Receive

from lazydelta.serve.http.pulled_response import closed, tell_when_gone
from lazydelta.serve.kusto.answers import Answer, Head

_LEVEL = 1  # more takes longer than the network
_AS_GZIP = 16 + zlib.MAX_WBITS


async def begun(answer: Answer, limiter: CapacityLimiter, receive: Receive, gone: Callable[[], None]) -> Head:
    """The head, once it is there; raises what came instead. `gone` is called where the client has left."""
    found: list[Head | bytes] = []
    problem: BaseException | None = None
    async with anyio.create_task_group() as group:
        group.start_soon(tell_when_gone, receive, gone)
        try:
            found.append(await to_thread.run_sync(next, answer, limiter=limiter))
        except Exception as error:  # noqa: BLE001 - raised below: a group would wrap it
            problem = error
        group.cancel_scope.cancel()
    if problem is not None:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(closed, answer, limiter=limiter)
        raise problem
    (head,) = found
    assert isinstance(head, Head)
    return head


def wants_gzip(accepted: str | None) -> bool:
    """By `Accept-Encoding`."""
    for word in (accepted or "").lower().split(","):
        name, _, rest = word.partition(";")
        if name.strip() in ("gzip", "*"):
            return rest.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


def packed(answer: Generator[Head | bytes, None, None]) -> Generator[bytes, None, None]:
    """The bytes of an answer whose head is there, packed."""
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _AS_GZIP)
    with closing(answer):
        for piece in answer:
            assert isinstance(piece, bytes)
            yield packer.compress(piece) + packer.flush(zlib.Z_SYNC_FLUSH)
    yield packer.flush()
