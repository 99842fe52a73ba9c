"""How the page's questions are asked and answered: signed in, noted, refused in the page's words.

Contract: a question is read whole before it is answered; every question has one line in the access log,
however it ends. Whatever blocks runs in a worker thread.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import Any

import msgspec
from anyio import CapacityLimiter, to_thread
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from lazydelta.errors import LazyDeltaError
from lazydelta.serve.calls import REQUEST_ID_HEADER, Call, call, kind_of
from lazydelta.serve.http.body import sent_body
from lazydelta.serve.http.caller import client_of
from lazydelta.serve.page.events import event
from lazydelta.serve.page.faults import BUG, fault_of, fault_response, refused
from lazydelta.serve.page.requests import Question
from lazydelta.serve.page.response import EventResponse, begun
from lazydelta.serve.page.security import HEADERS, check_origin
from lazydelta.serve.served import Served

LOGGER = logging.getLogger("lazydelta.serve")
_STARTS_MAX = 64  # questions that are planned, or wait for a place, at once
_PULLS_MAX = 64  # answers that read at once
_GONE = 499  # nobody reads it
Handler = Callable[[Request], Awaitable[Response]]
Find = Callable[[Question, Call], Any]  # Any: as JSON has it
Tell = Callable[[Question, Call], Generator[bytes, None, None]]
Respond = Callable[[Request, Question], Awaitable[Response]]


class Endpoint:
    """Those of one server."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self.starts = CapacityLimiter(_STARTS_MAX)
        self.pulls = CapacityLimiter(_PULLS_MAX)

    def value(self, method: str, find: Find) -> Handler:
        """A question whose answer is one value."""

        async def respond(_: Request, question: Question) -> Response:
            def found() -> Any:  # Any: as JSON has it
                with self.noted(method, question) as noted:
                    return find(question, noted)

            return _json(await to_thread.run_sync(found, limiter=self.starts))

        return self.asked(method, respond)

    def events(self, method: str, tell: Tell) -> Handler:
        """A question whose answer comes bit by bit."""

        async def respond(request: Request, question: Question) -> Response:
            return await self.streamed(request, question, method, partial(tell, question))

        return self.asked(method, respond)

    async def streamed(
        self,
        request: Request,
        question: Question,
        method: str,
        tell: Callable[[Call], Generator[bytes, None, None]],
        gone: Callable[[], None] = lambda: None,
    ) -> Response:
        """The events of a question; `gone` is called where its client leaves before the first of them."""

        def events() -> Generator[bytes, None, None]:
            is_begun = False
            with self.noted(method, question) as noted, closing(tell(noted)) as told:
                try:
                    for one in told:
                        yield one
                        is_begun = True
                except LazyDeltaError as error:
                    if not is_begun:
                        raise
                    noted.status = kind_of(error)
                    LOGGER.info("an answer broke off: %s", error)
                    yield event("error", fault_of(error, self._served.config.tables.values()))

        begun_events = await begun(events(), self.starts, request.receive, gone)
        stalled_seconds = self._served.admission.limits.stalled_seconds
        return EventResponse(begun_events, self.pulls, stalled_seconds=stalled_seconds)

    def asked(self, method: str, respond: Respond) -> Handler:
        """What reads a question, has it answered, and tells what is wrong."""

        async def handle(request: Request) -> Response:
            try:
                with call(self._served.metrics, "page", method, _id(request)) as noted:
                    question = await self._question(request)
                    noted.goes_on = True
                return await respond(request, question)
            except ClientDisconnect:
                return Response(status_code=_GONE)
            except LazyDeltaError as error:
                return refused(error, self._served.config.tables.values())
            except Exception:
                LOGGER.exception("request %s failed", _id(request))
                return fault_response(500, BUG)

        return handle

    @contextmanager
    def noted(self, method: str, question: Question) -> Iterator[Call]:
        """The line of a question in the access log."""
        with call(self._served.metrics, "page", method, question.id) as noted:
            noted.client = question.client.name
            if question.table:  # as it is served: names of strangers do not go into the log
                noted.table = self._served.catalog.find(question.table, question.client).name
            yield noted

    async def _question(self, request: Request) -> Question:
        check_origin(self._served, request)
        client = client_of(self._served, request)
        return Question(
            client=client,
            table=request.path_params.get("table", ""),
            parameters=dict(request.query_params),
            body=await sent_body(request, self._served.admission.limits),
            id=_id(request),
        )


def _json(value: Any) -> Response:  # Any: as JSON has it
    headers = {**HEADERS, "cache-control": "no-store"}
    return Response(msgspec.json.encode(value), headers=headers, media_type="application/json")


def _id(request: Request) -> str | None:
    return request.headers.get(REQUEST_ID_HEADER)
