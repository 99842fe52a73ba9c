"""What every request of HTTP passes through: its id, its trace, and the answer where we made a mistake.

Contract: each answer has the id (`x-request-id`): the client's, where it sends a sane one, else a new one,
which is in the log. What nobody foresaw is answered by 500 and the id, no more; the log has the rest.
"""

from __future__ import annotations

import logging

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lazydelta.serve.calls import REQUEST_ID_HEADER, sane_id
from lazydelta.serve.tracing import request_trace

LOGGER = logging.getLogger("lazydelta.serve")
_HEADER = REQUEST_ID_HEADER.encode()
_FAILED_FROM = 500


class Requests:
    """An application around another one."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one."""
        if scope["type"] != "http":
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        request_id = sane_id(headers.get(REQUEST_ID_HEADER))
        kept = [(name, value) for name, value in scope["headers"] if name != _HEADER]
        scope = {**scope, "headers": [*kept, (_HEADER, request_id.encode())]}
        trace = request_trace(f"http {scope['method']}", headers)
        statuses: list[int] = []

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])
                message = {**message, "headers": [*message["headers"], (_HEADER, request_id.encode())]}
            await send(message)

        failed_by = ""
        try:
            with trace.active():
                await self._app(scope, receive, sending)
        except Exception:
            failed_by = "bug"
            LOGGER.exception("request %s failed", request_id)
            if not statuses:
                await _mistake(request_id)(scope, receive, sending)
        finally:
            if statuses:
                trace.note(http_status=statuses[0])
                failed_by = failed_by or ("" if statuses[0] < _FAILED_FROM else str(statuses[0]))
            trace.end(failed_by=failed_by)


def _mistake(request_id: str) -> JSONResponse:
    told = {
        "code": "Bug",
        "message": "the server made a mistake",
        "where": "request",
        "fix": f"its log says more of request {request_id}",
    }
    return JSONResponse({"error": told}, 500)
