"""`range x from 1 to 10 step 2` as rows that come one after the other.

Why: the translation library makes a list of all of them, which DuckDB works out while it plans, and counts in
whole numbers alone. Contract: bounded by `limits.KQL_RANGE_ROWS_MAX`; None where an end is not known before
the query runs, and then the library's way is taken for whole numbers and moments.
"""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

from lazydelta import limits
from lazydelta.engines.kql.constants import Constants, Value
from lazydelta.engines.kql.errors import MISMATCH, TOO_LARGE, kql_error, unsupported
from lazydelta.engines.kql.problems import place_of_name
from lazydelta.engines.kql.trees import nodes_of
from lazydelta.engines.session import spelled

Node = Any  # Any: of the translation library, which is an extra
_MICROSECOND = dt.timedelta(microseconds=1)


def range_rows(text: str, source: Node, constants: Constants) -> str | None:
    """The SQL that makes the rows."""
    from duckdb_kql import ir

    parts = (source.start, source.stop, source.step)
    start, stop, step = (constants.value(part) for part in parts)
    if start is None or stop is None or step is None:
        if any(
            isinstance(node, ir.Literal) and node.kind == "real" for part in parts for node in nodes_of(part)
        ):
            raise unsupported(
                "range", text, place_of_name(text, "range"), why="its ends are not plain numbers"
            )
        return None
    count = value_count(start, stop, step)
    if count is None:
        raise kql_error(
            "the ends and the step of range do not go together, or the step is 0",
            text,
            place_of_name(text, "range"),
            "give numbers, or moments with a timespan as the step",
            MISMATCH,
        )
    if count > limits.KQL_RANGE_ROWS_MAX:
        raise kql_error(
            f"the query is too large: range gives {count:,.0f} rows, more than {limits.KQL_RANGE_ROWS_MAX:,}",
            text,
            place_of_name(text, "range"),
            "ask for fewer",
            TOO_LARGE,
        )
    return f"select {_value(start, step)} as {spelled(source.name)} from range({int(count)}) as made(i)"


def value_count(start: Any, stop: Any, step: Any) -> float | None:  # Any: values of any type
    """How many values a range has; None: it is none."""
    try:
        return max(0.0, float(math.floor((stop - start) / step)) + 1.0)
    except (TypeError, ZeroDivisionError, OverflowError, ValueError):
        return None


def _value(start: Value, step: Value) -> str:
    """The value of the row number i."""
    if isinstance(step, dt.timedelta):
        micros = f"to_microseconds(i * {step // _MICROSECOND})"
        if isinstance(start, dt.datetime):
            return f"timestamp '{start.isoformat(' ')}' + {micros}"
        assert isinstance(start, dt.timedelta)
        return f"to_microseconds({start // _MICROSECOND} + i * {step // _MICROSECOND})"
    kind = "double" if isinstance(start, float) or isinstance(step, float) else "bigint"
    return f"{start!r}::{kind} + i * {step!r}::{kind}"
