"""The first rows of a table by a column of it, as in `ORDER BY event_time DESC LIMIT 100`: found in a plan.

Why: a dataset is not told of it, and would be read to its end for the newest hundred rows. Contract: the plan
decides, never the text, and it decides only where it is certain: one table, nothing between it and the order
but conditions and columns, nothing above the limit but columns. Whatever else a query has makes it none.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, TypeAlias

import msgspec
import pyarrow as pa

from lazydelta.engines.session import Duck, spelled
from lazydelta.telemetry import log_event

_Node: TypeAlias = dict[str, Any]  # Any: JSON
_NONE: _Node = {"type": None}
_SERIALIZE = "select json_serialize_plan(?, optimize := false)"
_EMPTY = "lazydelta columns"
_DESCENDING, _NULLS_FIRST = "DESCENDING", "NULLS FIRST"


class TopRows(msgspec.Struct, frozen=True, kw_only=True):
    """What a query wants the first rows of."""

    table: str
    column: str
    is_descending: bool
    nulls_first: bool
    rows: int  # that come out where there are enough


def top_rows(session: Duck, query: str, name: str, schema: pa.Schema) -> TopRows | None:
    """What the query, which reads the table of that name alone, wants the first rows of; None: nothing.

    For a moment an empty table has that name: of ours no plan can be written down.
    """
    try:
        session.unregister(name)
        session.register(_EMPTY, schema.empty_table())
        session.execute(f"create temp table {spelled(name)} as select * from {spelled(_EMPTY)}")
        told = json.loads(session.execute(_SERIALIZE, [query]).fetchall()[0][0])
    except Exception as error:  # noqa: BLE001 - the usual way serves
        log_event("the order of a query cannot be read", reason=repr(error))
        return None
    finally:
        session.unregister(_EMPTY)
        with suppress(Exception):  # it was not made
            session.execute(f"drop table temp.{spelled(name)}")
    plans = [] if told.get("error") else told["plans"]
    operators = _operators(plans[0], {}) if len(plans) == 1 else None
    return None if operators is None else _top(operators, name, schema)


def _operators(plan: _Node, named: dict[int, _Node]) -> list[_Node] | None:
    """From the top to the table, named ones put in their places; None where it is no single line."""
    found = []
    node = plan
    while True:
        kind, below = node["type"], node.get("children") or []
        if kind == "LOGICAL_MATERIALIZED_CTE" and len(below) == 2:
            named[node["table_index"]] = below[0]
            node = below[1]
        elif kind == "LOGICAL_CTE_REF" and node["cte_index"] in named:
            node = named[node["cte_index"]]
        else:
            found.append(node)
            if not below:
                return found
            if len(below) != 1:
                return None
            node = below[0]


def _top(operators: Sequence[_Node], name: str, schema: pa.Schema) -> TopRows | None:
    above = _past_columns(operators, 0)
    limit = operators[above]
    order_at = _past_columns(operators, above + 1)
    order = operators[order_at] if order_at < len(operators) else _NONE
    if (limit["type"], order["type"]) != ("LOGICAL_LIMIT", "LOGICAL_ORDER_BY"):
        return None
    rows, below = _constant(limit["limit_val"]), operators[order_at + 1 :]
    if rows is None or _constant(limit["offset_val"], unset=0) is None or order.get("projection_map"):
        return None
    first = order["orders"][0]
    column = _column(first["expression"], below, schema)
    if column is None:
        return None
    return TopRows(
        table=name,
        column=column,
        is_descending=first["type"] == _DESCENDING,
        nulls_first=first["null_order"] == _NULLS_FIRST,
        rows=rows,
    )


def _past_columns(operators: Sequence[_Node], at: int) -> int:
    """The first operator from there on that does more than to choose columns."""
    while at < len(operators) - 1 and operators[at]["type"] == "LOGICAL_PROJECTION":
        at += 1
    return at


def _constant(told: _Node, unset: int | None = None) -> int | None:
    if told["type"] == "UNSET":
        return unset
    return int(told["constant_integer"]) if told["type"] == "CONSTANT_VALUE" else None


def _column(expression: _Node, below: Sequence[_Node], schema: pa.Schema) -> str | None:
    """The column of the table whose order the expression has."""
    at = _place(expression)
    for operator in below[:-1]:
        if at is None or operator.get("projection_map"):
            return None
        if operator["type"] == "LOGICAL_PROJECTION":
            at = _place(operator["expressions"][at])
        elif operator["type"] != "LOGICAL_FILTER":
            return None
    table = below[-1] if below else _NONE
    if at is None or table["type"] != "LOGICAL_GET" or table.get("projection_ids"):
        return None
    name: str = table["names"][table["column_indexes"][at]["index"]]
    return name if name in schema.names and _has_order(schema.field(name).type) else None


def _place(expression: _Node) -> int | None:
    """Of the column below that the expression is, or whose times it has as those of UTC."""
    if expression["expression_class"] == "BOUND_FUNCTION" and expression["qname"]["path"][-1] == "timezone":
        parts = expression["children"]
        zone = parts[0].get("value") or {}
        is_utc = len(parts) == 2 and zone.get("value") == "UTC"
        return _place(parts[1]) if is_utc else None
    return int(expression["index"]) if expression["expression_class"] == "BOUND_REF" else None


def _has_order(kind: pa.DataType) -> bool:
    """Whether filters and DuckDB order its values alike: numbers may be NaN, and texts be collated."""
    types = pa.types
    kinds = (types.is_integer, types.is_decimal, types.is_date, types.is_timestamp)
    return any(is_kind(kind) for is_kind in kinds)
