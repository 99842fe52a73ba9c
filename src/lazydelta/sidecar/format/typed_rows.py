"""Rows of the log as rows of a sidecar part: typed statistics, typed partition values, flat columns.

Why: this is done once per file when the sidecar is written, so that no scan parses statistics again.
Contract: pure, whole batches at a time. Bounds are as the writer left them; what does not parse is null and
says nothing. `path` is the log's own spelling, so that a table that was copied means its own files.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from lazydelta.log.file_rows import DELETION_VECTOR_TYPE, FILE_COLUMNS, RAW_PATH, STATS_PARSED
from lazydelta.protocol.arrow_casts import cast_where_possible
from lazydelta.protocol.partition_values import parse_partition_column, raw_partition_column
from lazydelta.protocol.statistics import (
    ColumnBounds,
    FileStatistics,
    statistics_from_json,
    statistics_from_struct,
)
from lazydelta.sidecar.format.layout import VECTOR_COLUMNS, SidecarLayout

# What to ask the log room for. Statistics come on top, in the form that a file has them: by `stats_paths` of
# a `RowRequest`. A reader of commits alone asks for "stats" itself.
BUILD_COLUMNS = (
    RAW_PATH,
    "size",
    "modification_time",
    "partition_values",
    "deletion_vector",
    "tags",
    "base_row_id",
    "default_row_commit_version",
    "clustering_provider",
)
_PLAIN = ("size", "modification_time", "base_row_id", "default_row_commit_version", "clustering_provider")


def typed_rows(rows: pa.RecordBatch, layout: SidecarLayout) -> pa.RecordBatch:
    """The rows in the layout of a part, in the same order."""
    columns = {"path": rows.column(RAW_PATH)}
    for name in (*_PLAIN, "tags"):
        columns[name] = _column(rows, name)
    columns.update(_vector_columns(rows))
    columns.update(_partition_columns(rows, layout))
    columns.update(_statistics_columns(_statistics(rows, layout), layout))
    arrays = [_fitting(columns[field.name], field, rows.num_rows) for field in layout.schema]
    return pa.RecordBatch.from_arrays(arrays, schema=layout.schema)


def _fitting(column: pa.Array | None, field: pa.Field, row_count: int) -> pa.Array:
    """The column in the field's type; null where there is none, or where a value does not convert."""
    cast = None if column is None else cast_where_possible(column, field.type)
    return pa.nulls(row_count, field.type) if cast is None else cast


def _column(rows: pa.RecordBatch, name: str) -> pa.Array:
    if name in rows.schema.names:
        return rows.column(name)
    return pa.nulls(rows.num_rows, FILE_COLUMNS[name])


def _vector_columns(rows: pa.RecordBatch) -> Iterator[tuple[str, pa.Array]]:
    vectors = rows.column("deletion_vector") if "deletion_vector" in rows.schema.names else None
    for at, (name, field) in enumerate(zip(VECTOR_COLUMNS, DELETION_VECTOR_TYPE, strict=True)):
        # The kernel, not `StructArray.field`: a child under a null parent is null.
        values = pa.nulls(rows.num_rows, field.type) if vectors is None else pc.struct_field(vectors, [at])
        yield name, values


def _partition_columns(rows: pa.RecordBatch, layout: SidecarLayout) -> Iterator[tuple[str, pa.Array]]:
    values = _column(rows, "partition_values")
    for column in layout.partitions:
        raw = raw_partition_column(values, column.physical_name)
        if column.raw_column is None:
            yield column.column, raw
        else:
            yield column.raw_column, raw
            yield column.column, parse_partition_column(raw, column.type)


def _statistics(rows: pa.RecordBatch, layout: SidecarLayout) -> FileStatistics | None:
    """From the JSON where the batch has it, else from the typed form; row by row where it has both."""
    wanted = [column.wanted for column in layout.statistics]
    stats = rows.column("stats") if "stats" in rows.schema.names else None
    parsed = rows.column(STATS_PARSED) if STATS_PARSED in rows.schema.names else None
    if parsed is None:
        return None if stats is None else statistics_from_json(stats, wanted)
    if stats is None or stats.null_count == len(stats):
        return statistics_from_struct(parsed, wanted)
    from_json = statistics_from_json(stats, wanted)
    if stats.null_count == 0:
        return from_json
    return _where_absent(stats, from_json, statistics_from_struct(parsed, wanted))


def _where_absent(stats: pa.Array, first: FileStatistics, second: FileStatistics) -> FileStatistics:
    """The first; for rows without JSON the second."""
    has_json = stats.is_valid()

    def chosen(left: pa.Array | None, right: pa.Array | None) -> pa.Array | None:
        if left is None or right is None:
            return left if right is None else right
        return pc.if_else(has_json, left, right)

    columns = {
        path: ColumnBounds(
            chosen(bounds.min, second.columns[path].min),
            chosen(bounds.max, second.columns[path].max),
            chosen(bounds.null_count, second.columns[path].null_count),
        )
        for path, bounds in first.columns.items()
    }
    return FileStatistics(
        first.row_count,
        chosen(first.num_records, second.num_records),
        chosen(first.tight_bounds, second.tight_bounds),
        columns,
    )


def _statistics_columns(
    statistics: FileStatistics | None, layout: SidecarLayout
) -> Iterator[tuple[str, pa.Array | None]]:
    yield "num_records", None if statistics is None else statistics.num_records
    yield "tight_bounds", None if statistics is None else statistics.tight_bounds
    nothing = ColumnBounds()
    for column in layout.statistics:
        bounds = nothing if statistics is None else statistics.columns[column.path]
        yield column.null_count_column, bounds.null_count
        if column.min_column is not None and column.max_column is not None:
            yield column.min_column, bounds.min
            yield column.max_column, bounds.max
