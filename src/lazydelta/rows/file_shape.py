"""Which columns of one Parquet file are which columns of the table.

Why: a file holds what its writer knew: physical names or field ids, narrower types, fewer columns, another
order, at every level of nesting.
Contract: fields are found by field id in id mode (by physical name in a file that has no ids), by physical
name in name mode, by name else; case decides only where two names differ by nothing else. What the file does
not have is null. What contradicts the schema is a `CorruptDataError` that names the column.
Spec: PROTOCOL.md, "Column Mapping", "Reader Requirements for Column Mapping".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import pyarrow as pa
from pyarrow import types as kinds

from lazydelta.errors import CorruptDataError, LazyDeltaError, UnsupportedTableError
from lazydelta.protocol.schema import (
    ArrayType,
    DeltaType,
    Field,
    MapType,
    PrimitiveType,
    StructType,
    arrow_type,
)
from lazydelta.rows.column_reading import MISSING, Reading
from lazydelta.rows.leaf_casts import Cast, leaf_cast
from lazydelta.rows.legacy_calendar import legacy_calendar

FIELD_ID = b"PARQUET:field_id"
_VARIANT_PARTS = (
    Field("metadata", PrimitiveType("binary"), True, {}),
    Field("value", PrimitiveType("binary"), True, {}),
)


class StoredField(msgspec.Struct, frozen=True, eq=False):
    """A field of the file, with the positions of its leaves."""

    name: str
    type: pa.DataType  # extension types as they are stored
    field_id: int | None
    first_leaf: int
    leaf_count: int


class FileShape:
    """Finds fields in the schema of one file."""

    def __init__(self, schema: pa.Schema, *, mapping_mode: str, where: str) -> None:
        self._where = where
        self._mode = mapping_mode
        self._columns = _stored_fields(schema, 0)
        self._calendar = legacy_calendar(schema.metadata)
        self._has_ids = mapping_mode == "id" and any(_has_ids(field) for field in schema)

    def reading(self, fields: Sequence[Field]) -> Reading:
        """How these columns are read, as of a struct that holds them."""
        wanted = pa.struct([pa.field(field.name, arrow_type(field.type), field.nullable) for field in fields])
        return self._fields(fields, self._columns, wanted, ())

    def _fields(
        self,
        fields: Sequence[Field],
        stored: Sequence[StoredField],
        wanted: pa.DataType,
        path: tuple[str, ...],
    ) -> Reading:
        found = [self._found(field, stored) for field in fields]
        children = tuple(
            None if place is None else self._read(field.type, stored[place], (*path, field.name))
            for field, place in zip(fields, found, strict=True)
        )
        present = sorted({place for place in found if place is not None})
        places = tuple(MISSING if place is None else present.index(place) for place in found)
        leaves = tuple(sorted({leaf for child in children if child is not None for leaf in child.leaves}))
        return Reading(wanted, leaves, children=children, places=places)

    def _found(self, field: Field, stored: Sequence[StoredField]) -> int | None:
        """Where the field is among these."""
        field_id = field.metadata.get("delta.columnMapping.id")
        if self._has_ids and field_id is not None:
            return next((at for at, other in enumerate(stored) if other.field_id == field_id), None)
        name = field.name if self._mode == "none" else field.physical_name
        for at, other in enumerate(stored):
            if other.name == name:
                return at
        folded = [at for at, other in enumerate(stored) if other.name.lower() == name.lower()]
        return folded[0] if len(folded) == 1 else None

    def _read(self, wanted: DeltaType, stored: StoredField, path: tuple[str, ...]) -> Reading:
        match wanted:
            case StructType(fields) if kinds.is_struct(stored.type):
                return self._struct(fields, stored, arrow_type(wanted), path)
            case ArrayType(element) if _is_list(stored.type):
                inner = self._read(element, _stored(stored.type.value_field, stored.first_leaf), path)
                return Reading(arrow_type(wanted), inner.leaves, children=(inner,))
            case MapType(key_type, value_type) if kinds.is_map(stored.type):
                key = _stored(stored.type.key_field, stored.first_leaf)
                value = _stored(stored.type.item_field, stored.first_leaf + key.leaf_count)
                inside = self._read(key_type, key, path), self._read(value_type, value, path)
                return Reading(arrow_type(wanted), inside[0].leaves + inside[1].leaves, children=inside)
            case PrimitiveType("variant") if kinds.is_struct(stored.type):
                return self._variant(stored, arrow_type(wanted), path)
            case PrimitiveType(name) if name != "variant" and not kinds.is_nested(stored.type):
                cast = leaf_cast(stored.type, arrow_type(wanted))
                if cast is not None:
                    return self._leaf(stored, arrow_type(wanted), cast, path)
        raise self._contradiction(stored.type, wanted, path)

    def _leaf(self, stored: StoredField, wanted: pa.DataType, cast: Cast, path: tuple[str, ...]) -> Reading:
        calendar, leaves = self._calendar, (stored.first_leaf,)
        if calendar is None or not calendar.holds(stored.type, wanted):
            return Reading(wanted, leaves, cast=cast, stored=stored.type)
        rebasing = calendar.cast(stored.type, cast, _spelled(path))
        return Reading(wanted, leaves, cast=rebasing, stored=stored.type, is_legacy=True)

    def _struct(
        self, fields: Sequence[Field], stored: StoredField, wanted: pa.DataType, path: tuple[str, ...]
    ) -> Reading:
        reading = self._fields(fields, _stored_fields(stored.type, stored.first_leaf), wanted, path)
        # Without any of its fields, one leaf must still tell where the struct itself is null.
        return reading if reading.leaves else msgspec.structs.replace(reading, leaves=(stored.first_leaf,))

    def _variant(self, stored: StoredField, wanted: pa.DataType, path: tuple[str, ...]) -> Reading:
        parts = _stored_fields(stored.type, stored.first_leaf)
        if any(part.name == "typed_value" for part in parts):
            raise UnsupportedTableError(
                f"the variant column {_spelled(path)} is shredded into typed columns in the file",
                self._where,
                "leave the column out, or rewrite the file without shredding",
            )
        # Inside a variant names are the format's own: no mapping reaches there.
        plain = FileShape(pa.schema([]), mapping_mode="none", where=self._where)
        return plain._fields(_VARIANT_PARTS, parts, wanted, path)

    def _contradiction(self, stored: pa.DataType, wanted: DeltaType, path: tuple[str, ...]) -> LazyDeltaError:
        return CorruptDataError(
            f"the column {_spelled(path)} is {stored} in the file and {arrow_type(wanted)} in the table",
            self._where,
            "the file does not belong to this table's schema; restore it or write its rows again",
        )


def _stored_fields(fields: Iterable[pa.Field], first_leaf: int) -> list[StoredField]:
    found = []
    for field in fields:
        found.append(_stored(field, first_leaf))
        first_leaf += found[-1].leaf_count
    return found


def _stored(field: pa.Field, first_leaf: int) -> StoredField:
    kind = _storage_type(field.type)
    field_id = (field.metadata or {}).get(FIELD_ID)
    return StoredField(
        field.name, kind, None if field_id is None else int(field_id), first_leaf, _leaf_count(kind)
    )


def _leaf_count(kind: pa.DataType) -> int:
    kind = _storage_type(kind)
    if kinds.is_struct(kind):
        return sum(_leaf_count(field.type) for field in kind)
    if kinds.is_map(kind):
        return _leaf_count(kind.key_type) + _leaf_count(kind.item_type)
    return _leaf_count(kind.value_type) if _is_list(kind) else 1


def _storage_type(kind: pa.DataType) -> pa.DataType:
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def _is_list(kind: pa.DataType) -> bool:
    return bool(kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind))


def _has_ids(field: pa.Field) -> bool:
    if FIELD_ID in (field.metadata or {}):
        return True
    kind = _storage_type(field.type)
    return kinds.is_nested(kind) and any(_has_ids(kind.field(at)) for at in range(kind.num_fields))


def _spelled(path: tuple[str, ...]) -> str:
    return repr(".".join(path))
