"""Event streams as answers of HTTP.

Contract: the first event is there before the answer begins, so that what is wrong until then has a status.
What goes wrong later is the last event, `error`, and the answer is whole all the same: the page reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing

from anyio import CapacityLimiter
from starlette.types import Receive

from lazydelta.serve.admitted import Admitted
from lazydelta.serve.http.pulled_response import Chunks, PulledResponse, first_piece
from lazydelta.serve.page.events import EVENT_HEADERS, event
from lazydelta.serve.page.faults import Fault

Events = Generator[bytes, None, None]


class EventResponse(PulledResponse):
    """The events of one generator."""

    def __init__(
        self,
        events: Chunks,
        limiter: CapacityLimiter,
        *,
        stalled_seconds: float,
        admitted: Admitted | None = None,
    ) -> None:
        super().__init__(
            events, limiter, headers=EVENT_HEADERS, stalled_seconds=stalled_seconds, admitted=admitted
        )

    def told(self, message: str) -> bytes:
        """The last event of an answer that breaks off."""
        return event("error", Fault(code="BrokenOff", message=message))

    @property
    def is_told(self) -> bool:
        """The page reads it."""
        return True


async def begun(
    events: Events, limiter: CapacityLimiter, receive: Receive, gone: Callable[[], None]
) -> Events:
    """The same events, the first of which is there; raises what came instead.

    `gone` is called where the client has left before it is there.
    """
    first = await first_piece(events, limiter, receive, gone)
    return _after(first or b"", events)


def _after(first: bytes, rest: Events) -> Events:
    with closing(rest):
        yield first
        yield from rest
