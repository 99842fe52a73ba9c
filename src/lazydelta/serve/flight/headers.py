"""What matters of the headers of one call of Flight: who signs in, the call's id, the caller's trace.

Contract: plain text; what a header does not hold, or not as text, is not there.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping

from pyarrow import flight

from lazydelta.serve.batches import message_bytes
from lazydelta.serve.calls import REQUEST_ID_HEADER, sane_id
from lazydelta.serve.sign_in import bearer_token

_TRACE_HEADERS = ("traceparent", "tracestate", "baggage")


class Headers(flight.ServerMiddleware):  # type: ignore[misc]  # pyarrow has no types
    """What matters of a call's headers."""

    def __init__(self, told: Mapping[str, str]) -> None:
        super().__init__()
        authorization = told.get("authorization")
        self.user, password = _basic(authorization)
        self.token = bearer_token(authorization) if self.user is None else password
        self.request_id = sane_id(told.get(REQUEST_ID_HEADER))
        self.message_bytes = message_bytes(told.get("user-agent", ""))
        self.trace = {name: told[name] for name in _TRACE_HEADERS if name in told}

    def sending_headers(self) -> dict[str, str]:
        """The id; and the token, to who signed in by a name and a password."""
        found = {REQUEST_ID_HEADER: self.request_id}
        return found if self.user is None else {**found, "authorization": f"Bearer {self.token}"}


def texts_of(headers: Mapping[str, list[str | bytes]]) -> dict[str, str]:
    """The first value of each header that is text."""
    return {
        name.lower(): values[0] for name, values in headers.items() if values and isinstance(values[0], str)
    }


def _basic(authorization: str | None) -> tuple[str | None, str | None]:
    """The user and the password of a `Basic` header."""
    kind, _, told = (authorization or "").partition(" ")
    if kind.lower() != "basic":
        return None, None
    try:
        user, colon, password = base64.b64decode(told, validate=True).decode("utf-8").partition(":")
    except ValueError:
        return None, None
    return (user, password) if colon else (None, None)
