"""What ends a query that Kusto has a word of its own for, so that its clients react as they do to Kusto.

Spec: Kusto, "Query limits", "Errors in native code".
"""

from __future__ import annotations

from lazydelta.errors import InvalidRequestError
from lazydelta.serve.refusals import ForbiddenError, LimitReachedError

MORE = "see https://aka.ms/kustoquerylimits"


class ResultTooLargeError(LimitReachedError):
    """More records or bytes than a result may have."""

    name, number = "E_QUERY_RESULT_SET_TOO_LARGE", 0x80DA0003


class LowMemoryError(LimitReachedError):
    """A query that needs more memory than its share."""

    name, number = "E_LOW_MEMORY_CONDITION", 0x80DA0007


class TimedOutError(LimitReachedError):
    """A query whose time has run out."""

    name, number = "RequestExecutionTimeout", 0x80131505


class NoDatabaseError(InvalidRequestError):
    """A database that is not there, or has no table that the client may read."""


class CommandRefusedError(ForbiddenError):
    """A command that would write."""


def too_many_records(records_max: int) -> ResultTooLargeError:
    """In Kusto's words."""
    return _too_large(f"record count limit {records_max}", "truncationmaxrecords")


def too_many_bytes(bytes_max: int) -> ResultTooLargeError:
    """Likewise."""
    return _too_large(f"data size limit {bytes_max}", "truncationmaxsize")


def _too_large(limit: str, option: str) -> ResultTooLargeError:
    return ResultTooLargeError(
        "Query execution has exceeded the allowed limits (80DA0003): Query result set has exceeded the"
        f" internal {limit} (E_QUERY_RESULT_SET_TOO_LARGE; {MORE}).",
        "result",
        f"ask for less, by take or summarize, or set {option} or notruncation",
    )
