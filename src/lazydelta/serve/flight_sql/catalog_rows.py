"""What drivers ask of a catalog: shares as catalogs, schemas, tables, their columns; keys: there are none.

Contract: a client sees what it may read. Patterns are those of LIKE. Rows come in the order that the protocol
asks for.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable

import pyarrow as pa

from lazydelta.errors import LazyDeltaError
from lazydelta.serve.config import ServedTable
from lazydelta.serve.flight_sql.envelope import Message
from lazydelta.serve.flight_sql.sql_info import sql_info
from lazydelta.serve.flight_sql.type_info import type_info
from lazydelta.serve.served import Served
from lazydelta.serve.sign_in import Client

LOGGER = logging.getLogger("lazydelta.serve")
TABLE_TYPE = "TABLE"


def _columns(**types: pa.DataType | pa.Field) -> pa.Schema:
    """A schema; a name with a trailing underscore may be null."""
    return pa.schema(
        [pa.field(name.rstrip("_"), kind, nullable=name.endswith("_")) for name, kind in types.items()]
    )


_TEXT, _INT = pa.string(), pa.int32()
CATALOGS = _columns(catalog_name=_TEXT)
SCHEMAS = _columns(catalog_name_=_TEXT, db_schema_name=_TEXT)
TABLES = _columns(catalog_name_=_TEXT, db_schema_name_=_TEXT, table_name=_TEXT, table_type=_TEXT)
TABLES_WITH_COLUMNS = TABLES.append(pa.field("table_schema", pa.binary(), nullable=False))
TABLE_TYPES = _columns(table_type=_TEXT)
PRIMARY_KEYS = _columns(
    catalog_name_=_TEXT,
    db_schema_name_=_TEXT,
    table_name=_TEXT,
    column_name=_TEXT,
    key_name_=_TEXT,
    key_sequence=_INT,
)
FOREIGN_KEYS = _columns(
    pk_catalog_name_=_TEXT,
    pk_db_schema_name_=_TEXT,
    pk_table_name=_TEXT,
    pk_column_name=_TEXT,
    fk_catalog_name_=_TEXT,
    fk_db_schema_name_=_TEXT,
    fk_table_name=_TEXT,
    fk_column_name=_TEXT,
    key_sequence=_INT,
    fk_key_name_=_TEXT,
    pk_key_name_=_TEXT,
    update_rule=pa.uint8(),
    delete_rule=pa.uint8(),
)


def answer_of(message: Message) -> Callable[[Served, Client, Message], pa.Table] | None:
    """What answers a message, if it asks of the catalog."""
    return _ANSWERS.get(message.DESCRIPTOR.name)


def _catalogs(served: Served, client: Client, _: Message) -> pa.Table:
    names = sorted({table.share for table in served.catalog.seen_by(client)})
    return pa.table([names], CATALOGS)


def _schemas(served: Served, client: Client, wanted: Message) -> pa.Table:
    is_wanted = _like(wanted, "db_schema_filter_pattern")
    found = sorted(
        {
            (table.share, table.schema)
            for table in _of_catalog(served, client, wanted)
            if is_wanted(table.schema)
        }
    )
    return pa.Table.from_pylist([dict(zip(SCHEMAS.names, row, strict=True)) for row in found], SCHEMAS)


def _tables(served: Served, client: Client, wanted: Message) -> pa.Table:
    in_schema, has_name = (
        _like(wanted, "db_schema_filter_pattern"),
        _like(wanted, "table_name_filter_pattern"),
    )
    found = [
        table
        for table in _of_catalog(served, client, wanted)
        if in_schema(table.schema) and has_name(table.name)
    ]
    if wanted.table_types and TABLE_TYPE not in wanted.table_types:
        found = []
    found.sort(key=lambda table: (table.share, table.schema, table.name))
    columns: list[list[object]] = [
        [table.share for table in found],
        [table.schema for table in found],
        [table.name for table in found],
        [TABLE_TYPE for _ in found],
    ]
    if not wanted.include_schema:
        return pa.table(columns, TABLES)
    columns.append([_columns_of(served, client, table) for table in found])
    return pa.table(columns, TABLES_WITH_COLUMNS)


def _columns_of(served: Served, client: Client, table: ServedTable) -> bytes:
    """The table's columns as IPC; none where it cannot be opened now."""
    schema = pa.schema([])
    try:
        schema = served.catalog.open(table.name, client).scan().source.schema
    except LazyDeltaError as error:
        LOGGER.warning("%s is listed without its columns: %s", table.name, error)
    found: bytes = schema.serialize().to_pybytes()
    return found


def _table_types(*_: object) -> pa.Table:
    return pa.table([[TABLE_TYPE]], TABLE_TYPES)


def _no_primary_keys(*_: object) -> pa.Table:
    return PRIMARY_KEYS.empty_table()


def _no_foreign_keys(*_: object) -> pa.Table:
    return FOREIGN_KEYS.empty_table()


def _of_catalog(served: Served, client: Client, wanted: Message) -> list[ServedTable]:
    tables = served.catalog.seen_by(client)
    if not wanted.HasField("catalog"):
        return tables
    return [table for table in tables if table.share == wanted.catalog]


def _like(wanted: Message, field: str) -> Callable[[str], bool]:
    """Whether a text is like the pattern of a field; everything is, where there is none."""
    if not wanted.HasField(field):
        return lambda _: True
    parts = {"%": ".*", "_": "."}
    # `\` stands before a character that means itself.
    tokens = re.findall(r"\\.|.", getattr(wanted, field), re.DOTALL)
    pattern = "".join(parts.get(token) or re.escape(token.removeprefix("\\") or token) for token in tokens)
    return lambda text: re.fullmatch(pattern, text, re.DOTALL) is not None


_ANSWERS: dict[str, Callable[[Served, Client, Message], pa.Table]] = {
    "CommandGetCatalogs": _catalogs,
    "CommandGetDbSchemas": _schemas,
    "CommandGetTables": _tables,
    "CommandGetTableTypes": _table_types,
    "CommandGetPrimaryKeys": _no_primary_keys,
    "CommandGetExportedKeys": _no_foreign_keys,
    "CommandGetImportedKeys": _no_foreign_keys,
    "CommandGetCrossReference": _no_foreign_keys,
    "CommandGetSqlInfo": lambda served, _, wanted: sql_info(served, wanted.info),
    "CommandGetXdbcTypeInfo": lambda _, __, wanted: type_info(
        wanted.data_type if wanted.HasField("data_type") else None
    ),
}
