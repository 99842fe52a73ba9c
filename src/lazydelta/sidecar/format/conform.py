"""Rows of an older part in the layout of today: what schema evolution asks of a merge.

Contract: pure. Columns are found by role and physical path, never by name. A column that the part lacks is
null; one of a narrower type is widened to what the log's own text would be read as now (a float to the outer
of its readings, protocol/float_readings.py); a type that does not widen says nothing any more. Partition
values are read again from what the writer wrote.
Spec: PROTOCOL.md, "Type Widening".
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from lazydelta.protocol.arrow_casts import cast_where_possible
from lazydelta.protocol.float_readings import widened_floats
from lazydelta.protocol.partition_values import parse_partition_column
from lazydelta.sidecar.format.column_paths import Path
from lazydelta.sidecar.format.layout import PartitionColumn, SidecarLayout, field_kind, field_path

_Role = tuple[str, Path]


def conform(rows: pa.RecordBatch, layout: SidecarLayout) -> pa.RecordBatch:
    """The rows in this layout; `rows` has a part's schema with its fields' metadata."""
    if rows.schema.equals(layout.schema, check_metadata=True):
        return rows
    found = {_role(field): rows.column(at) for at, field in enumerate(rows.schema)}
    partitions: dict[Path, PartitionColumn] = {
        (column.physical_name,): column for column in layout.partitions
    }
    arrays = []
    for field in layout.schema:
        kind, path = _role(field)
        if kind in {"partition", "raw_partition"}:
            array = _partition_values(found, partitions[path], field)
        else:
            array = widened(found.get((kind, path)), field.type, side=kind)
        arrays.append(pa.nulls(rows.num_rows, field.type) if array is None else array)
    return pa.RecordBatch.from_arrays(arrays, schema=layout.schema)


def widened(array: pa.Array | None, wanted: pa.DataType, *, side: str) -> pa.Array | None:
    """Bounds of one `side`, "min" or "max", in a wider type; None where the type does not widen."""
    if array is None or array.type.equals(wanted):
        return array
    if not _widens(array.type, wanted):
        return None
    if pa.types.is_floating(array.type):
        return widened_floats(array, is_min=side == "min")
    return cast_where_possible(array, wanted)


def _role(field: pa.Field) -> _Role:
    path = field_path(field)
    return (f"column {field.name}", ()) if path is None else (field_kind(field) or "", path)


def _partition_values(
    found: Mapping[_Role, pa.Array], column: PartitionColumn, field: pa.Field
) -> pa.Array | None:
    path = (column.physical_name,)
    typed = found.get(("partition", path))
    if typed is not None and typed.type.equals(field.type) and field_kind(field) == "partition":
        return typed
    raw = found.get(("raw_partition", path), typed)
    if raw is None or not pa.types.is_string(raw.type):
        return None
    return raw if pa.types.is_string(field.type) else parse_partition_column(raw, column.type)


def _widens(before: pa.DataType, after: pa.DataType) -> bool:
    """Whether bounds of one type bound values of the other: order and values stay."""
    if pa.types.is_integer(before):
        if pa.types.is_integer(after):
            return bool(before.bit_width < after.bit_width)
        return bool(pa.types.is_decimal(after) or (pa.types.is_float64(after) and before.bit_width < 64))
    if pa.types.is_decimal(before):
        is_wider = pa.types.is_decimal(after) and after.scale >= before.scale
        return bool(is_wider and after.precision >= before.precision)
    if pa.types.is_date(before):
        return bool(pa.types.is_timestamp(after) and after.tz is None)
    return bool(pa.types.is_float32(before) and pa.types.is_float64(after))
