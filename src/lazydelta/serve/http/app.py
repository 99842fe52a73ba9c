"""HTTP: health, numbers, and the protocols that speak it.

Contract: `/healthz` answers while the process lives, `/readyz` while it takes requests; `/metrics` asks for a
sign-in as everything else does, unless the server listens to this machine alone, and shows the tables that
the client may read; `server.metrics_readers` names who may see all of it. What is wrong is answered as JSON:
`{"error": {"code", "message", "where", "fix"}}`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from lazydelta.errors import LazyDeltaError
from lazydelta.serve.calls import REQUEST_ID_HEADER, Call, call
from lazydelta.serve.config import is_loopback
from lazydelta.serve.http.caller import client_of
from lazydelta.serve.http.requests import Requests
from lazydelta.serve.http.status import error_response, refusal_response
from lazydelta.serve.metrics import CONTENT_TYPE
from lazydelta.serve.refusals import ForbiddenError
from lazydelta.serve.served import Served


def make_app(served: Served, routes: Sequence[BaseRoute] = ()) -> ASGIApp:
    """The application; `routes` are the protocols'."""

    async def health(_: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def ready(_: Request) -> Response:
        is_ready = served.admission.is_ready
        return PlainTextResponse("ready\n" if is_ready else "draining\n", 200 if is_ready else 503)

    async def metrics(request: Request) -> Response:
        try:
            shown = _tables_shown(served, request)
        except LazyDeltaError:  # who may look has no line in the access log: it looks all the time
            with _noted(served, request, "metrics"):
                raise
        told = served.metrics.exposition(served.admission, shown)
        # As bytes: Starlette would write the character set a second time.
        return Response(told.encode(), headers={"content-type": CONTENT_TYPE})

    async def refused(_: Request, error: Exception) -> Response:
        assert isinstance(error, LazyDeltaError)
        return error_response(error)

    async def unknown(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        with _noted(served, request, "unknown") as noted:
            noted.status = str(error.status_code)
        return refusal_response(error.status_code, str(error.detail), dict(error.headers or {}))

    own = [Route("/healthz", health), Route("/readyz", ready), Route("/metrics", metrics)]
    handlers: dict[Any, Any] = {LazyDeltaError: refused, HTTPException: unknown}  # Any: as starlette has it
    app = Starlette(routes=[*own, *routes], exception_handlers=handlers)
    app.router.redirect_slashes = False
    return Requests(app)


def _tables_shown(served: Served, request: Request) -> set[str] | None:
    """Whose numbers the client may see; None: all."""
    server = served.config.server
    if server.metrics_readers is None and is_loopback(server.host):
        return None
    client = client_of(served, request)
    if server.metrics_readers is None:
        return {table.name for table in served.catalog.seen_by(client)}
    if not client.may_read(frozenset(server.metrics_readers)):
        raise ForbiddenError("the numbers are not for this client", "/metrics", "ask by another client")
    return None


def _noted(served: Served, request: Request, method: str) -> AbstractContextManager[Call]:
    return call(served.metrics, "http", method, request.headers.get(REQUEST_ID_HEADER))
