"""An answer of lines, whose head waits for the first of them.

Contract: the generator gives a `Head` first, which waits for what the first lines need, so that whatever is
wrong until then is answered with a status; bytes follow. An error after the head is told by an
`endStreamAction`.
"""

from __future__ import annotations

from collections.abc import Generator

import anyio
import msgspec
from anyio import CapacityLimiter, to_thread

from lazydelta.serve.admitted import Admitted
from lazydelta.serve.http.pulled_response import PulledResponse, closed
from lazydelta.serve.sharing.lines import error_line

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


async def begun(lines: Lines, limiter: CapacityLimiter) -> Head:
    """The head, once it is there; raises what came instead of it."""
    try:
        head = await to_thread.run_sync(next, lines, limiter=limiter)
    except BaseException:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(closed, lines, limiter=limiter)
        raise
    assert isinstance(head, Head)
    return head
