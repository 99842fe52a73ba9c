"""Server-sent events: what a page reads while it comes.

Contract: an event has a name and one value of JSON, on one line, so that nothing in a value can end it.
Spec: HTML, "Server-sent events", "Interpreting an event stream".
"""

from __future__ import annotations

from typing import Any

import msgspec

from lazydelta.serve.page.security import HEADERS

# Proxies that gather answers before they pass them on are asked not to.
EVENT_HEADERS = {
    **HEADERS,
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-store",
    "x-accel-buffering": "no",
}


def event(name: str, value: Any) -> bytes:  # Any: what JSON has
    """One event."""
    return event_of_text(name, msgspec.json.encode(value))


def event_of_text(name: str, text: bytes) -> bytes:
    """One event whose value is JSON already, without a line's end in it."""
    return b"event: %s\ndata: %s\n\n" % (name.encode(), text)
