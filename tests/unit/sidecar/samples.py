"""Tables, layouts, rows and parts for tests of the sidecar's format."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from lazydelta.log import rows_from_adds
from lazydelta.protocol.actions import Add, Metadata
from lazydelta.protocol.schema import StructType, parse_schema
from lazydelta.settings import build_settings
from lazydelta.sidecar import (
    BUILD_COLUMNS,
    Binding,
    BoundFile,
    PartFacts,
    PartShape,
    SidecarConfig,
    SidecarLayout,
    WrittenPart,
    configured_stats_paths,
    layout_of,
    rows_per_part,
    sort_keys,
    typed_rows,
    write_part,
)
from lazydelta.storage import Storage, open_storage
from tests.support import actions

ROOT = "file:///tables/t"
BUILD = "0123456789abcdef"
# One column of every kind that statistics are kept for.
EVERY_TYPE: dict[str, Any] = {
    "text": "string",
    "big": "long",
    "whole": "integer",
    "small": "short",
    "tiny": "byte",
    "ratio": "float",
    "real": "double",
    "flag": "boolean",
    "blob": "binary",
    "day": "date",
    "moment": "timestamp",
    "clock": "timestamp_ntz",
    "money": "decimal(10,2)",
    "fine": "decimal(38,18)",
    "place": {"city": "string", "point": {"x": "double", "a.b": "long"}},
    "list": ["long"],
    "dict": ("string", "long"),
}


def delta_type(given: Any) -> Any:
    """A type as schema JSON: a name, a dictionary for a struct, a list for an array, a pair for a map."""
    if isinstance(given, str):
        return given
    if isinstance(given, Mapping):
        return {"type": "struct", "fields": [_field(name, of) for name, of in given.items()]}
    if isinstance(given, list):
        return {"type": "array", "elementType": delta_type(given[0]), "containsNull": True}
    key, value = given
    return {"type": "map", "keyType": key, "valueType": delta_type(value), "valueContainsNull": True}


def table_of(
    columns: Mapping[str, Any],
    *,
    partition_columns: Sequence[str] = (),
    configuration: Mapping[str, str] | None = None,
    once_float: Sequence[str] = (),
) -> tuple[Metadata, StructType]:
    """Metadata and schema of a table; `once_float` names columns that were widened from float to double."""
    type_ = delta_type(dict(columns))
    for field in type_["fields"]:
        if field["name"] in once_float:
            change = {"fromType": "float", "toType": "double"}
            field["metadata"] = {"delta.typeChanges": [change]}
    text = json.dumps(type_)
    raw = actions.metadata(text, partition_columns=partition_columns, configuration=configuration)
    return msgspec.convert(raw, Metadata), parse_schema(text, ROOT)


def layout_for(
    columns: Mapping[str, Any],
    *,
    partition_columns: Sequence[str] = (),
    configuration: Mapping[str, str] | None = None,
    time_column: str | None = None,
    once_float: Sequence[str] = (),
) -> SidecarLayout:
    """The layout with all configured statistics."""
    metadata, schema = table_of(
        columns, partition_columns=partition_columns, configuration=configuration, once_float=once_float
    )
    paths = configured_stats_paths(metadata, schema)
    return layout_of(metadata, schema, stats_paths=paths, time_column=time_column)


def rows_of(adds: Sequence[actions.Action], layout: SidecarLayout) -> pa.RecordBatch:
    """The adds as typed rows, in the same order."""
    parsed = [msgspec.convert(_as_log(add), Add) for add in adds]
    return typed_rows(rows_from_adds(parsed, (*BUILD_COLUMNS, "stats"), ROOT), layout)


def sorted_rows(rows: pa.RecordBatch, layout: SidecarLayout) -> pa.RecordBatch:
    """In the order of a part, by the dumbest means."""
    keys = [name for name, _ in sort_keys(layout)]
    values = list(zip(*(rows.column(name).to_pylist() for name in keys), strict=True))

    def place(at: int) -> tuple[Any, ...]:
        *order, path = values[at]
        return (*((value is not None, value) for value in order), path.encode())

    return rows.take(pa.array(sorted(range(rows.num_rows), key=place), pa.int64()))


def written(
    rows: pa.RecordBatch,
    layout: SidecarLayout,
    *,
    row_group_rows: int = 10_000,
    is_tiered: bool | None = None,
    number: int = 0,
) -> WrittenPart:
    """One part of these rows, which are sorted already."""
    config = SidecarConfig(row_group_rows=row_group_rows)
    shape = rows_per_part(layout, rows, config)
    if is_tiered is not None:
        shape = PartShape(row_groups=shape.row_groups, rows=shape.rows, is_tiered=is_tiered)
    facts = part_facts(number=number, num_files=rows.num_rows)
    return write_part(rows_in_slices(rows), layout=layout, facts=facts, config=config, shape=shape)


def rows_in_slices(rows: pa.RecordBatch, slice_rows: int = 7) -> list[pa.RecordBatch]:
    """The rows as a stage hands them on, cut where no row group ends."""
    return [rows.slice(at, slice_rows) for at in range(0, rows.num_rows, slice_rows)]


def part_facts(*, number: int = 0, num_files: int = 1) -> PartFacts:
    """The facts of a part of checkpoint 7."""
    return PartFacts(
        version=7,
        build=BUILD,
        number=number,
        num_files=num_files,
        table_id="t",
        binding=binding_of(num_files),
    )


def binding_of(num_files: int) -> Binding:
    """A binding to nothing in particular."""
    commit = BoundFile(name=f"{7:020}.json", size_bytes=10, head_sha256="f" * 64)
    checkpoint = BoundFile(name=f"{7:020}.checkpoint.parquet", size_bytes=20)
    return Binding(commit=commit, checkpoint=(checkpoint,), num_files=num_files, total_bytes=0)


def storage_at(folder: Path) -> Storage:
    """The folder as a store."""
    return open_storage(str(folder), build_settings({}, environment={}))


def _field(name: str, of: Any) -> dict[str, Any]:
    return {"name": name, "type": delta_type(of), "nullable": True, "metadata": {}}


def _as_log(add: actions.Action) -> actions.Action:
    stats = add.get("stats")
    return add | {"stats": json.dumps(stats)} if isinstance(stats, dict) else add
