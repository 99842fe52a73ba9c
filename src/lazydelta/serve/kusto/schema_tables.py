"""Databases, tables, columns and functions that a client sees, as Kusto's commands list them.

Contract: what the client may not read is not there, in no list and in no hint. No address of a store is told.
A table whose columns cannot be read now is listed without them, and the log says why; asked for by its name,
it is an error.
Spec: Kusto, ".show tables", ".show database schema", ".show external tables".
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

import msgspec

from lazydelta.engines.kql.catalog import nearest
from lazydelta.engines.kql.columns import KqlColumn, table_columns
from lazydelta.errors import LazyDeltaError, TableNotFoundError
from lazydelta.serve.config import ServedTable
from lazydelta.serve.kusto.seen import SeenTables, databases_of, found_database, functions_of
from lazydelta.serve.kusto.tables import Row, SmallTable, columns
from lazydelta.serve.served import Served

LOGGER = logging.getLogger("lazydelta.serve")
_NET_NAMES = {
    "bool": "System.SByte",
    "datetime": "System.DateTime",
    "decimal": "System.Data.SqlTypes.SqlDecimal",
    "dynamic": "System.Object",
    "guid": "System.Guid",
    "int": "System.Int32",
    "long": "System.Int64",
    "real": "System.Double",
    "string": "System.String",
    "timespan": "System.TimeSpan",
}
Tree = dict[str, Any]  # Any: as JSON has it


class SchemaTables:
    """The lists of one client."""

    def __init__(self, served: Served, tables: SeenTables) -> None:
        self._served = served
        self._tables = tables

    def databases(self) -> SmallTable:
        """`.show databases`."""
        found = columns(
            DatabaseName="string",
            PersistentStorage="string",
            Version="string",
            IsCurrent="bool",
            DatabaseAccessMode="string",
            PrettyName="string",
            ReservedSlot1="bool",
            DatabaseId="guid",
        )
        rows: list[Row] = [
            [name, "", "v1.0", False, "ReadOnly", "", None, None] for name in self._databases(None)
        ]
        return SmallTable(found, rows)

    def tables(self, database: str | None) -> SmallTable:
        """`.show tables`."""
        found = columns(TableName="string", DatabaseName="string", Folder="string", DocString="string")
        rows = [[one.name, one.schema, "", one.comment] for one in self._of(database)]
        return SmallTable(found, rows)

    def external_tables(self, database: str | None, name: str | None = None) -> SmallTable:
        """`.show external tables`, or the one of that name."""
        found = columns(
            TableName="string",
            TableType="string",
            Folder="string",
            DocString="string",
            Properties="string",
            ConnectionStrings="dynamic",
            Partitions="dynamic",
            PathFormat="string",
        )
        chosen = self._of(database) if name is None else [self._named(name)]
        rows: list[Row] = [[one.name, "Delta", "", one.comment, "", [], None, ""] for one in chosen]
        return SmallTable(found, rows)

    def table_schema(self, name: str, form: str) -> SmallTable:
        """`.show table NAME schema as json`, or csl."""
        table = self._named(name)
        shape = table_columns(self._tables[table.name])
        told = _csl(shape) if form == "csl" else msgspec.json.encode(_table(table, shape)).decode()
        found = columns(
            TableName="string", Schema="string", DatabaseName="string", Folder="string", DocString="string"
        )
        return SmallTable(found, [[table.name, told, table.schema, "", table.comment]])

    def database_schema(self, database: str | None) -> SmallTable:
        """`.show database schema`: a line for each database, table and column."""
        found = columns(
            DatabaseName="string",
            TableName="string",
            ColumnName="string",
            ColumnType="string",
            IsDefaultTable="bool",
            IsDefaultColumn="bool",
            PrettyName="string",
            Version="string",
            Folder="string",
            DocString="string",
        )
        rows: list[Row] = []
        for name in self._databases(database):
            rows.append([name, "", "", "", False, False, "", "v1.0", "", ""])
            for table in self._of(name):
                rows.append([name, table.name, "", "", False, False, "", "", "", table.comment])
                rows += [
                    [name, table.name, one.name, _NET_NAMES[one.type], False, False, "", "", "", ""]
                    for one in self._columns(table)
                ]
        return SmallTable(found, rows)

    def schema_json(self, databases: Iterable[str | None]) -> SmallTable:
        """`.show database schema as json`."""
        names = dict.fromkeys(name for one in databases for name in self._databases(one))
        told = {"Plugins": [], "Databases": {name: self._database(name) for name in names}}
        return SmallTable(columns(DatabaseSchema="string"), [[msgspec.json.encode(told).decode()]])

    def functions(self, name: str | None = None) -> SmallTable:
        """`.show functions`, or the one of that name."""
        found = columns(
            Name="string", Parameters="string", Body="string", Folder="string", DocString="string"
        )
        seen = functions_of(self._served, self._tables)
        if name is not None and name not in seen:
            raise TableNotFoundError(
                f"there is no function {name[:200]!r}", "function", nearest(name, list(seen), "functions")
            )
        rows = [
            [key, one.stored.parameters, f"{{ {one.stored.body.strip()} }}", "", one.comment]
            for key, one in sorted(seen.items())
            if name is None or key == name
        ]
        return SmallTable(found, rows)

    def _databases(self, database: str | None) -> list[str]:
        """The one of that name, or all."""
        found = None if database is None else found_database(database, self._tables)
        return sorted(databases_of(self._tables)) if found is None else [found]

    def _of(self, database: str | None) -> list[ServedTable]:
        names = self._databases(database)
        return [table for table in self._tables.served if table.schema in names]

    def _named(self, name: str) -> ServedTable:
        found = next((table for table in self._tables.served if table.name == name), None)
        if found is None:
            hint = nearest(name, list(self._tables), "tables")
            raise TableNotFoundError(f"there is no table {name[:200]!r}", "table", hint)
        return found

    def _columns(self, table: ServedTable) -> tuple[KqlColumn, ...]:
        try:
            return table_columns(self._tables[table.name])
        except LazyDeltaError as error:
            LOGGER.warning("%s is listed without its columns: %s", table.name, error)
            return ()

    def _database(self, name: str) -> Tree:
        tables = {table.name: _table(table, self._columns(table)) for table in self._of(name)}
        functions = {
            key: {
                "Name": key,
                "InputParameters": [],
                "Parameters": one.stored.parameters,
                "Body": f"{{ {one.stored.body.strip()} }}",
                "Folder": "",
                "DocString": one.comment,
                "FunctionKind": "Unknown",
                "OutputColumns": [],
            }
            for key, one in sorted(functions_of(self._served, self._tables).items())
        }
        return {
            "Name": name,
            "Tables": tables,
            "ExternalTables": {key: {**one, "Kind": "Delta"} for key, one in tables.items()},
            "MaterializedViews": {},
            "EntityGroups": {},
            "MajorVersion": 1,
            "MinorVersion": 0,
            "Functions": functions,
            "DatabaseAccessMode": "ReadOnly",
            "PrettyName": "",
        }


def _table(table: ServedTable, shape: Iterable[KqlColumn]) -> Tree:
    ordered = [
        {"Name": one.name, "Type": _NET_NAMES[one.type], "CslType": one.type, "DocString": ""}
        for one in shape
    ]
    return {"Name": table.name, "Folder": "", "DocString": table.comment, "OrderedColumns": ordered}


def _csl(shape: Iterable[KqlColumn]) -> str:
    return ",".join(f"{_spelled(one.name)}:{one.type}" for one in shape)


def _spelled(name: str) -> str:
    if name.isascii() and name.replace("_", "a").isalnum() and not name[:1].isdigit():
        return name
    return f"['{name}']"
