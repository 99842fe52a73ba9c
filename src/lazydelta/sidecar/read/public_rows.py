"""Rows of a part in the layout that the scan knows: canonical paths, maps, structs, statistics by path.

Why: after this nobody need know whether a file's row came from a commit, a checkpoint or a sidecar.
Contract: pure, whole batches at a time. Columns are found by role and physical path, never by name. What a
part lacks is left out of `stats_parsed` (unknown, not null); a bound of a narrower type is widened to the
column's type of today, and left out where that is not possible. `deletion_vector` is left out of a batch
where no row has one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
import pyarrow as pa

from lazydelta.log.file_rows import DELETION_VECTOR_TYPE, FILE_COLUMNS, RAW_PATH, STATS_PARSED
from lazydelta.protocol.paths import canonical_paths
from lazydelta.protocol.schema import arrow_type
from lazydelta.protocol.statistics import StatsColumn
from lazydelta.sidecar.format.column_paths import Path
from lazydelta.sidecar.format.conform import widened
from lazydelta.sidecar.format.layout import VECTOR_COLUMNS, field_kind, field_path
from lazydelta.sidecar.read.traversal import ORDER_VALUE, SortColumn

_KINDS = {"min": "minValues", "max": "maxValues", "null_count": "nullCount"}
_Tree = dict[str, "pa.Array | _Tree"]


class RowShape(msgspec.Struct, frozen=True, kw_only=True):
    """What a scan wants to know of each file."""

    columns: tuple[str, ...]  # public ones, without `stats`
    statistics: tuple[StatsColumn, ...] = ()
    order: SortColumn | None = None  # whose values come along as `order_value`


class PartColumns:
    """The columns of one part by their roles, and those of them that a shape needs."""

    def __init__(self, schema: pa.Schema, shape: RowShape) -> None:
        self._shape = shape
        self._by_role = {(field_kind(f), path): f.name for f in schema if (path := field_path(f)) is not None}
        self._fixed = {field.name for field in schema if field_path(field) is None}
        self.names = [name for name in schema.names if name in set(self._needed())]

    @property
    def order_name(self) -> str | None:
        """The column that holds what the rows are ordered by; None where the part has none."""
        order = self._shape.order
        if order is None:
            return None
        return self._by_role.get(("partition" if order.is_partition else "min", order.path))

    def public(self, rows: pa.RecordBatch, root: str) -> pa.RecordBatch:
        """The rows of the part, which have at least the columns `names`, as the scan knows them."""
        arrays = {"path": canonical_paths(rows.column("path"), root)}
        for name in self._shape.columns:
            if name == "partition_values":
                arrays[name] = self._partition_values(rows)
            elif name == "deletion_vector":
                vectors = _deletion_vectors(rows)
                if vectors is not None:
                    arrays[name] = vectors
            elif name == RAW_PATH:
                arrays[name] = rows.column("path")
            elif name != "path":
                arrays[name] = _fixed_column(rows, name)
        if self._shape.order is not None:
            arrays[ORDER_VALUE] = self._order_values(rows, self._shape.order)
        if self._shape.statistics:
            arrays[STATS_PARSED] = self._statistics(rows)
        return pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays))

    def _needed(self) -> list[str]:
        names = ["path"]
        for column in self._shape.columns:
            if column == "partition_values":
                names.extend(self._raw_partitions().values())
            elif column == "deletion_vector":
                names.extend(VECTOR_COLUMNS)
            elif column in self._fixed:
                names.append(column)
        for wanted in self._shape.statistics:
            names.extend(self._statistics_names(wanted).values())
        if self._shape.statistics:
            names.extend(("num_records", "tight_bounds"))
        if self.order_name is not None:
            names.append(self.order_name)
        return names

    def _order_values(self, rows: pa.RecordBatch, order: SortColumn) -> pa.Array:
        name, wanted = self.order_name, arrow_type(order.type)
        values = None if name is None else widened(rows.column(name), wanted, side="min")
        return pa.nulls(rows.num_rows, wanted) if values is None else values

    def _raw_partitions(self) -> dict[str, str]:
        """Physical name → the column that holds what the writer wrote."""
        typed = {path[0]: name for (kind, path), name in self._by_role.items() if kind == "partition"}
        raw = {path[0]: name for (kind, path), name in self._by_role.items() if kind == "raw_partition"}
        return typed | raw

    def _statistics_names(self, wanted: StatsColumn) -> dict[str, str]:
        found = {}
        for kind in _KINDS:
            name = self._by_role.get((kind, wanted.path))
            if name is not None and (kind == "null_count" or wanted.has_bounds):
                found[kind] = name
        return found

    def _partition_values(self, rows: pa.RecordBatch) -> pa.MapArray:
        raw = self._raw_partitions()
        values = [rows.column(name).cast(pa.string()) for name in raw.values()]
        count, width = rows.num_rows, len(raw)
        if width == 0:
            values = [pa.nulls(0, pa.string())]
        by_row = (np.arange(count)[:, None] + count * np.arange(width)).ravel()
        items = values[0] if width == 1 else pa.concat_arrays(values).take(pa.array(by_row, pa.int64()))
        names = pa.array(list(raw), pa.string())
        keys = names.take(pa.array(np.tile(np.arange(width), count), pa.int64()))
        offsets = pa.array(np.arange(count + 1) * width, pa.int32())
        return pa.MapArray.from_arrays(offsets, keys, items)

    def _statistics(self, rows: pa.RecordBatch) -> pa.StructArray:
        tree: _Tree = {"numRecords": rows.column("num_records"), "tightBounds": rows.column("tight_bounds")}
        for wanted in self._shape.statistics:
            for kind, name in self._statistics_names(wanted).items():
                array = rows.column(name)
                if kind != "null_count":
                    array = widened(array, arrow_type(wanted.type), side=kind)
                if array is not None:
                    _put(tree, (_KINDS[kind], *wanted.path), array)
        return _struct(tree, rows.num_rows)


def _fixed_column(rows: pa.RecordBatch, name: str) -> pa.Array:
    if name not in rows.schema.names:
        return pa.nulls(rows.num_rows, FILE_COLUMNS[name])
    return rows.column(name)


def _deletion_vectors(rows: pa.RecordBatch) -> pa.StructArray | None:
    kinds = rows.column(VECTOR_COLUMNS[0])
    if kinds.null_count == rows.num_rows:
        return None
    arrays = [rows.column(name) for name in VECTOR_COLUMNS]
    return pa.StructArray.from_arrays(arrays, fields=list(DELETION_VECTOR_TYPE), mask=kinds.is_null())


def _put(tree: _Tree, path: Path, array: pa.Array) -> None:
    for name in path[:-1]:
        inner = tree.setdefault(name, {})
        assert isinstance(inner, dict), "a leaf is no struct"
        tree = inner
    tree[path[-1]] = array


def _struct(tree: Mapping[str, pa.Array | _Tree], row_count: int) -> pa.StructArray:
    arrays: Sequence[pa.Array] = [
        _struct(child, row_count) if isinstance(child, dict) else child for child in tree.values()
    ]
    return pa.StructArray.from_arrays(arrays, names=list(tree))
