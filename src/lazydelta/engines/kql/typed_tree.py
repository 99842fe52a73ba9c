"""A query's tree with the types of its columns, from the tables on, operator by operator.

Contract: each column that is read carries its type where that is certain; a column that is not there and
types that do not go together are errors with their place. Where the columns are not known nothing is said.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from duckdb_kql import ir
from duckdb_kql.errors import KqlUnsupportedError, SourceSpan

from lazydelta.engines.kql import search, union_types
from lazydelta.engines.kql.columns import kql_type
from lazydelta.engines.kql.decimals import with_own_digits
from lazydelta.engines.kql.kinds import Kind, TypedColumn, TypedScalar, common_kind, kind_of, plain_kind
from lazydelta.engines.kql.make_series import MakeSeries
from lazydelta.engines.kql.operator_columns import Columns, columns_after
from lazydelta.engines.kql.places import Places
from lazydelta.engines.kql.run_problems import unknown_column
from lazydelta.engines.kql.trees import with_parts
from lazydelta.engines.kql.type_rules import TypeRules
from lazydelta.engines.kql.typed_forms import typed_form

Node = Any  # Any: of the library's tree, or a part of it
Scope = Mapping[str, Columns | None]  # what `let` binds to tables


def typed(
    text: str, query: ir.Query, tables: Mapping[str, pa.Schema], places: Places
) -> tuple[ir.Query, Columns | None]:
    """The query with typed columns, and those that it gives; raises where types do not go together."""
    return _Typing(text, tables, places).query(query, {})


class _Typing:
    def __init__(self, text: str, tables: Mapping[str, pa.Schema], places: Places) -> None:
        self._text = text
        self._tables = tables
        self._places = places
        self._rules = TypeRules(text, places)

    def query(self, query: ir.Query, scope: Scope) -> tuple[ir.Query, Columns | None]:
        """The query, and the columns that it gives."""
        lets: list[tuple[str, Node]] = []
        for name, value in query.lets:
            if isinstance(value, ir.Query):
                made, columns = self.query(value, scope)
                scope = {**scope, name: columns}
                lets.append((name, made))
            else:
                lets.append((name, self._within(value, {}, scope)))
        source = self._source(query.source, scope)
        columns = self._source_columns(source, scope)
        made_of_it: list[ir.Operator] = []
        for op in query.operators:
            steps, columns = self._step(op, columns, scope)
            made_of_it += steps
        return ir.Query(source, made_of_it, lets, list(query.parameters)), columns

    def _step(
        self, op: ir.Operator, columns: Columns | None, scope: Scope
    ) -> tuple[list[ir.Operator], Columns | None]:
        if isinstance(op, ir.Union):
            return self._union(op, columns, scope)
        if isinstance(op, ir.Join | ir.Lookup):
            right, right_columns = self.query(op.right, scope)
            op = dataclasses.replace(op, right=right)
            if columns is not None and right_columns is not None:
                self._check_names([key.left for key in op.keys], columns)
                self._check_names([key.right for key in op.keys], right_columns)
                self._rules.check_keys(op, columns, right_columns)
            return [op], self._after(op, columns, right_columns)
        if isinstance(op, search.Searched):  # a text alone is a predicate there
            return [op], columns
        if columns is not None:
            self._check_names(_names_read(op), columns)
        if not isinstance(op, ir.Summarize | MakeSeries):
            self._rules.check_by_row(op)
        typed_op = self._within(_named(op, columns), columns, scope)
        self._rules.check_operator(typed_op)
        if columns is not None and isinstance(typed_op, ir.MvExpand):
            self._rules.check_expanded(typed_op, columns)
        return [typed_op], self._after(typed_op, columns)

    def _union(
        self, op: ir.Union, columns: Columns | None, scope: Scope
    ) -> tuple[list[ir.Operator], Columns | None]:
        branches = [self.query(branch, scope) for branch in op.branches]
        sides = [columns, *(made for _, made in branches)]
        op = dataclasses.replace(op, branches=tuple(branch for branch, _ in branches))
        return union_types.told_apart(op, sides, frozenset(scope))

    def _after(
        self, op: ir.Operator, columns: Columns | None, right: Columns | None = None
    ) -> Columns | None:
        if columns is None:
            return None
        try:
            return columns_after(op, columns, right)
        except KqlUnsupportedError:  # which it will be refused for, with its own name
            return None

    def _source(self, source: ir.Source, scope: Scope) -> ir.Source:
        self._rules.check_by_row(source)
        made: ir.Source = self._within(source, {}, scope)
        return with_own_digits(made) if isinstance(made, ir.DataTable) else made

    def _source_columns(self, source: ir.Source, scope: Scope) -> Columns | None:
        if isinstance(source, ir.TableRef):
            if source.name in scope:
                return scope[source.name]
            schema = self._tables.get(source.name)
            return None if schema is None else {field.name: kql_type(field.type) for field in schema}
        if isinstance(source, ir.DataTable):
            return {name: plain_kind(kind.partition(" ")[0]) for name, kind in source.columns}
        if isinstance(source, ir.RangeSource):
            return {source.name: _range_kind([kind_of(part) for part in (source.start, source.step)])}
        if isinstance(source, ir.PrintSource):
            from duckdb_kql.translate import print_column_name

            named = enumerate(source.expressions)
            return {print_column_name(one, at): kind_of(one.expr) for at, one in named}
        return None

    def _within(self, node: Node, columns: Columns | None, scope: Scope) -> Node:  # noqa: PLR0911  # one case per node
        """A part of the tree, innermost first; `columns` are what names mean there."""
        if isinstance(node, ir.Query):
            return self.query(node, scope)[0]
        if isinstance(node, ir.ToScalar):
            query, found = self.query(node.query, scope)
            kind = next(iter(found.values()), None) if found else None
            return ir.ToScalar(query) if kind is None else TypedScalar(query, kind)
        if isinstance(node, ir.InList) and node.subquery is not None:
            value = self._within(node.value, columns, scope)
            query, found = self.query(node.subquery, scope)
            self._rules.check_members(value, next(iter(found.values()), None) if found else None)
            return dataclasses.replace(node, value=value, subquery=query)
        if isinstance(node, ir.LetRef) and columns is not None:
            meant = ir.ColumnRef(node.name) if node.name in columns else node.value
            return self._within(self._places.moved(node, meant), columns, scope)
        if isinstance(node, ir.ColumnRef):
            return self._column(node, columns)
        made = with_parts(node, lambda part: self._within(part, columns, scope))
        if not isinstance(made, ir.Expr):
            return made
        self._places.moved(node, made)
        self._rules.check(made)
        return self._places.moved(made, self._formed(made))

    def _formed(self, node: ir.Expr) -> ir.Expr:
        try:
            return typed_form(node)
        except KqlUnsupportedError as error:
            at = self._places.of(node)
            span = SourceSpan(at[0], at[1] - 1) if at is not None else None
            raise KqlUnsupportedError(error.construct, error.span or span, error.hint) from None

    def _check_names(self, names: list[str], columns: Columns) -> None:
        for name in names:
            if name not in columns:
                raise unknown_column(self._text, name, {"": list(columns)})

    def _column(self, node: ir.ColumnRef, columns: Columns | None) -> ir.ColumnRef:
        if columns is None:
            return node
        if node.name not in columns:
            raise unknown_column(self._text, node.name, {"": list(columns)}, self._places.of(node))
        kind: Kind = columns[node.name]
        found: ir.ColumnRef = node if kind is None else TypedColumn(node.name, kind)
        self._places.moved(node, found)
        return found


def _named(op: ir.Operator, columns: Columns | None) -> ir.Operator:
    """A name of `let` that stands alone names its column, also where its value takes its place."""
    if columns is None or not isinstance(op, ir.Project | ir.Extend | ir.Distinct):
        return op
    named = tuple(
        dataclasses.replace(one, name=one.expr.name)
        if one.name is None and isinstance(one.expr, ir.LetRef)
        else one
        for one in op.expressions
    )
    return dataclasses.replace(op, expressions=named)


def _names_read(op: ir.Operator) -> list[str]:
    """Columns that an operator reads by their names alone."""
    if isinstance(op, ir.ProjectRename):
        return [old for old, _ in op.renames]
    return [target.column for target in op.targets] if isinstance(op, ir.MvExpand) else []


def _range_kind(kinds: list[Kind]) -> Kind:
    return kinds[0] if kinds[0] in ("datetime", "timespan") else common_kind(kinds)
