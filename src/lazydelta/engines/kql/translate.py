"""A query in KQL as one in DuckDB's SQL, by the library duckdb-kql with what it lacks around it.

Contract: nothing is read or run. What cannot be translated to the very same answer is refused, by its name
and its place in the text. `now()` is one moment for the whole query.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from lazydelta.engines.frames import needs
from lazydelta.engines.kql.bounds import check_size, check_text
from lazydelta.engines.kql.catalog import KqlCatalog, NamedTable, StoredFunction
from lazydelta.engines.kql.constants import Constants
from lazydelta.engines.kql.errors import SYNTAX, KqlError
from lazydelta.engines.kql.growth import check_growth
from lazydelta.engines.kql.inlining import inlined
from lazydelta.engines.kql.library import extended, lifted_functions, mended_text, mended_tree
from lazydelta.engines.kql.misreadings import check_operators
from lazydelta.engines.kql.names import named_tables, resolve_names, with_named_values
from lazydelta.engines.kql.parameters import bound_parameters
from lazydelta.engines.kql.problems import told_in_kql, unknown_table
from lazydelta.engines.kql.pruning import needed_rows
from lazydelta.engines.kql.ranges import range_rows
from lazydelta.engines.kql.source_clauses import with_clauses
from lazydelta.engines.kql.sources import Sources
from lazydelta.engines.kql.statements import Statements, taken_apart
from lazydelta.errors import InvalidRequestError

__all__ = [
    "KqlCatalog",
    "NamedTable",
    "StoredFunction",
    "Translated",
    "named_tables",
    "translate",
    "with_named_values",
]


class Translated(msgspec.Struct, frozen=True):
    """A query that may run."""

    text: str
    sql: str
    values: Mapping[str, Any]  # that the SQL's parameters have; Any: as DuckDB takes them
    tables: tuple[str, ...]  # of the catalog, that it reads
    conditions: tuple[str, ...] = ()  # pushed into the scans: a line for each place that has one
    visualization: Mapping[str, Any] | None = None  # of `render`, as Kusto's answers have it
    settings: Mapping[str, Any] = {}  # of `set`, names in small letters


def translate(
    text: str,
    catalog: KqlCatalog,
    *,
    parameters: Mapping[str, Any] | None = None,  # Any: text, or what JSON has
    now: dt.datetime | None = None,
) -> Translated:
    """The query in SQL; `parameters` are values for what it declares, `now` is the moment of `now()`."""
    if not isinstance(text, str):
        raise InvalidRequestError(f"the query is {text!r}"[:200], "KQL", "give KQL as text")
    needs("duckdb_kql", "sql")
    check_text(text)
    given = dict(parameters or {})
    with told_in_kql(text):
        check_operators(text)
        apart = taken_apart(text)
        return _Translation(text, catalog, given, _in_utc(now)).of(apart)


class _Translation(msgspec.Struct, frozen=True):
    """One query under translation."""

    text: str
    catalog: KqlCatalog
    parameters: Mapping[str, Any]  # Any: text, or what JSON has
    now: dt.datetime  # UTC, without a zone

    def of(self, apart: Statements) -> Translated:
        from duckdb_kql.lower import lower
        from duckdb_kql.translate import CLOCK_SLOT, clock, to_sql

        bare, own = lifted_functions(self._bare(apart.text))
        functions = self._functions(own)
        with extended() as places, clock(self.now) as pinned:
            from lazydelta.engines.kql.named_rows import with_named_rows
            from lazydelta.engines.kql.special_values import with_special_values
            from lazydelta.engines.kql.typed_tree import typed

            places.text = bare
            lowered = with_named_rows(lower(bare, None, functions))
            check_size(self.text, lowered)
            told, _ = typed(self.text, lowered, self.catalog.tables, places)
            query = mended_tree(told)
            values = bound_parameters(self.text, query.parameters, self.parameters)
            constants = Constants(pinned.moment or self.now, values)
            check_growth(self.text, query, constants)
            sources = self._sources(constants)
            query = with_special_values(sources.placed(inlined(query)))
            tables = self.catalog.tables
            schema = {clause.name: list(clause.columns) for clause in sources.clauses}
            emitted = to_sql(query, schema)
            used = {slot: value for slot, value in values.items() if slot in emitted.slots}
            used |= {CLOCK_SLOT: pinned.moment} if pinned.used else {}
        sql = with_clauses(str(emitted), sources.clauses, tables)
        return Translated(
            text=self.text,
            sql=_limited(sql, apart.settings.get("query_take_max_records")),
            values=used,
            tables=tuple(dict.fromkeys(clause.table for clause in sources.clauses if clause.table)),
            conditions=tuple(clause.shown for clause in sources.clauses if clause.condition),
            visualization=apart.visualization,
            settings=apart.settings,
        )

    def _functions(self, own: Sequence[str]) -> Any:  # Any: of the library
        from duckdb_kql.stored_functions import parse_functions

        definitions = [*own, *(self._bare(function.definition) for function in self.catalog.functions)]
        try:
            return parse_functions(definitions)
        except ValueError as error:
            what = f"a stored function cannot be read: {error}"[:400]
            raise KqlError(what, "the stored functions", "mend its definition", SYNTAX) from error

    def _bare(self, text: str) -> str:
        return mended_text(resolve_names(with_named_values(text, self.parameters), self.catalog))

    def _sources(self, constants: Constants) -> Sources:
        return Sources(
            self.catalog,
            _mark(self.text),
            unknown=lambda name: unknown_table(self.text, name, self.catalog),
            needed=lambda query, schema: needed_rows(query, schema, constants),
            rows_of=lambda source: range_rows(self.text, source, constants),
        )


def _limited(sql: str, records: object) -> str:
    """`set query_take_max_records` limits whatever the query gives."""
    return f"select * from (\n{sql}\n) limit {records}" if isinstance(records, int) and records > 0 else sql


def _mark(text: str) -> str:
    """What makes a name of ours differ from every name in the query."""
    mark = "#"
    while mark in text:
        mark += "#"
    return mark


def _in_utc(now: dt.datetime | None) -> dt.datetime:
    moment = dt.datetime.now(dt.UTC) if now is None else now
    return moment if moment.tzinfo is None else moment.astimezone(dt.UTC).replace(tzinfo=None)
