"""Which rows of a table a query can need, by the operators up to the first that gathers rows.

Contract: one-sided, as `conditions.py`: `where` after `extend`, `project` and the like is asked about the
columns that those were made from; where that is not known, nothing is concluded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import msgspec
import pyarrow as pa

from lazydelta.engines.kql.conditions import Conditions, all_of, conjuncts
from lazydelta.engines.kql.constants import Constants
from lazydelta.engines.kql.exactness import is_exact
from lazydelta.engines.kql.trees import with_parts

Node = Any  # Any: of the translation library, which is an extra
# Of each column: what it was made from, in the table's own columns; None: that is not known.
Origins = Mapping[str, Node | None]


class Needed(msgspec.Struct, frozen=True):
    """What a query can need of the rows of its table."""

    condition: str | None  # in SQL, over the table's own columns; None: all rows may be needed
    operators: tuple[Node, ...]  # what is left to do, without predicates that the condition says in full


def needed_rows(query: Node, schema: pa.Schema, constants: Constants) -> Needed:
    """A condition that every row meets which the query can need."""
    from duckdb_kql import ir

    from lazydelta.engines.kql.windows import is_windowed

    conditions = Conditions(schema, constants)
    origins: Origins = {name: ir.ColumnRef(name) for name in schema.names}
    found: list[str | None] = []
    left: list[Node] = []
    waiting = deque(query.operators)
    # What reads neighbours of its rows depends on rows that others would leave out.
    while waiting and not is_windowed(waiting[0]):
        if isinstance(waiting[0], ir.Where):
            for part in conjuncts(waiting[0].predicate):
                own = traced(part, origins)
                found.append(conditions.of(own))
                left += [] if found[-1] is not None and is_exact(own, conditions) else [ir.Where(part)]
        else:
            after = columns_after(waiting[0], origins)
            if after is None:
                break
            origins = after
            left.append(waiting[0])
        waiting.popleft()
    return Needed(all_of(found), (*left, *waiting))


def columns_after(operator: Node, origins: Origins) -> Origins | None:  # noqa: PLR0911  # one case per operator
    """The columns after an operator that keeps or adds rows one by one; None: it is of another kind."""
    from duckdb_kql import ir

    from lazydelta.engines.kql.operators import DistinctRows, KeepColumns, NamedRows, ReorderColumns

    if isinstance(operator, ir.Sort | NamedRows | ReorderColumns | DistinctRows):
        return origins
    if isinstance(operator, KeepColumns):
        return {**dict.fromkeys(origins), **{name: origins[name] for name in names_after(operator, origins)}}
    if isinstance(operator, ir.Summarize):
        return _after_groups(operator, origins)
    if isinstance(operator, ir.ProjectAway):
        return {**origins, **dict.fromkeys(operator.columns)}
    if isinstance(operator, ir.Extend | ir.Project | ir.Distinct):
        names = [name for named in operator.expressions if (name := _name(named)) is not None]
        if len(names) < len(operator.expressions):
            return None
        made = [traced(named.expr, origins) for named in operator.expressions]
        new = dict(zip(names, made, strict=True))
        return {**origins, **new} if isinstance(operator, ir.Extend) else new
    if isinstance(operator, ir.ProjectRename):
        gone = {old: None for old, _ in operator.renames}
        return {**origins, **gone, **{new: origins.get(old) for old, new in operator.renames}}
    if isinstance(operator, ir.Parse):
        names = [segment.name for segment in operator.segments if segment.name is not None]
        return {**origins, **dict.fromkeys(names)}
    return None


def _after_groups(operator: Node, origins: Origins) -> Origins | None:
    """Rows of a group are all kept or all dropped by what is asked of its keys."""
    if not operator.by:
        return None
    names = names_after(operator, origins)
    keys = [traced(named.expr, origins) for named in operator.by]
    return {**dict.fromkeys(names), **dict(zip(names, keys, strict=False))}


def names_after(operator: Node, origins: Origins) -> list[str]:
    """The columns that an operator gives, in their order; keys of groups come first."""
    from duckdb_kql import schema

    return list(schema._operator_columns(operator, list(origins), None))


def _name(named: Node) -> str | None:
    """Of a column that is made; None where Kusto makes one up."""
    from duckdb_kql import ir

    if named.name is None and isinstance(named.expr, ir.ColumnRef):
        return str(named.expr.name)
    return None if named.name is None else str(named.name)


def traced(node: Node, origins: Origins) -> Node:
    """An expression in the table's own columns; a column whose origin is not known becomes none of them."""
    from duckdb_kql import ir

    if isinstance(node, ir.LetRef):
        # A column of the name hides what `let` says.
        return traced(ir.ColumnRef(node.name) if node.name in origins else node.value, origins)
    if isinstance(node, ir.ColumnRef):
        return origins.get(node.name) or ir.GraphVar(node.name)
    if isinstance(node, ir.Query):
        return node
    return with_parts(node, lambda part: traced(part, origins))
