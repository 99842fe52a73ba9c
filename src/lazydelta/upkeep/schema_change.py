"""Whether parts written under an older schema can serve a newer one.

Contract: pure. Columns that came or went are no obstacle: what a part lacks is unknown. A column that changed
its type in a way that keeps order and values (PROTOCOL.md, "Type Widening") is none either; any other is.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lazydelta.protocol.actions import Metadata
from lazydelta.protocol.schema import DeltaType, PrimitiveType, StructType, arrow_type
from lazydelta.sidecar.format.column_paths import physical_leaves


def unbridgeable_change(
    old_metadata: Metadata, old_schema: StructType, metadata: Metadata, schema: StructType
) -> str | None:
    """The first change that older parts cannot follow, in words; None if there is none."""
    if _partitions(old_metadata, old_schema) != _partitions(metadata, schema):
        return "the partition columns changed"
    before = dict(physical_leaves(old_schema))
    for path, field in physical_leaves(schema):
        if path in before and not _bridges(before[path].type, field.type):
            return f"the type of the column {'.'.join(path)} changed and does not widen"
    return None


def _partitions(metadata: Metadata, schema: StructType) -> list[tuple[str, DeltaType | None]]:
    fields = [(name, schema.field(name)) for name in metadata.partition_columns]
    return [(name, None) if field is None else (field.physical_name, field.type) for name, field in fields]


def _bridges(before: DeltaType, after: DeltaType) -> bool:
    if before == after:
        return True
    if not isinstance(before, PrimitiveType) or not isinstance(after, PrimitiveType):
        return False
    return _widens(arrow_type(before), arrow_type(after))


def _widens(before: pa.DataType, after: pa.DataType) -> bool:
    found: bool = _is_wider(before, after)
    return found


def _is_wider(before: pa.DataType, after: pa.DataType) -> Any:  # Any: pyarrow has no types
    if pa.types.is_integer(before):
        if pa.types.is_integer(after):
            return before.bit_width < after.bit_width
        return pa.types.is_decimal(after) or (pa.types.is_float64(after) and before.bit_width < 64)
    if pa.types.is_decimal(before):
        is_deep = pa.types.is_decimal(after) and after.scale >= before.scale
        return is_deep and after.precision - after.scale >= before.precision - before.scale
    if pa.types.is_date(before):
        return pa.types.is_timestamp(after) and after.tz is None
    return pa.types.is_float32(before) and pa.types.is_float64(after)
