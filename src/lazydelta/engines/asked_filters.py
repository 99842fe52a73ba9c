"""What a query would ask of its tables: found out without reading a row.

Why: somebody who types a query wants to see what it would read. Contract: the filters are those that DuckDB
hands to the scans when the query runs, but for filters that it makes out of rows of another table. None where
that does not come out: a query that also reads something else would have to run for it. A query that is wrong
raises DuckDB's own error.
"""

from __future__ import annotations

from collections.abc import Mapping

from lazydelta.engines.handover import asked_of_tables
from lazydelta.engines.query_plan import plan_facts
from lazydelta.engines.scanner import LazyScanner
from lazydelta.engines.session import Duck, Parameters
from lazydelta.engines.watch import Watch
from lazydelta.engines.watched_dataset import WatchedDataset
from lazydelta.predicate import Expression
from lazydelta.predicate.expression import any_of
from lazydelta.rows.source import RowSource

Filters = Mapping[str, Expression | None]  # of the tables that are read; None: all of its files may be read


def asked_filters(
    session: Duck, query: str, tables: Mapping[str, RowSource], watch: Watch, *, parameters: Parameters = None
) -> Filters | None:
    """The condition that decides what is read of each table that the query reads."""
    for name, source in tables.items():
        session.register(name, WatchedDataset(name, source, watch))
    facts = plan_facts(session, query, parameters)
    if facts.problem is not None:
        session.sql(query, params=parameters)  # raises, in DuckDB's words
    if facts.is_known and not facts.scans:
        return {}
    is_quick = facts.is_known and not facts.is_recursive and not facts.other_leaves
    asked = asked_of_tables(session, query, parameters, watch, facts) if is_quick else None
    if asked is None:
        return None
    pushed: dict[str, list[Expression | None]] = {}
    for one in asked:
        plan = LazyScanner(tables[one.table], columns=one.columns, filter=one.filter).plan
        pushed.setdefault(one.table, []).append(plan.pushed.condition)
    return {name: _either(conditions) for name, conditions in pushed.items()}


def _either(conditions: list[Expression | None]) -> Expression | None:
    """What several readings of one table need together."""
    told = [condition for condition in conditions if condition is not None]
    return any_of(*told) if len(told) == len(conditions) else None
