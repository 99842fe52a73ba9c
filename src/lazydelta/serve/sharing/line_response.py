"""An answer of lines, whose head waits for the first of them.

Contract: the generator gives a `Head` first, which waits for what the first lines need, so that whatever is
wrong until then is answered with a status; bytes follow. A client that goes away meanwhile stops the scan, as
one does later on. An error after the head is told by an `endStreamAction`.
"""

from __future__ import annotations

import threading
from collections.abc import Generator

import msgspec
from anyio import CapacityLimiter
from starlette.types import Receive

from lazydelta.serve.admitted import Admitted
from lazydelta.serve.http.pulled_response import PulledResponse, first_piece
from lazydelta.serve.sharing.lines import error_line

_GONE = "its client has gone"
NDJSON = "application/x-ndjson; charset=utf-8"


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """What stands before the lines."""

    headers: dict[str, str]
    wants_end: bool = False  # the client knows `endStreamAction`
    admitted: Admitted | None = None


Lines = Generator[Head | bytes, None, None]


class LineResponse(PulledResponse):
    """The lines of one generator whose head is there."""

    media_type = NDJSON

    def __init__(self, head: Head, lines: Lines, limiter: CapacityLimiter, *, stalled_seconds: float) -> None:
        super().__init__(
            lines, limiter, headers=head.headers, admitted=head.admitted, stalled_seconds=stalled_seconds
        )
        self._wants_end = head.wants_end

    def told(self, message: str) -> bytes:
        """The last line."""
        return error_line(message)

    @property
    def is_told(self) -> bool:
        """Whether the client looks for the last line."""
        return self._wants_end


class Audience:
    """Who waits for an answer, until its head is there; once nobody does, its scan is told to stop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._admitted: Admitted | None = None
        self._has_gone = False

    def admit(self, admitted: Admitted) -> None:
        """The scan has its place."""
        with self._lock:
            self._admitted = admitted
            has_gone = self._has_gone
        if has_gone:
            admitted.stop(_GONE, is_cancelled=True)

    def leave(self) -> None:
        """Nobody waits any more."""
        with self._lock:
            self._has_gone = True
            admitted = self._admitted
        if admitted is not None:
            admitted.stop(_GONE, is_cancelled=True)


async def begun(lines: Lines, limiter: CapacityLimiter, receive: Receive, audience: Audience) -> Head:
    """The head, once it is there; raises what came instead of it."""
    head = await first_piece(lines, limiter, receive, audience.leave)
    assert isinstance(head, Head)
    return head
