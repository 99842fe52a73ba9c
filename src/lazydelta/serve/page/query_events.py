"""The rows of a query as events: `columns`, `rows` any number of times, `end`.

Contract: a `Writer` of Kusto's answers, so that KQL is answered here by what answers it there; SQL uses the
same. `end` tells what became of it: an error with its place, whether rows were left out, and what was read.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from lazydelta.engines.kql.columns import KqlColumn
from lazydelta.serve.kusto.completion import Ending
from lazydelta.serve.kusto.refusals import ResultTooLargeError
from lazydelta.serve.page.events import event, event_of_text
from lazydelta.serve.page.explain import explained
from lazydelta.serve.page.faults import Fault


class QueryEvents:
    """One result under way."""

    def __init__(self, *, began: float) -> None:
        """`began`: when the query came, of `time.monotonic()`."""
        self._began = began
        self._first_ms: float | None = None

    def begin(self, found: Sequence[KqlColumn], visualization: Mapping[str, Any] | None) -> bytes:
        """The columns, once the first rows are there."""
        columns = [{"name": one.name, "type": one.type} for one in found]
        return event("columns", {"columns": columns, "visualization": visualization})

    def rows(self, texts: bytes) -> bytes:
        """Some rows."""
        if self._first_ms is None:
            self._first_ms = self._elapsed_ms()
        return event_of_text("rows", b"[" + texts + b"]")

    def end(self, ending: Ending) -> bytes:
        """What became of a query in KQL."""
        fault, report = ending.fault, ending.report
        is_cut = fault is not None and fault.name == ResultTooLargeError.name
        told = None if report is None else explained(report.run, sql=report.sql, pushed=report.pushed)
        wrong = None
        if fault is not None and not is_cut:
            wrong = Fault(code=fault.kind.code, message=fault.text, line=fault.line, column=fault.column)
        return self.ended(ending.rows, is_cut=is_cut, fault=wrong, told=told)

    def ended(self, rows: int, *, is_cut: bool, fault: Fault | None, told: dict[str, Any] | None) -> bytes:
        """What became of a query; `told` is what it did. Any: as JSON has it."""
        ended = _End(
            rows=rows,
            is_cut=is_cut,
            error=fault,
            first_row_ms=self._first_ms,
            elapsed_ms=self._elapsed_ms(),
            explain=told,
        )
        return event("end", ended)

    def _elapsed_ms(self) -> float:
        return round(1000 * (time.monotonic() - self._began), 1)


class _End(msgspec.Struct, frozen=True, kw_only=True):
    rows: int
    is_cut: bool
    error: Fault | None
    first_row_ms: float | None
    elapsed_ms: float
    explain: dict[str, Any] | None  # Any: as JSON has it
