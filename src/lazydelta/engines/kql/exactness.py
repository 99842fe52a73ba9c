"""Which predicates mean the very same as what was pushed for them, so that nothing is left to ask.

Why: a filter that stays above the scan makes DuckDB gather the rows of `take` before it gives any. Contract:
true only where the condition of `conditions.py` holds for exactly the rows that the predicate lets pass, null
and the empty text included.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa

from lazydelta.engines.kql.conditions import Conditions

Node = Any  # Any: of the translation library, which is an extra
_COMPARISONS = frozenset({"==", "<", "<=", ">", ">="})


def is_exact(predicate: Node, conditions: Conditions) -> bool:
    """Whether the condition that was pushed for a predicate is the whole of it."""
    from duckdb_kql import ir

    if isinstance(predicate, ir.BinaryOp) and predicate.op in ("and", "or"):
        return is_exact(predicate.left, conditions) and is_exact(predicate.right, conditions)
    if isinstance(predicate, ir.BinaryOp) and predicate.op in _COMPARISONS:
        left, right = predicate.left, predicate.right
        return _compares(left, right, conditions) or _compares(right, left, conditions)
    if isinstance(predicate, ir.Between) and not predicate.negated:
        high = predicate.high
        if isinstance(conditions.constants.value(high), dt.timedelta):
            high = ir.BinaryOp("+", predicate.low, high)
        return all(_compares(predicate.value, end, conditions) for end in (predicate.low, high))
    if isinstance(predicate, ir.InList):
        is_plain = not (predicate.negated or predicate.case_insensitive or predicate.subquery is not None)
        return is_plain and all(_compares(predicate.value, item, conditions) for item in predicate.items)
    return False


def _compares(column: Node, constant: Node, conditions: Conditions) -> bool:
    """A column of the table with a constant of its own type, which no rounding touches."""
    from duckdb_kql import ir

    if not isinstance(column, ir.ColumnRef) or column.name not in conditions.schema.names:
        return False
    kind, value = conditions.schema.field(column.name).type, conditions.constants.value(constant)
    types = pa.types
    if types.is_string(kind):
        return isinstance(value, str) and "\0" not in value
    if types.is_integer(kind):
        return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63
    return bool(types.is_timestamp(kind)) and isinstance(value, dt.datetime)
