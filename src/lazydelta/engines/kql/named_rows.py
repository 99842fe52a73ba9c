"""Rows that `as` gives a name and that are read again further down: `T | as Q | union Q`.

Contract: what stands before `as` becomes what `let` would bind to the name. Only in the query's own pipeline:
a name that is given inside another query is known nowhere else.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from duckdb_kql import ir
from duckdb_kql.errors import KqlUnsupportedError

from lazydelta.engines.kql.operators import NamedRows
from lazydelta.engines.kql.trees import nodes_of

Node = Any  # Any: of the library's tree


def with_named_rows(query: ir.Query) -> ir.Query:
    """The query with such rows bound to their names."""
    read = Counter(node.name for node in nodes_of(query) if isinstance(node, ir.TableRef))
    given = [node.name for node in nodes_of(query) if isinstance(node, NamedRows)]
    again = [name for name in given if read[name]]
    if not again:
        return query
    own = [op.name for op in query.operators if isinstance(op, NamedRows)]
    bound = {name for name, _ in query.lets}
    for name in again:
        if name not in own or given.count(name) > 1 or name in bound:
            raise KqlUnsupportedError(
                "as", hint=f"{name} is read again, and has another meaning there; use let"
            )
    lets, source, operators = list(query.lets), query.source, list[ir.Operator]()
    for op in query.operators:
        operators.append(op)
        if isinstance(op, NamedRows) and op.name in again:
            lets.append((op.name, ir.Query(source, operators[:-1])))
            source, operators = ir.TableRef(op.name), [op]
    return ir.Query(source, operators, lets, list(query.parameters))
