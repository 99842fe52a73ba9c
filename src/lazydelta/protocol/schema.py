"""A table's schema: Delta's schema JSON as small frozen structs, and as Arrow types.

Contract: no name stands twice in one struct; names that differ by case alone are two columns, each found by
its own spelling. Names are logical; `Field.physical_name` is the name inside data files, statistics and
partition values (PROTOCOL.md, "Column Mapping"). Types that this reader does not know are an
error that names them.
Spec: PROTOCOL.md, "Schema Serialization Format".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from lazydelta import limits
from lazydelta.errors import CorruptLogError, UnsupportedTableError
from lazydelta.protocol.actions import Metadata

_DECIMAL = re.compile(r"^decimal\(\s*([0-9]{1,3})\s*,\s*(-?[0-9]{1,3})\s*\)$")
_DIGITS_MAX = 38
_ARROW_PRIMITIVES: dict[str, pa.DataType] = {
    "string": pa.string(),
    "long": pa.int64(),
    "integer": pa.int32(),
    "short": pa.int16(),
    "byte": pa.int8(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "void": pa.null(),
    "variant": pa.struct([pa.field("metadata", pa.binary()), pa.field("value", pa.binary())]),
}


_MAPPING = "delta.columnMapping."  # keys of a field's metadata
# What a schema of another shape comes to: text that is no JSON, fields that are no fields.
_MISSHAPEN = (
    msgspec.DecodeError,
    UnicodeError,
    RecursionError,
    KeyError,
    TypeError,
    AttributeError,
)


class PrimitiveType(msgspec.Struct, frozen=True):
    """A leaf type by its Delta name: `long`, `decimal(10,2)`, `timestamp_ntz`, …"""

    name: str


class ArrayType(msgspec.Struct, frozen=True):
    """A list."""

    element: DeltaType
    contains_null: bool


class MapType(msgspec.Struct, frozen=True):
    """A map."""

    key: DeltaType
    value: DeltaType
    value_contains_null: bool


class Field(msgspec.Struct, frozen=True):
    """One column or nested field."""

    name: str
    type: DeltaType
    nullable: bool
    metadata: dict[str, Any]

    @property
    def physical_name(self) -> str:
        """The name used inside data files, statistics and partition values."""
        return str(self.metadata.get("delta.columnMapping.physicalName", self.name))

    @property
    def is_collated(self) -> bool:
        """Whether string comparison follows a collation, so that bounds in byte order say nothing."""
        return bool(self.metadata.get("__COLLATIONS"))

    @property
    def was_float(self) -> bool:
        """Whether the column was widened from float to double (PROTOCOL.md, "Type Change Metadata")."""
        changes = self.metadata.get("delta.typeChanges") or []
        return any(change.get("fromType") == "float" and "fieldPath" not in change for change in changes)


class StructType(msgspec.Struct, frozen=True):
    """A table's columns, or a nested struct's fields."""

    fields: tuple[Field, ...]

    def field(self, name: str) -> Field | None:
        """The field of that name: as spelled, else the only one that differs by case alone."""
        for field in self.fields:
            if field.name == name:
                return field
        folded = [field for field in self.fields if field.name.lower() == name.lower()]
        return folded[0] if len(folded) == 1 else None

    def leaves(self) -> Iterator[tuple[tuple[str, ...], Field]]:
        """Every leaf with its logical path, structs opened, arrays and maps closed."""
        for field in self.fields:
            if isinstance(field.type, StructType):
                yield from (((field.name, *path), leaf) for path, leaf in field.type.leaves())
            else:
                yield (field.name,), field


DeltaType = PrimitiveType | ArrayType | MapType | StructType


def table_schema(metadata: Metadata, where: str) -> StructType:
    """The table's columns; what is left of a mapping that is off does not count."""
    return parse_schema(metadata.schema_string, where, is_mapped=metadata.mapping_mode != "none")


def parse_schema(schema_string: str | None, where: str, *, is_mapped: bool = True) -> StructType:
    """The schema in `metaData.schemaString`; `where` names the table in errors."""
    if not schema_string:
        return StructType(())
    try:
        raw = msgspec.json.decode(schema_string)
        parsed = _parse_type(raw, _Context(where, is_mapped), limits.SCHEMA_NESTING_MAX)
    except _MISSHAPEN as damage:
        raise CorruptLogError(
            f"the schema cannot be read: {schema_string[:80]}", where, "repair the table's metadata"
        ) from damage
    if not isinstance(parsed, StructType):
        raise CorruptLogError(
            f"the schema is not a struct: {schema_string[:80]}", where, "repair the table's metadata"
        )
    return parsed


def is_type_name(name: str) -> bool:
    """Whether it is the name of a primitive type."""
    return name in _ARROW_PRIMITIVES or _is_decimal(name)


def type_text(delta_type: DeltaType, *, with_fields: bool = True) -> str:
    """As Delta and Spark spell it; without fields a structure is the word alone."""
    match delta_type:
        case PrimitiveType(name):
            return name
        case ArrayType(element):
            return f"array<{type_text(element, with_fields=with_fields)}>"
        case MapType(key, value):
            of = ", ".join(type_text(one, with_fields=with_fields) for one in (key, value))
            return f"map<{of}>"
        case StructType(fields) if with_fields:
            return f"struct<{', '.join(f'{field.name}: {type_text(field.type)}' for field in fields)}>"
        case StructType():
            return "struct"


def arrow_type(delta_type: DeltaType) -> pa.DataType:
    """The Arrow type that rows and statistics of this type are given in."""
    match delta_type:
        case PrimitiveType(name):
            return _arrow_primitive(name)
        case ArrayType(element, contains_null):
            return pa.list_(_arrow_field("element", element, contains_null))
        case MapType(key, value, value_contains_null):
            return pa.map_(arrow_type(key), _arrow_field("value", value, value_contains_null))
        case StructType(fields):
            return pa.struct([arrow_field(field) for field in fields])


def arrow_field(field: Field) -> pa.Field:
    """The Arrow field of a column, by its logical name."""
    return _arrow_field(field.name, field.type, field.nullable)


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema of a table, by logical names."""
    return pa.schema([arrow_field(field) for field in schema.fields])


def _arrow_field(name: str, type_: DeltaType, is_nullable: bool) -> pa.Field:
    found = arrow_type(type_)
    return pa.field(name, found, is_nullable or pa.types.is_null(found))  # Arrow's null is always null


def _arrow_primitive(name: str) -> pa.DataType:
    decimal = _DECIMAL.match(name)
    if decimal:
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    return _ARROW_PRIMITIVES[name]


class _Context(msgspec.Struct, frozen=True):
    """What is known of the table whose schema is read."""

    where: str
    is_mapped: bool


def _parse_type(raw: Any, of: _Context, depth: int) -> DeltaType:  # Any: JSON as the writer left it
    if not depth:
        raise UnsupportedTableError(
            f"the schema nests more than {limits.SCHEMA_NESTING_MAX} levels", of.where, "flatten the column"
        )
    if isinstance(raw, str):
        name = "decimal(10,0)" if raw == "decimal" else raw
        if not is_type_name(name):
            raise UnsupportedTableError(
                f"the schema has a column of the unknown type {raw!r}", of.where, "use a newer lazydelta"
            )
        return PrimitiveType(name)
    kind = raw.get("type")
    if kind == "struct":
        fields = tuple(_parse_field(field, of, depth - 1) for field in raw["fields"])
        _check_twice(fields, of.where)
        return StructType(fields)
    if kind == "array":
        element = _parse_type(raw["elementType"], of, depth - 1)
        return ArrayType(element, _flag(raw.get("containsNull", True)))
    if kind == "map":
        key, value = (_parse_type(raw[name], of, depth - 1) for name in ("keyType", "valueType"))
        if key == PrimitiveType("void"):
            raise UnsupportedTableError(
                "a map of the schema has keys without a type", of.where, "give it one"
            )
        return MapType(key, value, _flag(raw.get("valueContainsNull", True)))
    raise UnsupportedTableError(
        f"the schema has a column of the unknown type {kind!r}", of.where, "use a newer lazydelta"
    )


def _parse_field(raw: dict[str, Any], of: _Context, depth: int) -> Field:
    metadata = msgspec.convert(raw.get("metadata") or {}, dict[str, Any])
    msgspec.convert(metadata, _FieldMetadata)
    if not of.is_mapped:
        metadata = {name: value for name, value in metadata.items() if not name.startswith(_MAPPING)}
    return Field(
        name=msgspec.convert(raw["name"], str),
        type=_parse_type(raw["type"], of, depth),
        nullable=_flag(raw.get("nullable", True)),
        metadata=metadata,
    )


def _check_twice(fields: Sequence[Field], where: str) -> None:
    """Nobody can tell two columns of one name apart, in a query or in a data file."""
    for names in ([field.name for field in fields], [field.physical_name for field in fields]):
        twice = next((name for name, count in Counter(names).items() if count > 1), None)
        if twice is not None:
            raise CorruptLogError(
                f"the schema has the column {twice!r} twice", where, "repair the table's metadata"
            )


class _FieldMetadata(msgspec.Struct):
    """What readers use of a field's metadata; the rest is anything."""

    physical_name: str = msgspec.field(default="", name="delta.columnMapping.physicalName")
    type_changes: list[dict[str, Any]] | None = msgspec.field(default=None, name="delta.typeChanges")


def _flag(raw: Any) -> bool:
    return msgspec.convert(raw, bool)


def _is_decimal(name: str) -> bool:
    found = _DECIMAL.match(name)
    return found is not None and 0 < int(found[1]) <= _DIGITS_MAX and abs(int(found[2])) <= _DIGITS_MAX
