"""A connection of HTTP: whose it is, and how long it may say nothing.

Contract: the name of a client's certificate stands in the scope of each request of the connection, under
`CERTIFICATE_KEY`: the first of its alternative names, or its common name where it has none, as Flight tells
it. A connection on which no request begins within `_HEAD_SECONDS`, or one that has begun is not whole by
then, is closed: nothing else would end it. What comes after a head, or after an answer, has other limits.
"""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

CERTIFICATE_KEY = "lazydelta.certificate"
_HEAD_SECONDS = 30.0


class Connection(H11Protocol):
    """One connection."""

    _patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as H11Protocol
        """It is there, its handshake done."""
        super().connection_made(transport)
        secured = transport.get_extra_info("ssl_object")
        told = None if secured is None else secured.getpeercert()
        if told:
            self.app = _with_name(self.app, name_of(told))  # of this connection alone
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        """Some bytes came."""
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before:
            self._stop_waiting()
        elif before is None or before.response_complete:
            self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait_for_head(self) -> None:
        if self._patience is None:
            self._patience = self.loop.call_later(_HEAD_SECONDS, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None


def name_of(certificate: dict[str, Any]) -> str | None:  # Any: as `ssl` tells it
    """By which a client is known."""
    for _, value in certificate.get("subjectAltName", ()):
        return str(value)
    for part in certificate.get("subject", ()):
        for key, value in part:
            if key == "commonName":
                return str(value)
    return None


def _with_name(app: ASGIApp, name: str | None) -> ASGIApp:
    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        await app({**scope, CERTIFICATE_KEY: name}, receive, send)

    return answer
