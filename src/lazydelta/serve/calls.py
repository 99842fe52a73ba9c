"""Every call of every protocol passes through here: an id, a line in the access log, numbers, its trace.

Contract: a call ends exactly once, however it ends; its line names the client, the table, rows and seconds,
never a secret, a filter or an address. The id is the client's (`x-request-id`) where it sends a sane one.
"""

from __future__ import annotations

import logging
import re
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from lazydelta.errors import LazyDeltaError
from lazydelta.serve.log_lines import ACCESS_LOGGER
from lazydelta.serve.metrics import ServeMetrics
from lazydelta.serve.refusals import CancelledError, LimitReachedError
from lazydelta.serve.tracing import NO_TRACE, Trace, current_trace

ACCESS_LOG = logging.getLogger(ACCESS_LOGGER)
CANCELLED = "cancelled"  # the status, whoever found out: the client has gone, or told the scan to stop
REQUEST_ID_HEADER = "x-request-id"
_SANE_ID = re.compile(r"[A-Za-z0-9._\-]{1,128}\Z")
_LIMIT = re.compile(r"\(limits\.(\w+)\)")


class Call(msgspec.Struct):
    """One call while it runs."""

    id: str
    protocol: str
    method: str
    client: str = ""
    table: str = ""
    rows: int = 0
    status: str = "ok"
    goes_on: bool = False  # as another call, which ends for both
    trace: Trace = NO_TRACE
    began: float = 0.0  # of `time.monotonic()`


class _Line:
    """The text of a line, for who asks for it."""

    def __init__(self, fields: dict[str, str | int | float]) -> None:
        self._fields = fields

    def __str__(self) -> str:
        return msgspec.json.encode(self._fields).decode()


@contextmanager
def call(
    metrics: ServeMetrics,
    protocol: str,
    method: str,
    asked_id: str | None = None,
    *,
    trace: Trace | None = None,
    began: float | None = None,
) -> Iterator[Call]:
    """The call for as long as it takes.

    `trace`: its span, the current one where none is given; `began`: of the call that it goes on from.
    """
    found = Call(sane_id(asked_id), protocol, method, trace=trace or current_trace())
    found.began = time.monotonic() if began is None else began
    try:
        yield found
    except (GeneratorExit, CancelledError):
        found.status = CANCELLED
        raise
    except LazyDeltaError as error:
        found.status = kind_of(error)
        if isinstance(error, LimitReachedError) and (limit := _LIMIT.search(error.what)):
            metrics.limit_reached(limit[1])
        raise
    except BaseException:
        found.status = "bug"
        raise
    finally:
        if not found.goes_on:
            _note(metrics, found, time.monotonic() - found.began)


def sane_id(asked: str | None) -> str:
    """The id that was asked for, or a new one."""
    return asked if asked and _SANE_ID.match(asked) else uuid.uuid4().hex


def kind_of(error: LazyDeltaError) -> str:
    """The name of its branch."""
    return type(error).__name__.removesuffix("Error")


def _note(metrics: ServeMetrics, found: Call, seconds: float) -> None:
    metrics.ended(
        protocol=found.protocol,
        method=found.method,
        status=found.status,
        seconds=seconds,
        table=found.table,
        rows=found.rows,
    )
    line: dict[str, str | int | float] = {
        "id": found.id,
        "protocol": found.protocol,
        "method": found.method,
        "client": found.client,
        "table": found.table,
        "rows": found.rows,
        "status": found.status,
    }
    found.trace.rename(f"{found.protocol} {found.method}")
    found.trace.note(**{"request_id" if name == "id" else name: value for name, value in line.items()})
    line["ms"] = round(1000 * seconds, 1)
    if trace_id := found.trace.id:
        line["trace"] = trace_id
    ACCESS_LOG.info("%s", _Line(line), extra={"fields": line})
