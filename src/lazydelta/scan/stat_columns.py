"""The columns whose statistics are asked for by name, and those statistics as flat Arrow columns.

Contract: names are logical, dots lead inside structs. `min.<col>`, `max.<col>` and `null_count.<col>` carry
the name as it was asked for and the column's type of today. A partition column has its value as both bounds;
its nulls are all rows or none.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from lazydelta.errors import InvalidRequestError
from lazydelta.log.file_rows import STATS_PARSED, deletion_vectors
from lazydelta.predicate.column import column_path
from lazydelta.predicate.columns import resolve_column
from lazydelta.protocol.partition_values import parse_partition_column, raw_partition_column
from lazydelta.protocol.schema import PrimitiveType, StructType, arrow_type
from lazydelta.protocol.statistics import (
    ColumnBounds,
    FileStatistics,
    StatsColumn,
    statistics_from_json,
    statistics_from_struct,
)

_WHERE = "get_stats_for_files()"
_FILE_FIELDS = (
    pa.field("num_records", pa.int64()),
    pa.field("tight_bounds", pa.bool_()),
    pa.field("deleted_rows", pa.int64()),
)
_UNBOUNDED = frozenset({"", "variant", "void"})


class AskedColumn(msgspec.Struct, frozen=True):
    """A column that was asked for."""

    name: str  # as asked for
    wanted: StatsColumn
    type: pa.DataType
    is_partition: bool


def bind_columns(
    names: Sequence[str], schema: StructType, partition_columns: Sequence[str], *, where: str
) -> tuple[AskedColumn, ...]:
    """The columns of the table that the names mean, each name once."""
    _check_names(names)
    partitions = frozenset(partition_columns)
    return tuple(_bound(name, schema, partitions, where) for name in dict.fromkeys(names))


def stats_schema(columns: Sequence[AskedColumn]) -> pa.Schema:
    """The columns of `stats_of`."""
    fields = [*_FILE_FIELDS]
    for column in columns:
        fields += [pa.field(f"{side}.{column.name}", column.type) for side in ("min", "max")]
        fields.append(pa.field(f"null_count.{column.name}", pa.int64()))
    return pa.schema(fields)


def stats_of(rows: pa.RecordBatch, columns: Sequence[AskedColumn], *, time_zone: str) -> pa.RecordBatch:
    """The statistics of files, whatever form their rows have them in."""
    told = _statistics(rows, [column.wanted for column in columns if not column.is_partition])
    arrays: list[pa.Array | None] = [told.num_records, told.tight_bounds, _deleted_rows(rows)]
    for column in columns:
        if column.is_partition:
            bounds = _partition_bounds(rows, column, told.num_records, time_zone)
        else:
            bounds = told.columns.get(column.wanted.path, ColumnBounds())
        arrays += [bounds.min, bounds.max, bounds.null_count]
    schema = stats_schema(columns)
    return pa.RecordBatch.from_arrays(
        [
            pa.nulls(rows.num_rows, field.type) if array is None else array
            for array, field in zip(arrays, schema, strict=True)
        ],
        schema=schema,
    )


def _check_names(names: Sequence[str]) -> None:
    if isinstance(names, str | bytes) or not isinstance(names, Sequence):
        raise InvalidRequestError(f"stat_columns is {names!r}"[:200], _WHERE, 'give a list, as in ["value"]')
    for name in names:
        if not isinstance(name, str):
            raise InvalidRequestError(f"a column is {name!r}"[:200], _WHERE, "name columns by text")


def _bound(name: str, schema: StructType, partitions: frozenset[str], where: str) -> AskedColumn:
    try:
        path = column_path(name)
    except InvalidRequestError as error:
        raise InvalidRequestError(error.what, _WHERE, error.fix) from error
    column = resolve_column(path, schema, partitions, where)
    if not column.has_statistics:
        raise InvalidRequestError(
            f"the column {name} is a struct, and a struct has no statistics of its own",
            where,
            f"name one of its fields, as in {name}.…",
        )
    leaf = dict(schema.leaves())[column.path]
    wanted = StatsColumn(
        path=column.physical_path,
        type=PrimitiveType(column.type_name or "void"),
        is_collated=column.is_collated,
        null_count_only=column.type_name in _UNBOUNDED,
        was_float=column.was_float,
    )
    return AskedColumn(name, wanted, arrow_type(leaf.type), column.is_partition)


def _statistics(rows: pa.RecordBatch, columns: Sequence[StatsColumn]) -> FileStatistics:
    if STATS_PARSED in rows.schema.names:
        return statistics_from_struct(rows.column(STATS_PARSED), columns)
    if "stats" in rows.schema.names:
        return statistics_from_json(rows.column("stats"), columns)
    return FileStatistics(rows.num_rows, None, None, {})


def _deleted_rows(rows: pa.RecordBatch) -> pa.Array:
    vectors = deletion_vectors(rows)
    if vectors is None:
        return pa.repeat(pa.scalar(0, pa.int64()), rows.num_rows)
    return pc.if_else(vectors.is_valid(), pc.struct_field(vectors, "cardinality"), pa.scalar(0, pa.int64()))


def _partition_bounds(
    rows: pa.RecordBatch, column: AskedColumn, num_records: pa.Array | None, time_zone: str
) -> ColumnBounds:
    raw = raw_partition_column(rows.column("partition_values"), column.wanted.path[0])
    values = parse_partition_column(raw, column.wanted.type, time_zone=time_zone)
    if num_records is None:
        num_records = pa.nulls(rows.num_rows, pa.int64())
    null_count = pc.if_else(values.is_valid(), pa.scalar(0, pa.int64()), num_records)
    return ColumnBounds(values, values, null_count)
