"""Our errors in Kusto's shape: a code and a type that clients know, the words, and the place in the query.

Contract: what can be told with a status is told as `{"error": {…}}`; what happens after the first rows stands
in the body (`frames.py`), in the same words. `@permanent` says whether another try is in vain. Nothing of the
server's addresses is told, and a table that one may not read is told as one that is not there.
Spec: Kusto, "Query V2 HTTP response", "Kusto.Data exceptions"; OneApiErrors.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec

from lazydelta.engines.kql.errors import SYNTAX, TOO_LARGE, UNKNOWN_NAME, KqlError
from lazydelta.errors import (
    InvalidRequestError,
    LazyDeltaError,
    StorageError,
    TableNotFoundError,
    UnsupportedTableError,
    VersionNotFoundError,
)
from lazydelta.serve.concealment import concealed
from lazydelta.serve.config import ServedTable
from lazydelta.serve.http.status import status_of
from lazydelta.serve.kusto.refusals import (
    LowMemoryError,
    NoDatabaseError,
    ResultTooLargeError,
    TimedOutError,
)
from lazydelta.serve.kusto.requests import Asked
from lazydelta.serve.refusals import (
    CancelledError,
    ForbiddenError,
    LimitReachedError,
    StalledError,
    TooLargeError,
    UnauthenticatedError,
    UnavailableError,
)

_INVALID = "Request is invalid and cannot be executed."
_SYNTAX_CODES = (SYNTAX, TOO_LARGE)
_FAILED, _CANCELLED = 0x80004005, 0x80DA0006
_TYPES = "Kusto.Data.Exceptions."


class Kind(msgspec.Struct, frozen=True):
    """How an error is told."""

    status: int
    code: str
    type: str
    message: str = _INVALID
    is_permanent: bool = True


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """One error, as a client may read it."""

    kind: Kind
    text: str
    inner_code: str = ""  # Kusto's: SEM0100
    line: int | None = None
    column: int | None = None
    name: str = "E_FAIL"  # of its native code
    number: int = _FAILED
    is_cancelled: bool = False

    @property
    def status_code(self) -> int:
        """The native code as Kusto writes it: a signed number."""
        return self.number - (1 << 32)


_LIMITS_EXCEEDED = Kind(
    400,
    "LimitsExceeded",
    "KustoServicePartialQueryFailureLimitsExceededException",
    "Request is invalid and cannot be executed.",
)
# The first that fits counts.
_KINDS: tuple[tuple[type[LazyDeltaError], Kind], ...] = (
    (UnauthenticatedError, Kind(401, "Unauthorized", "KustoRequestDeniedException", "Nobody signed in.")),
    (ForbiddenError, Kind(403, "Forbidden", "KustoRequestDeniedException", "The request is denied.")),
    (
        TooLargeError,
        Kind(413, "Payload too large", "KustoRequestPayloadTooLargeException", "The request is too large."),
    ),
    (ResultTooLargeError, _LIMITS_EXCEEDED),
    (
        LowMemoryError,
        Kind(
            400,
            "LowMemoryCondition",
            "KustoServicePartialQueryFailureLowMemoryConditionException",
            "Query execution lacks memory resources to complete.",
        ),
    ),
    (
        TimedOutError,
        Kind(
            504,
            "RequestExecutionTimeout",
            "KustoServiceTimeoutException",
            "Request execution timed-out on the service side.",
            is_permanent=False,
        ),
    ),
    (
        StalledError,
        Kind(
            408,
            "Request Timeout",
            "KustoBadRequestException",
            "The request did not come in time.",
            is_permanent=False,
        ),
    ),
    (
        LimitReachedError,
        Kind(
            429,
            "TooManyRequests",
            "KustoRequestThrottledException",
            "The request is denied due to throttling.",
            is_permanent=False,
        ),
    ),
    (
        CancelledError,
        Kind(
            400,
            "QueryCancelled",
            "KustoServicePartialQueryFailureException",
            "Query execution has been cancelled.",
        ),
    ),
    (
        UnavailableError,
        Kind(
            503,
            "ServiceUnavailable",
            "KustoServiceException",
            "The service is not available now.",
            is_permanent=False,
        ),
    ),
    (
        StorageError,
        Kind(
            503,
            "ServiceUnavailable",
            "KustoServicePartialQueryFailureException",
            "The service cannot read its data now.",
            is_permanent=False,
        ),
    ),
    (NoDatabaseError, Kind(400, "BadRequest_DatabaseNotExist", "DatabaseNotFoundException")),
    (TableNotFoundError, Kind(400, "General_BadRequest", "SemanticException")),
    (InvalidRequestError, Kind(400, "General_BadRequest", "KustoBadRequestException")),
    (VersionNotFoundError, Kind(400, "General_BadRequest", "KustoBadRequestException")),
    (UnsupportedTableError, Kind(400, "General_BadRequest", "KustoBadRequestException")),
)
_SYNTAX = Kind(400, "BadRequest_SyntaxError", "SyntaxException")
_SEMANTIC = Kind(400, "General_BadRequest", "SemanticException")
BUG = Fault(
    kind=Kind(500, "InternalServiceError", "KustoServiceException", "An unexpected error occurred."),
    text="the server made a mistake; it is in its log",
)


def fault_of(error: LazyDeltaError, tables: Iterable[ServedTable]) -> Fault:
    """The error as a client may read it."""
    own = concealed(f"{error.what}; {error.fix}", list(tables))
    if isinstance(error, KqlError):
        return _of_query(error, own)
    kind = next((kind for ours, kind in _KINDS if isinstance(error, ours)), None)
    if kind is None:
        kind = Kind(status_of(error), "InternalServiceError", "KustoServiceException", "The data is damaged.")
    if isinstance(error, ResultTooLargeError | LowMemoryError | TimedOutError):
        text = error.what if isinstance(error, ResultTooLargeError) else own
        return Fault(kind=kind, text=text, name=error.name, number=error.number)
    if isinstance(error, CancelledError):
        text = f"Query execution has been cancelled (80DA0006): {own} (E_QUERY_CANCELLED)."
        return Fault(kind=kind, text=text, name="E_QUERY_CANCELLED", number=_CANCELLED, is_cancelled=True)
    if isinstance(error, TableNotFoundError):
        return Fault(kind=kind, text=_semantic(UNKNOWN_NAME, own), inner_code=UNKNOWN_NAME)
    return Fault(kind=kind, text=own)


def error_body(fault: Fault, asked: Asked) -> dict[str, Any]:  # Any: as JSON has it
    """`{"error": {…}}`."""
    context = {
        "timestamp": _now(),
        "serviceAlias": "LAZYDELTA",
        "clientRequestId": asked.request_id,
        "activityId": asked.activity_id,
        "subActivityId": asked.activity_id,
        "activityType": "GW.Http.CallContext",
        "parentActivityId": asked.activity_id,
    }
    error: dict[str, Any] = {
        "code": fault.kind.code,
        "message": fault.kind.message,
        "@type": _TYPES + fault.kind.type,
        "@message": fault.text,
        "@context": context,
        "@permanent": fault.kind.is_permanent,
    }
    if fault.inner_code:
        inner: dict[str, Any] = {
            "code": fault.inner_code,
            "message": fault.text,
            "@errorCode": fault.inner_code,
        }
        if fault.line is not None:
            inner |= {"line": fault.line, "pos": fault.column}
        error["innererror"] = inner
    return {"error": error}


def _of_query(error: KqlError, own: str) -> Fault:
    is_syntax = error.code in _SYNTAX_CODES
    place = ""
    if error.line is not None:
        place = f" [line:position={error.line}:{error.column}]"
    text = f"{own}{place}"
    return Fault(
        kind=_SYNTAX if is_syntax else _SEMANTIC,
        text=_syntax(error.code, text) if is_syntax else _semantic(error.code, text),
        inner_code=error.code,
        line=error.line,
        column=error.column,
    )


def _syntax(code: str, text: str) -> str:
    return f"Request is invalid and cannot be processed: Syntax error: {code}: {text}"


def _semantic(code: str, text: str) -> str:
    return f"Request is invalid and cannot be processed: Semantic error: {code}: {text}"


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f0Z")
