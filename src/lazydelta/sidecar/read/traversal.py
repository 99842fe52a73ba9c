"""The order of an ordered scan: by a column of the table, then by path, upwards or downwards.

Why: rows of a sidecar lie in that order already; rows of commits and checkpoints must be given the same keys.
Contract: keys are the columns `order_value` (absent where the order is by path alone) and `raw_path`, the
path as the log spells it. A partition column orders by its value, any other by the file's minimum; a file
without one comes first, or last in descending order.
"""

from __future__ import annotations

import msgspec
import pyarrow as pa

from lazydelta.log.file_rows import RAW_PATH, STATS_PARSED
from lazydelta.protocol.actions import Metadata
from lazydelta.protocol.arrow_casts import cast_where_possible
from lazydelta.protocol.partition_values import parse_partition_column, raw_partition_column
from lazydelta.protocol.schema import Field, PrimitiveType, StructType, arrow_type
from lazydelta.protocol.statistics import StatsColumn, statistics_from_json, statistics_from_struct
from lazydelta.sidecar.format.column_paths import Path, physical_leaves
from lazydelta.sidecar.format.conform import widened
from lazydelta.sidecar.format.layout import layout_of
from lazydelta.sidecar.format.manifest import Manifest

ORDER_VALUE = "order_value"


class SortColumn(msgspec.Struct, frozen=True, kw_only=True):
    """The table's column that files are ordered by."""

    path: Path  # physical
    name: str  # as users know it
    type: PrimitiveType
    is_partition: bool
    is_collated: bool = False
    was_float: bool = False

    @property
    def statistics(self) -> StatsColumn:
        """What is read of a file's statistics."""
        return StatsColumn(self.path, self.type, is_collated=self.is_collated, was_float=self.was_float)


class Traversal(msgspec.Struct, frozen=True, kw_only=True):
    """One order."""

    column: SortColumn | None  # None: by path alone
    descending: bool

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that rows are sorted by."""
        return (RAW_PATH,) if self.column is None else (ORDER_VALUE, RAW_PATH)

    @property
    def key_fields(self) -> list[pa.Field]:
        """Their types."""
        path = pa.field(RAW_PATH, pa.string())
        return [path] if self.column is None else [pa.field(ORDER_VALUE, arrow_type(self.column.type)), path]

    @property
    def reversed(self) -> Traversal:
        """The same order the other way round."""
        return msgspec.structs.replace(self, descending=not self.descending)

    def __str__(self) -> str:
        by = "path" if self.column is None else f"{self.column.name}, then path"
        return f"by {by}, {'descending' if self.descending else 'ascending'}"


def traversal_by_rule(metadata: Metadata, schema: StructType, *, descending: bool) -> Traversal:
    """The order that a sidecar of this table would have by default."""
    layout = layout_of(metadata, schema, stats_paths=(), time_column=None)
    path = layout.order_path
    column = None if path is None else _sort_column(path, metadata, schema, layout.order_type)
    return Traversal(column=column, descending=descending)


def traversal_by_manifest(
    manifest: Manifest, metadata: Metadata, schema: StructType, *, descending: bool
) -> Traversal | None:
    """The order that the rows of a sidecar have; None where it does not tell, or not in terms of today."""
    if manifest.order_column is None:
        return Traversal(column=None, descending=descending)
    path = next((part.bounds[0].path for part in manifest.parts if part.bounds), None)
    if path is None:
        return None
    column = _sort_column(path, metadata, schema, manifest.order_type)
    return None if column is None else Traversal(column=column, descending=descending)


def traversal_by_path(
    path: Path, type_name: str | None, metadata: Metadata, schema: StructType, *, descending: bool
) -> Traversal | None:
    """The order by the column of that physical path; None where there is none of that type."""
    column = _sort_column(path, metadata, schema, type_name)
    return None if column is None else Traversal(column=column, descending=descending)


def with_keys(rows: pa.RecordBatch, column: SortColumn | None) -> pa.RecordBatch:
    """Rows of the log, which have `raw_path` and what the column needs, with `order_value` besides."""
    if column is None or ORDER_VALUE in rows.schema.names:
        return rows
    return rows.append_column(ORDER_VALUE, _order_values(rows, column))


def _sort_column(
    path: Path, metadata: Metadata, schema: StructType, type_name: str | None
) -> SortColumn | None:
    """The column in its type of today; None where there is none, or the older type's values do not follow."""
    if not path:
        return None
    fields = [schema.field(name) for name in metadata.partition_columns]
    partitions = {(field.physical_name,) for field in fields if field is not None}
    leaf = dict(physical_leaves(schema)).get(path)
    type_ = _type_today(leaf, type_name)
    if type_ is None:
        return None
    return SortColumn(
        path=path,
        name=_logical_name(path, schema),
        type=type_,
        is_partition=path in partitions,
        is_collated=leaf is not None and leaf.is_collated,
        was_float=leaf is not None and leaf.was_float,
    )


def _type_today(leaf: Field | None, type_name: str | None) -> PrimitiveType | None:
    before = None if type_name is None else PrimitiveType(type_name)
    if leaf is None or before is None or leaf.type == before:
        return before
    if not isinstance(leaf.type, PrimitiveType):
        return None
    nothing = pa.nulls(0, arrow_type(before))
    return None if widened(nothing, arrow_type(leaf.type), side="min") is None else leaf.type


def _logical_name(path: Path, schema: StructType) -> str:
    names: list[str] = []
    inside: StructType | None = schema
    for physical in path:
        fields = () if inside is None else inside.fields
        field = next((field for field in fields if field.physical_name == physical), None)
        names.append(physical if field is None else field.name)
        inside = field.type if field is not None and isinstance(field.type, StructType) else None
    return ".".join(names)


def _order_values(rows: pa.RecordBatch, column: SortColumn) -> pa.Array:
    wanted = arrow_type(column.type)
    if column.is_partition:
        raw = raw_partition_column(rows.column("partition_values"), column.path[0])
        values = parse_partition_column(raw, column.type)
    else:
        values = _minima(rows, column.statistics)
    cast = None if values is None else cast_where_possible(values, wanted)
    return pa.nulls(rows.num_rows, wanted) if cast is None else cast


def _minima(rows: pa.RecordBatch, column: StatsColumn) -> pa.Array | None:
    if STATS_PARSED in rows.schema.names:
        return statistics_from_struct(rows.column(STATS_PARSED), [column]).columns[column.path].min
    if "stats" in rows.schema.names:
        return statistics_from_json(rows.column("stats"), [column]).columns[column.path].min
    return None
