"""What one client may name in a query: its tables, databases and functions.

Contract: what a client may not read is not there, and no hint names it. A table is opened when a query turns
out to read it, at its newest version, once for the whole query. A database is a `schema` of the
configuration; names of tables are found whichever database is asked, since no two tables have one name.
Functions are there for who may read all that they read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from lazydelta.engines.kql.catalog import KqlCatalog, nearest
from lazydelta.engines.kql.names import named_tables
from lazydelta.rows.source import RowSource
from lazydelta.serve.config import ServedTable
from lazydelta.serve.config_functions import ServedFunction
from lazydelta.serve.kusto.refusals import NoDatabaseError
from lazydelta.serve.served import Served
from lazydelta.serve.sign_in import Client

# Names that clients send before they have asked which databases there are.
_ANY_DATABASE = frozenset({"", "default", "netdefaultdb"})


class SeenTables(Mapping[str, pa.Schema]):
    """Schemas by name, each opened when it is asked for."""

    def __init__(self, served: Served, client: Client) -> None:
        self._served = served
        self._client = client
        self._tables = {table.name: table for table in served.catalog.seen_by(client)}
        self.sources: dict[str, RowSource] = {}  # of those that were asked for

    def __getitem__(self, name: str) -> pa.Schema:
        if name not in self._tables:
            raise KeyError(name)
        if name not in self.sources:
            self.sources[name] = self._served.catalog.open(name, self._client).scan().source
        return self.sources[name].schema

    def __contains__(self, name: object) -> bool:
        return name in self._tables

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)

    @property
    def served(self) -> list[ServedTable]:
        """As they are served, by name."""
        return list(self._tables.values())


def databases_of(tables: SeenTables) -> dict[str, dict[str, str]]:
    """The names of each database's tables."""
    found: dict[str, dict[str, str]] = {}
    for table in tables.served:
        found.setdefault(table.schema, {})[table.name] = table.name
    return found


def functions_of(served: Served, tables: SeenTables) -> dict[str, ServedFunction]:
    """Those that the client may call."""
    functions = served.config.functions
    return {name: one for name, one in functions.items() if all(table in tables for table in one.tables)}


def catalog_of(served: Served, tables: SeenTables, text: str) -> KqlCatalog:
    """What the query may name; of functions, those that it does."""
    functions = functions_of(served, tables)
    named = {one.name for one in named_tables(text)} & set(functions) if functions else set()
    needed = dict.fromkeys(other for name in sorted(named) for other in functions[name].functions)
    return KqlCatalog(tables, databases_of(tables), [functions[name].stored for name in needed])


def found_database(name: str, tables: SeenTables) -> str | None:
    """The database of that name, whatever its cases; None: all of them are meant."""
    if name.lower() in _ANY_DATABASE:
        return None
    known = sorted(databases_of(tables))
    found = next((one for one in known if one.lower() == name.lower()), None)
    if found is None:
        raise NoDatabaseError(f"there is no database {name[:200]!r}", "db", nearest(name, known, "databases"))
    return found
