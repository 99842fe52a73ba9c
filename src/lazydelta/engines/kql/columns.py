"""Kusto's types: of a table's columns, and of a result's.

Contract: every column of a result has one of Kusto's ten types and always the same type of Arrow for it, so
that a protocol or a printer needs ten cases. Values that DuckDB has another type for are cast in SQL.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from lazydelta.engines.session import spelled


class KqlColumn(msgspec.Struct, frozen=True):
    """A column of a result: bool, datetime, decimal, dynamic, guid, int, long, real, string or timespan."""

    name: str
    type: str


# How Arrow holds the values of each type. Text of a dynamic is JSON; decimals keep their own width.
ARROW_TYPES = {
    "bool": pa.bool_(),
    "datetime": pa.timestamp("us", "UTC"),
    "dynamic": pa.string(),
    "guid": pa.string(),
    "int": pa.int32(),
    "long": pa.int64(),
    "real": pa.float64(),
    "string": pa.string(),
    "timespan": pa.duration("us"),
}
# Of DuckDB's types, by their ids; what is not here is nested, or said below.
_OF_DUCKDB = {
    "boolean": "bool",
    "tinyint": "int",
    "smallint": "int",
    "integer": "int",
    "utinyint": "int",
    "usmallint": "int",
    "uinteger": "long",
    "bigint": "long",
    "ubigint": "long",
    "hugeint": "long",
    "uhugeint": "long",
    "float": "real",
    "double": "real",
    "decimal": "decimal",
    "varchar": "string",
    "enum": "string",
    "blob": "string",
    "bit": "string",
    "uuid": "guid",
    "date": "datetime",
    "timestamp": "datetime",
    "timestamp_s": "datetime",
    "timestamp_ms": "datetime",
    "timestamp_ns": "datetime",
    "timestamp with time zone": "datetime",
    "interval": "timespan",
    "time": "timespan",
    "json": "dynamic",
    "variant": "dynamic",
    "list": "dynamic",
    "array": "dynamic",
    "struct": "dynamic",
    "map": "dynamic",
    "union": "dynamic",
    "NULL": "string",
}
_WORDS = re.compile(r'"(?:[^"\\]|\\.)*"|(?P<number>NaN|-?Infinity)')
_CASTS = {
    "bool": "{0}::boolean",
    "int": "{0}::integer",
    "long": "{0}::bigint",
    "real": "{0}::double",
    "guid": "{0}::varchar",
    "string": "coalesce({0}::varchar, '')",  # text is never null in KQL
    "timespan": "epoch_us({0})",
    "dynamic": "to_json({0})::varchar",
}


def kql_type(kind: pa.DataType) -> str:
    """The type that a column of a table has in KQL."""
    types = pa.types
    if types.is_nested(kind):
        return "dynamic"
    if types.is_integer(kind):
        return "int" if kind.bit_width <= 32 else "long"
    for is_kind, name in (
        (types.is_boolean, "bool"),
        (types.is_floating, "real"),
        (types.is_decimal, "decimal"),
        (types.is_temporal, "datetime"),
    ):
        if is_kind(kind):
            return "timespan" if types.is_duration(kind) else name
    return "string"


def table_columns(schema: pa.Schema) -> tuple[KqlColumn, ...]:
    """The columns of a table, as KQL sees them."""
    return tuple(KqlColumn(field.name, kql_type(field.type)) for field in schema)


def result_columns(names: Sequence[str], kinds: Sequence[Any]) -> tuple[KqlColumn, ...]:
    """The columns of a result, by DuckDB's types (Any: DuckDB's)."""
    return tuple(KqlColumn(name, _type_of(kind)) for name, kind in zip(names, kinds, strict=True))


def shaped(sql: str, columns: Sequence[KqlColumn], kinds: Sequence[Any]) -> str:
    """The query with every column cast to what Arrow shall hold (Any: DuckDB's types)."""
    casts = ", ".join(
        f"{_cast(spelled(column.name), column.type, kind)} as {spelled(column.name)}"
        for column, kind in zip(columns, kinds, strict=True)
    )
    return f"select {casts} from (\n{sql}\n)"


def shaped_batch(batch: pa.RecordBatch, columns: Sequence[KqlColumn]) -> pa.RecordBatch:
    """A batch of such a query: timespans come as microseconds, dynamics as DuckDB writes JSON."""
    shapes = {"timespan": lambda array: array.view(ARROW_TYPES["timespan"]), "dynamic": _standard_json}
    arrays = [
        shapes[column.type](array) if column.type in shapes else array
        for array, column in zip(batch.columns, columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=shaped_schema(batch.schema, columns))


def shaped_schema(schema: pa.Schema, columns: Sequence[KqlColumn]) -> pa.Schema:
    """The schema of such batches."""
    return pa.schema(
        pa.field(column.name, ARROW_TYPES.get(column.type, field.type))
        for column, field in zip(columns, schema, strict=True)
    )


def _standard_json(texts: pa.Array) -> pa.Array:
    """JSON has no word for NaN and the infinities, where DuckDB writes one: they are strings, as in Kusto."""
    if not pc.any(pc.match_substring_regex(texts, "NaN|Infinity")).as_py():
        return texts
    return pa.array([text and _WORDS.sub(_quoted, text) for text in texts.to_pylist()], texts.type)


def _quoted(found: re.Match[str]) -> str:
    return f'"{found["number"]}"' if found["number"] else found[0]


def _type_of(kind: Any) -> str:  # Any: DuckDB's
    if str(kind) == "JSON":
        return "dynamic"
    return _OF_DUCKDB.get(str(kind.id), "dynamic")


def _cast(column: str, name: str, kind: Any) -> str:  # Any: DuckDB's
    own = str(kind.id)
    if own == "blob":
        return f"coalesce(to_base64({column}), '')"
    if name == "datetime":
        return column if own == "timestamp with time zone" else f"{column}::timestamp at time zone 'UTC'"
    if name == "dynamic" and str(kind) == "JSON":
        return f"{column}::varchar"
    if own == "time":
        return f"epoch_us({column}::interval)"
    return _CASTS[name].format(column) if name in _CASTS else column
