"""What DuckDB's plan of a query says about how it reads its tables.

Why: a dataset is not told of a LIMIT, nor whether it is the only thing that a query reads. Contract: what is
not certain is not claimed; a query whose plan cannot be told has none of these facts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from lazydelta.engines.session import Duck, Parameters
from lazydelta.telemetry import told_at_debug

_SCAN = "PYTHON_ARROW_SCAN"  # DuckDB's name for what reads our datasets
_KEEPS_ROWS = frozenset({"PROJECTION"})  # operators that give a row for each row
_LIMITS = frozenset({"STREAMING_LIMIT", "LIMIT"})


class PlanFacts(msgspec.Struct, frozen=True):
    """A query that is one SELECT, by its plan."""

    reads_one_table: bool = False  # once, and nothing else
    has_limit: bool = False  # somewhere
    row_limit: int | None = None  # no more rows of that table can be needed, in the order they come
    counts_rows: bool = False  # of that table, and wants nothing else of it


def plan_facts(session: Duck, query: str, parameters: Parameters) -> PlanFacts:
    """Ask DuckDB how it would run the query."""
    facts = PlanFacts()
    with told_at_debug("the plan of a query cannot be read"):  # an error is told when the query runs
        statements = session.extract_statements(query)
        if len(statements) == 1 and statements[0].type.name == "SELECT":
            told = session.execute(f"explain (format json) {query}", parameters).fetchall()
            facts = _facts_of(list(_chains(json.loads(told[0][1]), ())))
    return facts


def _facts_of(chains: list[tuple[Any, ...]]) -> PlanFacts:  # Any: JSON
    operators = [node for chain in chains for node in chain]
    return PlanFacts(
        reads_one_table=len(chains) == 1 and _name(chains[0][-1]) == _SCAN,
        has_limit=any("LIMIT" in _name(node) for node in operators),
        row_limit=_row_limit(chains[0]) if len(chains) == 1 else None,
        counts_rows=len(chains) == 1 and _counts_rows(chains[0]),
    )


def _chains(nodes: Any, above: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:  # Any: JSON
    """The operators from the top to each leaf."""
    for node in nodes:
        children = node.get("children") or []
        if children:
            yield from _chains(children, (*above, node))
        else:
            yield (*above, node)


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
    if _name(chain[-1]) != _SCAN or chain[-1]["extra_info"].get("Filters"):
        return False
    above = [node for node in chain[:-1] if _name(node) not in _KEEPS_ROWS]
    is_next = bool(above) and _name(above[-1]) == "UNGROUPED_AGGREGATE"
    return is_next and above[-1]["extra_info"].get("Aggregates") == "count_star()"


def _name(node: Any) -> str:
    return str(node["name"]).strip()
