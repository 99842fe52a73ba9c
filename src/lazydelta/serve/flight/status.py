"""Our errors as Flight's statuses: the kind by the status, what, where and fix in its text.

Contract: nothing of the server's own files or addresses is told. Arrow has no word for "resource exhausted":
what reached a limit is told as unavailable, with the limit's name; `extra_info` names the kind of the error
where Arrow has room for it. Of the others pyarrow adds Python's traceback to the text, whatever one does, so
that they are raised anew by `unplaced` functions, whose lines name no file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import pyarrow as pa
from pyarrow import flight

from lazydelta.errors import (
    InvalidRequestError,
    LazyDeltaError,
    StorageError,
    TableNotFoundError,
    UnsupportedTableError,
    VersionNotFoundError,
)
from lazydelta.serve.refusals import (
    CancelledError,
    LimitReachedError,
    UnauthenticatedError,
    UnavailableError,
)

Function = TypeVar("Function", bound=Callable[..., Any])
_NOWHERE = "<lazydelta>"  # in these brackets: Python looks for no source

# The first that fits counts.
_STATUSES: tuple[tuple[type[LazyDeltaError], type[Exception]], ...] = (
    (UnauthenticatedError, flight.FlightUnauthenticatedError),
    (LimitReachedError, flight.FlightUnavailableError),
    (UnavailableError, flight.FlightUnavailableError),
    # Not as cancelled: pyarrow's clients take that for Ctrl-C, and end as if it had been pressed.
    (CancelledError, flight.FlightServerError),
    (StorageError, flight.FlightUnavailableError),
    (TableNotFoundError, pa.ArrowKeyError),
    (VersionNotFoundError, pa.ArrowKeyError),
    (InvalidRequestError, pa.ArrowInvalid),
    (UnsupportedTableError, pa.ArrowNotImplementedError),
    (LazyDeltaError, flight.FlightServerError),
)


def status_of(error: LazyDeltaError, conceal: Callable[[LazyDeltaError], str]) -> Exception:
    """The error as Flight knows it."""
    kind: Any = next(status for ours, status in _STATUSES if isinstance(error, ours))  # Any: pyarrow's
    text = conceal(error)
    if issubclass(kind, flight.FlightError):
        return _with_kind(kind, text, type(error).__name__.removesuffix("Error"))
    found: Exception = kind(text)
    return found


def bug_status(request_id: str) -> Exception:
    """What nobody foresaw: the server's log has the rest."""
    text = f"the server could not answer: its log says more of request {request_id}"
    return _with_kind(flight.FlightInternalError, text, "Bug")


def unplaced(function: Function) -> Function:
    """The function with nothing of its file in the tracebacks of what it raises."""
    function.__code__ = function.__code__.replace(co_filename=_NOWHERE)
    return function


def _with_kind(kind: Any, text: str, name: str) -> Exception:  # Any: pyarrow's
    found: Exception = kind(text, extra_info=name.encode())
    return found
