"""What is wrong, as the page shows it: what happened, what to do, and where in the query.

Contract: nothing of the server's addresses is told. `line` and `column` count from 1; they are there where
the error is at a place of the query that was sent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec
from starlette.responses import Response

from lazydelta.engines.kql.errors import KqlError
from lazydelta.errors import LazyDeltaError
from lazydelta.serve.calls import kind_of
from lazydelta.serve.concealment import concealed
from lazydelta.serve.config import ServedTable
from lazydelta.serve.http.status import status_of
from lazydelta.serve.page.security import HEADERS

_PLACE = re.compile(r"SQL, line (\d+), column (\d+)")
_MISTAKE = "the server made a mistake; it is in its log"


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """One error, as the page reads it."""

    code: str
    message: str
    fix: str = ""
    line: int | None = None
    column: int | None = None


BUG = Fault(code="Bug", message=_MISTAKE)


def fault_of(error: LazyDeltaError, tables: Iterable[ServedTable]) -> Fault:
    """The error as a client may read it."""
    known = list(tables)
    line, column = _place(error)
    return Fault(
        code=kind_of(error),
        message=concealed(error.what, known),
        fix=concealed(error.fix, known),
        line=line,
        column=column,
    )


def fault_response(status: int, fault: Fault) -> Response:
    """An answer that is nothing but an error."""
    headers = {**HEADERS, "cache-control": "no-store"}
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    body = msgspec.json.encode({"error": fault})
    return Response(body, status, headers=headers, media_type="application/json")


def refused(error: LazyDeltaError, tables: Iterable[ServedTable]) -> Response:
    """The answer to a request that cannot be served."""
    return fault_response(status_of(error), fault_of(error, tables))


def _place(error: LazyDeltaError) -> tuple[int | None, int | None]:
    if isinstance(error, KqlError):
        return error.line, error.column
    found = _PLACE.match(error.where)
    return (None, None) if found is None else (int(found[1]), int(found[2]))
