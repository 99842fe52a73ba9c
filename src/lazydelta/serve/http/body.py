"""The body of a request, as far as it may be read."""

from __future__ import annotations

import anyio
from starlette.requests import Request

from lazydelta.serve.config_parts import LimitsPart
from lazydelta.serve.refusals import StalledError, TooLargeError


async def sent_body(request: Request, limits: LimitsPart) -> bytes:
    """What the client sent; raises where it is too much, or does not come."""
    found = bytearray()
    with anyio.move_on_after(limits.stalled_seconds or None) as patience:
        async for chunk in request.stream():
            found += chunk
            if 0 < limits.request_bytes < len(found):
                raise TooLargeError(
                    f"the body has more than {limits.request_bytes:,} bytes (limits.request_bytes)",
                    "body",
                    "send less",
                )
    if patience.cancelled_caught:
        raise StalledError(
            f"the body did not come within {limits.stalled_seconds:g} s (limits.stalled_seconds)",
            "body",
            "send it whole",
        )
    return bytes(found)
