"""Names that a query gives to a part of itself and uses once: the part stands where the name stood.

Why: dashboards put their tables behind `let`, and a view is a function; what is asked of them further down
prunes files only if it stands beside the table. Contract: the same answer; what is used twice stays as it is.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from lazydelta.engines.kql.trees import changed, nodes_of

Node = Any  # Any: of the translation library, which is an extra


def inlined(query: Node) -> Node:
    """The query without names that are used once."""
    while True:
        name = _used_once(query)
        if name is None:
            return query
        query = _without(query, name)


def _used_once(query: Node) -> str | None:
    from duckdb_kql import ir

    bodies = [(name, body) for name, body in query.lets if isinstance(body, ir.Query)]
    if not bodies or any(isinstance(node, ir.Union) and node.with_source for node in nodes_of(query)):
        return None  # a union tells the names that its rows came by
    given = Counter(name for node in nodes_of(query) if isinstance(node, ir.Query) for name, _ in node.lets)
    read = Counter(node.name for node in nodes_of(query) if isinstance(node, ir.TableRef))
    sources = Counter(
        node.source.name
        for node in nodes_of(query)
        if isinstance(node, ir.Query) and isinstance(node.source, ir.TableRef)
    )
    for name, _ in bodies:
        if given[name] == read[name] == sources[name] == 1:
            return str(name)
    return None


def _without(query: Node, name: str) -> Node:
    from duckdb_kql import ir

    (body,) = (body for other, body in query.lets if other == name)

    def in_place(node: Node) -> Node:
        if not isinstance(node, ir.Query) or node.source != ir.TableRef(name):
            return node
        lets = [*body.lets, *node.lets]
        return ir.Query(body.source, [*body.operators, *node.operators], lets, node.parameters)

    rest = [(other, value) for other, value in query.lets if other != name]
    return changed(ir.Query(query.source, query.operators, rest, query.parameters), in_place)
