"""An answer as it goes over HTTP: packed where the client wants that, and stopped where it has gone.

Contract: the head waits for the first rows; a client that goes away meanwhile stops the query, as one does
later on. Packed answers are flushed with each piece, so that rows arrive when they are there.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Generator
from contextlib import closing

from anyio import CapacityLimiter
from starlette.types import Receive

from lazydelta.serve.http.pulled_response import first_piece
from lazydelta.serve.kusto.answers import Answer, Head

_LEVEL = 1  # more takes longer than the network
_AS_GZIP = 16 + zlib.MAX_WBITS


async def begun(answer: Answer, limiter: CapacityLimiter, receive: Receive, gone: Callable[[], None]) -> Head:
    """The head, once it is there; raises what came instead. `gone` is called where the client has left."""
    head = await first_piece(answer, limiter, receive, gone)
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
