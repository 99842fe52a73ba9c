"""One live file as an object, for people; `file_batches` gives the same without an object per file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from lazydelta.log.file_rows import FILE_COLUMNS
from lazydelta.protocol.actions import DeletionVector
from lazydelta.protocol.schema import StructType
from lazydelta.scan.values import values_of


class DeltaFile(msgspec.Struct, frozen=True, kw_only=True):
    """A logical file: a data file with its deletion vector, if it has one."""

    path: str  # decoded, relative to the table's root, or an absolute URI outside it
    size: int
    modification_time: int  # ms since 1970
    partition_values: dict[str, str | None]  # by column name, as written in the log
    deletion_vector: DeletionVector | None = None
    stats: str | None = None  # JSON; only where asked for

    @property
    def dv_id(self) -> str | None:
        """What tells logical files of one path apart."""
        return None if self.deletion_vector is None else self.deletion_vector.dv_id


def files_of(rows: pa.RecordBatch) -> Iterator[DeltaFile]:
    """The files of a batch that has the default columns."""
    names = rows.schema.names
    columns = {name: values_of(rows.column(name)) for name in names}
    stats = columns.get("stats", [None] * rows.num_rows)
    for path, size, modified, partitions, vector, text in zip(
        columns["path"],
        columns["size"],
        columns["modification_time"],
        columns["partition_values"],
        columns["deletion_vector"],
        stats,
        strict=True,
    ):
        yield DeltaFile(
            path=path,
            size=size,
            modification_time=modified or 0,
            partition_values=partitions or {},
            deletion_vector=None if vector is None else DeletionVector(**vector),
            stats=text,
        )


def public_rows(rows: pa.RecordBatch, columns: tuple[str, ...], names: Mapping[str, str]) -> pa.RecordBatch:
    """The columns asked for, in that order; partition values under the names users know."""
    arrays = []
    for name in columns:
        if name not in rows.schema.names:
            arrays.append(pa.nulls(rows.num_rows, FILE_COLUMNS[name]))
        elif name == "partition_values" and names:
            arrays.append(_renamed(rows.column(name), names))
        else:
            arrays.append(rows.column(name))
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))


def logical_names(schema: StructType) -> dict[str, str]:
    """Physical name -> name, for columns where they differ."""
    return {field.physical_name: field.name for field in schema.fields if field.physical_name != field.name}


def _renamed(maps: pa.MapArray, names: Mapping[str, str]) -> pa.Array:
    """The maps with other keys."""
    keys = maps.keys
    at = pc.index_in(keys, value_set=pa.array(list(names), keys.type))
    renamed = pc.coalesce(pa.array(list(names.values()), keys.type).take(at), keys)
    offsets = maps.offsets
    if maps.null_count:
        offsets = pc.if_else(pc.invert(maps.is_valid()).cast(pa.bool_()), None, offsets[:-1])
        offsets = pa.concat_arrays([offsets, maps.offsets[-1:]])
    return pa.MapArray.from_arrays(offsets, renamed, maps.items)
