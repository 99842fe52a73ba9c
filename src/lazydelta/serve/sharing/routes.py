"""The paths of Delta Sharing, below one prefix: requests read, answers begun, errors in the protocol's shape.

Contract: every answer that is no success is `{"errorCode", "message"}` with a status that tells clients
whether another try may help: 429 and 503 do, 4xx do not. A body larger than the limit is not read. What a
client may not read is not found.
Spec: PROTOCOL.md of Delta Sharing, "REST APIs".
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from anyio import CapacityLimiter, to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from lazydelta.errors import LazyDeltaError, UnsupportedTableError, VersionNotFoundError
from lazydelta.serve.calls import call
from lazydelta.serve.http.body import sent_body
from lazydelta.serve.http.caller import client_of
from lazydelta.serve.http.file_routes import FileServer
from lazydelta.serve.http.pulled_response import told
from lazydelta.serve.http.status import status_of
from lazydelta.serve.link_office import FILES_PATH
from lazydelta.serve.refusals import UnauthenticatedError
from lazydelta.serve.served import Served
from lazydelta.serve.sharing.answers import Answers, Asker
from lazydelta.serve.sharing.directory import Directory, Item
from lazydelta.serve.sharing.line_response import LineResponse, Lines, begun
from lazydelta.serve.sharing.requests import (
    CAPABILITIES_HEADER,
    FILE_ID_HEADER,
    VERSION_HEADER,
    read_capabilities,
    read_changes,
    read_file_id,
    read_list,
    read_query,
    read_version,
)
from lazydelta.serve.sign_in import Client

LOGGER = logging.getLogger("lazydelta.serve")
PREFIX = "/delta-sharing"
_TABLE = "/shares/{share}/schemas/{schema}/tables/{table}"
_STARTS_MAX = 128  # questions that are planned, or wait for a place, at once
_PULLS_MAX = 64  # answers that read at once
_CODES = {
    400: "INVALID_PARAMETER_VALUE",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "RESOURCE_DOES_NOT_EXIST",
    405: "METHOD_NOT_ALLOWED",
    408: "REQUEST_TIMEOUT",
    413: "REQUEST_TOO_LARGE",
    422: "TABLE_IS_DAMAGED",
    429: "RESOURCE_EXHAUSTED",
    503: "TEMPORARILY_UNAVAILABLE",
}
_Handler = Callable[[Request], Awaitable[Response]]


def sharing_routes(served: Served) -> list[BaseRoute]:
    """What an application needs to speak the protocol, and to serve the files that it links to."""
    api = SharingApi(served)
    files = FileServer(served, api.answers.links)
    return [
        Mount(PREFIX, app=api.app()),
        Route(FILES_PATH + "/{payload:path}", files.answer, methods=["GET", "HEAD"]),
    ]


class SharingApi:
    """One endpoint."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self.answers = Answers(served, served.sharing_key)
        self._starts = CapacityLimiter(_STARTS_MAX)
        self._pulls = CapacityLimiter(_PULLS_MAX)

    def app(self) -> Starlette:
        """Its paths."""
        routes = [
            Route("/shares", self._listed("shares")),
            Route("/shares/{share}", self._get_share),
            Route("/shares/{share}/schemas", self._listed("schemas", "share")),
            Route("/shares/{share}/schemas/{schema}/tables", self._listed("tables", "share", "schema")),
            Route("/shares/{share}/all-tables", self._listed("all_tables", "share")),
            Route(_TABLE, self._version, methods=["HEAD"]),
            Route(_TABLE + "/version", self._version),
            Route(_TABLE + "/metadata", self._metadata),
            Route(_TABLE + "/query", self._query, methods=["POST"]),
            Route(_TABLE + "/changes", self._changes),
        ]
        handlers: dict[Any, Any] = {  # Any: as starlette has it
            LazyDeltaError: _refused,
            HTTPException: _unknown,
            ClientDisconnect: _gone,
            Exception: _broken,
        }
        app = Starlette(routes=routes, exception_handlers=handlers)
        app.router.redirect_slashes = False
        return app

    def _listed(self, what: str, *names: str) -> _Handler:
        async def answer(request: Request) -> Response:
            with self._call(request, what) as directory:
                asked = read_list(request.query_params)
                return _json(getattr(directory, what)(*(request.path_params[name] for name in names), asked))

        return answer

    async def _get_share(self, request: Request) -> Response:
        with self._call(request, "share") as directory:
            return _json(directory.share(request.path_params["share"]))

    async def _version(self, request: Request) -> Response:
        with self._reading(request, "version"):
            asker, asked = self._asker(request), read_version(request.query_params)
        version = await to_thread.run_sync(self.answers.version, asker, asked, limiter=self._starts)
        return Response(headers={VERSION_HEADER: str(version)})

    async def _metadata(self, request: Request) -> Response:
        with self._reading(request, "metadata"):
            asker, asked = self._asker(request), read_version(request.query_params)
        return await self._streamed(request, asker, self.answers.metadata(asker, asked))

    async def _query(self, request: Request) -> Response:
        with self._reading(request, "query"):
            asker = self._asker(request)
            body = read_query(await self._body(request))
        return await self._streamed(request, asker, self.answers.query(asker, body))

    async def _changes(self, request: Request) -> Response:
        with self._reading(request, "changes"):
            asker, asked = self._asker(request), read_changes(request.query_params)
        return await self._streamed(request, asker, self.answers.changes(asker, asked))

    async def _streamed(self, request: Request, asker: Asker, lines: Lines) -> Response:
        head = await begun(lines, self._starts, request.receive, asker.audience)
        seconds = self._served.admission.limits.stalled_seconds
        return LineResponse(head, lines, self._pulls, stalled_seconds=seconds)

    def _client(self, request: Request) -> Client:
        return client_of(self._served, request)

    def _asker(self, request: Request) -> Asker:
        names = request.path_params
        return Asker(
            client=self._client(request),
            share=names["share"],
            schema=names["schema"],
            name=names["table"],
            base_url=self._base_url(request),
            capabilities=read_capabilities(request.headers.get(CAPABILITIES_HEADER)),
            file_id=read_file_id(request.headers.get(FILE_ID_HEADER)),
            request_id=request.headers.get("x-request-id"),
        )

    def _base_url(self, request: Request) -> str:
        """Of this server, as the client reaches it."""
        public = self._served.config.server.public_url
        return public.rstrip("/") or f"{request.url.scheme}://{request.url.netloc}"

    async def _body(self, request: Request) -> bytes:
        """What the client sent, unless it is too much."""
        return await sent_body(request, self._served.admission.limits)

    @contextmanager
    def _call(self, request: Request, method: str) -> Iterator[Directory]:
        with call(self._served.metrics, "sharing", method, request.headers.get("x-request-id")) as noted:
            client = self._client(request)
            noted.client = client.name
            yield Directory(self._served.catalog, client, self.answers.tokens)

    @contextmanager
    def _reading(self, request: Request, method: str) -> Iterator[None]:
        """What is wrong with a request before it is a question has its line in the access log, too."""
        try:
            yield
        except LazyDeltaError:
            with call(self._served.metrics, "sharing", method, request.headers.get("x-request-id")):
                raise


def error_answer(
    status: int, message: str, headers: dict[str, str] | None = None, code: str | None = None
) -> Response:
    """In the protocol's shape."""
    body = {"errorCode": code or _CODES.get(status, "INTERNAL_ERROR"), "message": message}
    return JSONResponse(body, status, headers)


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, LazyDeltaError)
    # A version or a feature is the client's choice of words; 5xx would have clients try again and again.
    is_choice = isinstance(error, VersionNotFoundError | UnsupportedTableError)
    status = 400 if is_choice else status_of(error)
    headers = {"WWW-Authenticate": "Bearer"} if isinstance(error, UnauthenticatedError) else None
    code = "VERSION_NOT_FOUND" if isinstance(error, VersionNotFoundError) else None
    return error_answer(status, told(error), headers, code)


async def _unknown(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return error_answer(error.status_code, str(error.detail), dict(error.headers or {}))


async def _gone(_: Request, error: Exception) -> Response:
    del error
    return Response(status_code=499)  # nobody reads it


async def _broken(_: Request, error: Exception) -> Response:
    LOGGER.error("a request failed", exc_info=error)
    return error_answer(500, "the server made a mistake; it is in its log")


def _json(item: Item) -> Response:
    return JSONResponse(item, media_type="application/json; charset=utf-8")
