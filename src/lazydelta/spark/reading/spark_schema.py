"""A table's columns as Spark's types, and rows in the very Arrow types that Spark takes back from Python.

Why: Delta's schema is Spark's own JSON, so Spark reads it; what travels is Arrow, and one kind of column
looks different there: a variant. Contract: a column that the data source cannot express is an error that
names it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_schema
from pyspark.sql.types import DataType, StructField, StructType

from lazydelta.errors import UnsupportedTableError
from lazydelta.protocol.schema import Field
from lazydelta.rows.selection import METADATA_COLUMNS

# Of a field's metadata what says something of its type or to people; the rest is the writers' own.
_KEPT_METADATA = frozenset({"__COLLATIONS", "__CHAR_VARCHAR_TYPE_STRING", "comment"})


def spark_schema(names: Iterable[str], schema_string: str, where: str) -> StructType:
    """These columns as Spark has them; `schema_string` is the table's own."""
    stored = {field["name"]: field for field in msgspec.json.decode(schema_string)["fields"]}
    fields = []
    for name in names:
        if name in stored:
            fields.append(_field(stored[name], where))
        else:
            fields.append(StructField(name, from_arrow_type(METADATA_COLUMNS[name])))
    found = StructType(fields)
    _check(found, where)
    return found


def arrow_of(schema: StructType) -> pa.Schema:
    """What Spark wants to be given."""
    return to_arrow_schema(schema, timezone="UTC")


def conform(rows: pa.RecordBatch, wanted: pa.Schema) -> pa.RecordBatch:
    """The same rows in these types, which differ in how variants look and in what may be null."""
    if rows.schema.equals(wanted):
        return rows
    arrays = [_as(column, field.type) for column, field in zip(rows.columns, wanted, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=wanted)


def _field(stored: dict[str, Any], where: str) -> StructField:  # Any: the table's JSON
    try:
        return StructField.fromJson(_without_own_metadata(stored))
    except (PySparkException, KeyError, ValueError, AttributeError) as error:
        raise _inexpressible(stored["name"], stored["type"], where) from error


def _without_own_metadata(node: Any) -> Any:  # Any: the table's JSON
    if isinstance(node, list):
        return [_without_own_metadata(one) for one in node]
    if not isinstance(node, dict):
        return node
    found = {name: _without_own_metadata(value) for name, value in node.items() if name != "metadata"}
    if "nullable" in node:  # a field
        metadata = node.get("metadata") or {}
        found["metadata"] = {name: value for name, value in metadata.items() if name in _KEPT_METADATA}
    return found


def _check(schema: StructType, where: str) -> None:
    for field in schema.fields:
        try:
            to_arrow_schema(StructType([field]), timezone="UTC")
        except PySparkException as error:
            raise _inexpressible(field.name, field.dataType, where) from error


def _inexpressible(name: str, kind: DataType | Field | object, where: str) -> UnsupportedTableError:
    shown = kind.simpleString() if isinstance(kind, DataType) else str(kind)
    return UnsupportedTableError(
        f"the column {name!r} is of a type that Spark's Python data sources do not have: {shown[:200]}",
        where,
        "leave the column out: name the others in columns",
    )


def _as(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    if array.type.equals(wanted):
        return array
    if pa.types.is_struct(wanted):
        children = [
            _as(pc.struct_field(array, [array.type.get_field_index(field.name)]), field.type)
            for field in wanted
        ]
        mask = array.is_null() if array.null_count else None
        filled = [_without_nulls(child, field) for child, field in zip(children, wanted, strict=True)]
        return pa.StructArray.from_arrays(filled, fields=list(wanted), mask=mask)
    if pa.types.is_list(wanted):
        values = _as(array.values, wanted.value_type)
        return pa.ListArray.from_arrays(_offsets(array), values, type=wanted)
    if pa.types.is_map(wanted):
        keys, items = _as(array.keys, wanted.key_type), _as(array.items, wanted.item_type)
        return pa.MapArray.from_arrays(_offsets(array), keys, items, type=wanted)
    return array.cast(wanted)


def _offsets(array: pa.Array) -> pa.Array:
    """Where lists begin, null where there is none."""
    offsets = array.offsets
    if not array.null_count:
        return offsets
    return pa.concat_arrays([pc.if_else(array.is_valid(), offsets[:-1], None), offsets[-1:]])


def _without_nulls(child: pa.Array, field: pa.Field) -> pa.Array:
    """What stands below a null struct need not be null itself."""
    if field.nullable or not child.null_count or not pa.types.is_binary(child.type):
        return child
    return pc.fill_null(child, b"")
