"""The tables that a translated query reads: each place where one stands becomes a name of its own.

Why: the translation library takes any name for a table and knows no types of columns; and it writes
predicates so that DuckDB cannot push them. Contract: at each place the query reads a clause of ours instead
of the table, which gives the columns in KQL's types and leaves out rows that the operators after it drop.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from lazydelta.engines.kql.catalog import KqlCatalog
from lazydelta.engines.kql.pruning import Needed
from lazydelta.engines.kql.source_clauses import SourceClause
from lazydelta.engines.kql.trees import Node, with_parts

Query = Any  # Any: of the translation library, which is an extra


class Sources:
    """Finds the tables of a query and gives each place its name."""

    def __init__(
        self,
        catalog: KqlCatalog,
        mark: str,
        *,
        unknown: Callable[[str], Exception],
        needed: Callable[[Query, pa.Schema], Needed],
        rows_of: Callable[[Node], str | None],
    ) -> None:
        """`mark` stands in no name of the query; `needed` tells what a query needs of a table, `rows_of`
        what a `range` is in SQL.
        """
        self._catalog = catalog
        self._mark = mark
        self._unknown = unknown
        self._needed = needed
        self._rows_of = rows_of
        self.clauses: list[SourceClause] = []

    def placed(self, query: Query, bound: frozenset[str] = frozenset()) -> Query:
        """The query with its tables named by place; `bound`: names that are no tables there."""
        from duckdb_kql import ir

        lets = []
        for name, value in query.lets:
            lets.append((name, self._within(value, bound)))
            bound |= {name}
        query = self._expanded(query)
        source = query.source
        if isinstance(source, ir.TableRef) and source.name not in bound:
            name, needed = self._place(query, source.name)
            source, query = ir.TableRef(name), ir.Query(source, list(needed.operators), [], query.parameters)
        elif isinstance(source, ir.RangeSource):
            source = self._made(source)
        else:
            source = self._within(source, bound)
        operators = [self._within(operator, bound) for operator in query.operators]
        return ir.Query(source, operators, lets, list(query.parameters))

    def _place(self, query: Query, table: str) -> tuple[str, Needed]:
        schema = self._catalog.tables.get(table)
        if schema is None:
            raise self._unknown(table)
        name = f"{table}{self._mark}{len(self.clauses)}"
        needed = self._needed(query, schema)
        self.clauses.append(SourceClause(name, table, tuple(schema.names), needed.condition))
        return name, needed

    def _made(self, source: Node) -> Node:
        """`range`, as rows that come one after the other: the library makes one list of them."""
        from duckdb_kql import ir

        body = self._rows_of(source)
        if body is None:
            return source
        name = f"range{self._mark}{len(self.clauses)}"
        self.clauses.append(SourceClause(name, None, (source.name,), body=body))
        return ir.TableRef(name)

    def _within(self, node: Node, bound: frozenset[str]) -> Node:
        """The same node with the queries inside it placed."""
        from duckdb_kql import ir

        if isinstance(node, ir.Query):
            return self.placed(node, bound)
        if isinstance(node, ir.Union):
            branches = [part for branch in node.branches for part in self._branches(branch)]
            return dataclasses.replace(node, branches=tuple(self.placed(part, bound) for part in branches))
        return with_parts(node, lambda part: self._within(part, bound))

    def _branches(self, query: Query) -> list[Query]:
        """A branch of a union for each table that a pattern means."""
        from duckdb_kql import ir

        if not isinstance(query.source, ir.WildcardTableRef):
            return [query]
        names = self._catalog.matching(query.source.pattern)
        if not names:
            raise self._unknown(query.source.pattern)
        return [ir.Query(ir.TableRef(name), list(query.operators), list(query.lets)) for name in names]

    def _expanded(self, query: Query) -> Query:
        """A union that begins with a pattern begins with the first table that it means."""
        from duckdb_kql import ir

        if not isinstance(query.source, ir.WildcardTableRef):
            return query
        first, *others = self._branches(ir.Query(query.source))
        operators = list(query.operators)
        if operators and isinstance(operators[0], ir.Union):
            more = (*others, *operators[0].branches)
            operators[0] = dataclasses.replace(operators[0], branches=more)
        elif others:
            operators.insert(0, ir.Union(tuple(others)))
        return ir.Query(first.source, operators, query.lets, query.parameters)
