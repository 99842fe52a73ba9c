"""Our errors as answers of HTTP."""

from __future__ import annotations

from starlette.responses import JSONResponse, Response

from lazydelta.errors import (
    CorruptDataError,
    CorruptLogError,
    InvalidRequestError,
    LazyDeltaError,
    StorageError,
    TableNotFoundError,
    UnsupportedTableError,
    VersionNotFoundError,
)
from lazydelta.serve.refusals import (
    ForbiddenError,
    LimitReachedError,
    StalledError,
    TooLargeError,
    UnauthenticatedError,
    UnavailableError,
)

# The first that fits counts.
_STATUSES: tuple[tuple[type[LazyDeltaError], int], ...] = (
    (UnauthenticatedError, 401),
    (ForbiddenError, 403),
    (TooLargeError, 413),
    (StalledError, 408),
    (LimitReachedError, 429),
    (UnavailableError, 503),
    (StorageError, 503),
    (TableNotFoundError, 404),
    (VersionNotFoundError, 404),
    (InvalidRequestError, 400),
    (UnsupportedTableError, 501),
    (CorruptLogError, 422),  # another try does not help: not 5xx, which clients take as an invitation
    (CorruptDataError, 422),
    (LazyDeltaError, 500),
)


def status_of(error: LazyDeltaError) -> int:
    """The status of HTTP."""
    return next(status for kind, status in _STATUSES if isinstance(error, kind))


def error_response(error: LazyDeltaError) -> Response:
    """The whole answer."""
    body = {
        "code": type(error).__name__.removesuffix("Error"),
        "message": error.what,
        "where": error.where,
        "fix": error.fix,
    }
    headers = {"WWW-Authenticate": "Bearer"} if isinstance(error, UnauthenticatedError) else None
    return JSONResponse({"error": body}, status_of(error), headers)


def refusal_response(status: int, message: str, headers: dict[str, str]) -> Response:
    """The answer to what no route is for."""
    body = {"code": str(status), "message": message, "where": "request", "fix": "see docs/serve.md"}
    return JSONResponse({"error": body}, status, headers)
