"""What DuckDB's plan of a query says about how it reads its tables.

Why: a dataset is not told of a LIMIT, nor what else a query reads. Contract: what is not certain is not
claimed; a query whose plan cannot be told has none of these facts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from lazydelta.engines.session import Duck, Parameters
from lazydelta.telemetry import log_event

_SCAN = "PYTHON_ARROW_SCAN"  # DuckDB's name for what reads our datasets
_KEEPS_ROWS = frozenset({"PROJECTION"})  # operators that give a row for each row
_AGGREGATES_ALL = "UNGROUPED_AGGREGATE"
_TOP = "TOP_N"
_LIMITS = frozenset({"STREAMING_LIMIT", "LIMIT"})
# Operators that take all of their input before they give anything.
_GATHERS = ("AGGREGATE", "GROUP_BY", "ORDER_BY", "TOP_N", "WINDOW")
_STREAMS = ("STREAMING_",)
# Leaves that cost nothing to run: what they give was there before, or comes from a scan that is counted.
_FREE = frozenset({"DUMMY_SCAN", "EMPTY_RESULT", "COLUMN_DATA_SCAN", "CTE_SCAN", "DELIM_SCAN"})
_DETAILS = ("Expression", "Groups", "Aggregates", "Conditions", "Order By", "Limit", "Top", "Function")
_DETAIL_CHARS = 120


class PlanFacts(msgspec.Struct, frozen=True):
    """A query that is one SELECT, by its plan."""

    is_known: bool = False
    scans: int = 0  # of our tables
    other_leaves: tuple[str, ...] = ()  # what else it reads, unless that is free
    is_recursive: bool = False
    may_stop_early: bool = False  # by a limit that some scan is asked for rows until
    row_limit: int | None = None  # of the one scan: no more rows can be needed, in the order they come
    counts_rows: bool = False  # of the one scan, and wants nothing else of it
    has_top: bool = False  # an order with a limit above the one scan
    aggregates_all: bool = False  # somewhere, rows of all groups at once
    operators: tuple[str, ...] = ()  # what DuckDB does, from the top, without our scans
    problem: tuple[str, str] | None = None  # why there is no plan, and the text that DuckDB was given


def plan_facts(session: Duck, query: str, parameters: Parameters) -> PlanFacts:
    """Ask DuckDB how it would run the query."""
    text = f"explain (format json) {query}"
    try:
        statements = session.extract_statements(query)
        if len(statements) != 1 or statements[0].type.name != "SELECT":
            return PlanFacts()
        return _facts_of(json.loads(session.execute(text, parameters).fetchall()[0][1]))
    except Exception as error:  # noqa: BLE001 - it is told when the query runs
        log_event("the plan of a query cannot be read", reason=repr(error))
        return PlanFacts(problem=(str(error), text))


def _facts_of(plan: Any) -> PlanFacts:  # Any: JSON
    chains = list(_chains(plan, ()))
    leaves = [_name(chain[-1]) for chain in chains]
    nodes = list(_nodes(plan))
    is_single = len(chains) == 1
    return PlanFacts(
        is_known=True,
        scans=leaves.count(_SCAN),
        other_leaves=tuple(name for name in leaves if name != _SCAN and name not in _FREE),
        is_recursive=any("REC_CTE" in _name(node) or "RECURSIVE" in _name(node) for node in nodes),
        may_stop_early=any(map(_may_stop_early, chains)),
        row_limit=_row_limit(chains[0]) if is_single else None,
        counts_rows=is_single and _counts_rows(chains[0]),
        has_top=is_single and leaves == [_SCAN] and any(_name(node) == _TOP for node in nodes),
        aggregates_all=any(_name(node) == _AGGREGATES_ALL for node in nodes),
        operators=tuple(map(_shown, (node for node in nodes if _name(node) != _SCAN))),
    )


def _chains(nodes: Any, above: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:  # Any: JSON
    """The operators from the top to each leaf."""
    for node in nodes:
        children = node.get("children") or []
        if children:
            yield from _chains(children, (*above, node))
        else:
            yield (*above, node)


def _nodes(nodes: Any) -> Iterator[Any]:  # Any: JSON
    for node in nodes:
        yield node
        yield from _nodes(node.get("children") or [])


def _may_stop_early(chain: tuple[Any, ...]) -> bool:
    """Whether a limit stands above the leaf with nothing between them that takes all rows first."""
    for node in reversed(chain):
        name = _name(node)
        if "LIMIT" in name:
            return True
        if any(part in name for part in _GATHERS) and not name.startswith(_STREAMS):
            return False
    return False


def _row_limit(chain: tuple[Any, ...]) -> int | None:
    """The limit that stands above the table with nothing between them that drops or gathers rows."""
    if _name(chain[-1]) != _SCAN:
        return None
    for node in reversed(chain[:-1]):
        if _name(node) in _LIMITS:
            numbers = [node["extra_info"].get("Limit"), node["extra_info"].get("Offset", "0")]
            is_told = all(isinstance(number, str) and number.isdigit() for number in numbers)
            return sum(map(int, numbers)) if is_told else None
        if _name(node) not in _KEEPS_ROWS:
            return None
    return None


def _counts_rows(chain: tuple[Any, ...]) -> bool:
    """Whether `count(*)` stands above the table with nothing between them that drops or gathers rows."""
    if _name(chain[-1]) != _SCAN:
        return False
    above = [node for node in chain[:-1] if _name(node) not in _KEEPS_ROWS]
    is_next = bool(above) and _name(above[-1]) == _AGGREGATES_ALL
    return is_next and above[-1]["extra_info"].get("Aggregates") == "count_star()"


def _shown(node: Any) -> str:  # Any: JSON
    told = node.get("extra_info") or {}
    details = [told[key] for key in _DETAILS if told.get(key)]
    text = "; ".join(", ".join(part) if isinstance(part, list) else str(part) for part in details)
    text = " ".join(text.split())
    if len(text) > _DETAIL_CHARS:
        text = text[: _DETAIL_CHARS - 1] + "…"
    return f"{_name(node)} ({text})" if text else _name(node)


def _name(node: Any) -> str:
    return str(node["name"]).strip()
