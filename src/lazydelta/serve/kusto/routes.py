"""The paths of Kusto's HTTP interface: requests read, answers begun, errors in Kusto's shape.

Contract: every answer has `x-ms-client-request-id`, the client's where it sent a sane one, and
`x-ms-activity-id`, which is new. A body larger than the limit is not read. Signing in is as everywhere in the
server: a bearer token, or a certificate. `/v1/rest/ping` and `/v1/rest/auth/metadata` need none.
Spec: Kusto, "REST API overview".
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager
from functools import partial

import msgspec
from anyio import CapacityLimiter, to_thread
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from lazydelta.errors import InvalidRequestError, LazyDeltaError
from lazydelta.serve.calls import REQUEST_ID_HEADER, call
from lazydelta.serve.http.body import sent_body
from lazydelta.serve.http.caller import client_of
from lazydelta.serve.http.pulled_response import PulledResponse
from lazydelta.serve.kusto.answers import Answers, Head, MakeWriter
from lazydelta.serve.kusto.commands import Commands, is_at_once, piped_text, split
from lazydelta.serve.kusto.faults import BUG, Fault, error_body
from lazydelta.serve.kusto.frames import small_answer, writer_v1, writer_v2
from lazydelta.serve.kusto.query_record import QueryRecord
from lazydelta.serve.kusto.requests import (
    Asked,
    lower_options,
    read_body,
    read_parameters,
    read_properties,
    sane,
)
from lazydelta.serve.kusto.response import begun, packed, wants_gzip
from lazydelta.serve.kusto.tables import SmallTable
from lazydelta.serve.served import Served
from lazydelta.serve.sign_in import Client

LOGGER = logging.getLogger("lazydelta.serve")
_STARTS_MAX = 128  # questions that are planned, or wait for a place, at once
_PULLS_MAX = 64  # answers that read at once
_JSON = "application/json; charset=utf-8"
_GONE = 499  # nobody reads it
_Handler = Callable[[Request], Awaitable[Response]]
_Answering = Callable[[Request, Asked, Client], Awaitable[Response]]


class KustoApi:
    """One endpoint."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self.answers = Answers(served)
        self._commands = Commands(served, self.answers.log)
        self._starts = CapacityLimiter(_STARTS_MAX)
        self._pulls = CapacityLimiter(_PULLS_MAX)
        self._warming = threading.Thread(target=self._warm, name="lazydelta-kusto-warm", daemon=True)

    def routes(self) -> list[BaseRoute]:
        """What an application needs to speak the protocol."""
        return [
            self._post("/v2/rest/query", "query", partial(self._query, writer_v2)),
            self._post("/v1/rest/query", "query", partial(self._query, writer_v1)),
            self._post("/v1/rest/mgmt", "mgmt", self._command),
            Route("/v1/rest/auth/metadata", _metadata),
            Route("/v1/rest/ping", _ping),
        ]

    def warm(self) -> None:
        """Have ready, in the background, what the first query would wait for."""
        self._warming.start()

    def close(self) -> None:
        """Let go of what is held."""
        if self._warming.is_alive():
            self._warming.join()
        self.answers.close()

    def _warm(self) -> None:
        try:
            self.answers.warm()
        except LazyDeltaError as error:  # the extra is not installed, or there is too little memory
            LOGGER.info("queries of KQL are not served: %s", error.what)

    def _post(self, path: str, method: str, answer: _Answering) -> Route:
        return Route(path, self._handler(method, answer), methods=["POST"])

    def _handler(self, method: str, answer: _Answering) -> _Handler:
        """What reads a request, has it answered, and tells what is wrong."""

        async def handle(request: Request) -> Response:
            asked = _bare(request)
            try:
                with self._reading(request, method):
                    client = client_of(self._served, request)
                    asked = _with_body(asked, await self._body(request), request, self._bytes_max)
                    _check_place(asked.text, method)
                return await answer(request, asked, client)
            except ClientDisconnect:
                return Response(status_code=_GONE)
            except LazyDeltaError as error:
                return _refused(self.answers.fault(error), asked)
            except Exception:
                LOGGER.exception("request %s failed", request.headers.get(REQUEST_ID_HEADER))
                return _refused(BUG, asked)

        return handle

    async def _query(self, make: MakeWriter, request: Request, asked: Asked, client: Client) -> Response:
        """The rows of a query, as they come."""
        return await self._streamed(make, request, asked, client)

    async def _command(self, request: Request, asked: Asked, client: Client) -> Response:
        """The rows of a command."""
        parts = split(asked.text)
        run = partial(self._run, parts.command, asked, client, request.headers.get(REQUEST_ID_HEADER))
        table = await to_thread.run_sync(run, limiter=self._starts)
        if not parts.query:
            return Response(small_answer(table), headers=_headers(asked), media_type=_JSON)
        piped = msgspec.structs.replace(asked, text=piped_text(table, parts.query))
        return await self._streamed(writer_v1, request, piped, client)

    def _run(self, command: str, asked: Asked, client: Client, call_id: str | None) -> SmallTable:
        admission = self._served.admission
        with call(self._served.metrics, "kusto", "mgmt", call_id) as noted:
            noted.client = client.name
            if is_at_once(command):  # which must not wait for a place behind what it is to end
                return self._commands.run(command, asked, client)
            with admission.admitted(client, "command") as admitted:
                table = self._commands.run(command, asked, client)
                admitted.check()
            return table

    async def _streamed(self, make: MakeWriter, request: Request, asked: Asked, client: Client) -> Response:
        record = QueryRecord(asked, client)
        call_id = request.headers.get(REQUEST_ID_HEADER)
        answer = self.answers.query(record, client, make, call_id=call_id)
        gone = partial(record.cancel, "its client has gone")
        head = await begun(answer, self._starts, request.receive, gone)
        headers = {**_headers(asked), "content-type": _JSON}
        chunks: Generator[Head | bytes, None, None] = answer
        if wants_gzip(request.headers.get("accept-encoding")):
            headers |= {"content-encoding": "gzip", "vary": "accept-encoding"}
            chunks = packed(answer)
        return PulledResponse(
            chunks,
            self._pulls,
            headers=headers,
            admitted=head.admitted,
            stalled_seconds=self._served.admission.limits.stalled_seconds,
        )

    @property
    def _bytes_max(self) -> int:
        return self._served.admission.limits.request_bytes

    async def _body(self, request: Request) -> bytes:
        """What the client sent, unless it is too much."""
        return await sent_body(request, self._served.admission.limits)

    @contextmanager
    def _reading(self, request: Request, method: str) -> Iterator[None]:
        """What is wrong with a request before it is a question has its line in the access log, too."""
        try:
            yield
        except LazyDeltaError:
            with call(self._served.metrics, "kusto", method, request.headers.get(REQUEST_ID_HEADER)):
                raise


async def _ping(_: Request) -> Response:
    return PlainTextResponse("Pong!")


async def _metadata(_: Request) -> Response:
    """How to sign in: not by Azure's directory; clients take their own defaults then."""
    return Response(b'{"AzureAD":null,"dSTS":null}', media_type=_JSON)


def _bare(request: Request) -> Asked:
    """A request of which the head alone is read."""
    headers = request.headers
    return Asked(
        text="",
        database="",
        options={},
        parameters={},
        request_id=sane(headers.get("x-ms-client-request-id")) or f"lazydelta;{uuid.uuid4()}",
        activity_id=str(uuid.uuid4()),
        application=sane(headers.get("x-ms-app")),
    )


def _with_body(asked: Asked, sent: bytes, request: Request, bytes_max: int) -> Asked:
    body = read_body(sent, request.headers.get("content-encoding"), bytes_max=bytes_max)
    properties = read_properties(body)
    return msgspec.structs.replace(
        asked,
        text=body.csl,
        database=body.db or "",
        options=lower_options(properties.options),
        parameters=read_parameters(properties.parameters),
    )


def _check_place(text: str, method: str) -> None:
    is_command = text.lstrip().startswith(".")
    if is_command and method != "mgmt":
        raise InvalidRequestError("a management command is no query", "csl", "send it by execute_mgmt")
    if not is_command and method == "mgmt":
        raise InvalidRequestError("a query is no management command", "csl", "send it by execute_query")


def _refused(fault: Fault, asked: Asked) -> Response:
    headers = _headers(asked)
    if fault.kind.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    body = msgspec.json.encode(error_body(fault, asked))
    return Response(body, fault.kind.status, headers=headers, media_type=_JSON)


def _headers(asked: Asked) -> dict[str, str]:
    return {"x-ms-client-request-id": asked.request_id, "x-ms-activity-id": asked.activity_id}
