"""Parquet files read as the data files of a table, without a log around them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from lazydelta.predicate import bind, parse_where
from lazydelta.protocol.schema import Field, StructType, parse_schema
from lazydelta.rows import DataFile
from lazydelta.rows.loader import RowLoader
from lazydelta.rows.selection import Selection
from lazydelta.settings import Settings
from lazydelta.storage import Deadline, open_storage

WHERE = "the test's table"


def field(name: str, kind: Any, *, nullable: bool = True, **metadata: Any) -> dict[str, Any]:
    """A field of a Delta schema; `id=` and `physical=` are its column mapping."""
    mapping = {
        key: metadata.pop(short)
        for short, key in (("id", "delta.columnMapping.id"), ("physical", "delta.columnMapping.physicalName"))
        if short in metadata
    }
    return {"name": name, "type": kind, "nullable": nullable, "metadata": mapping | metadata}


def struct(*fields: dict[str, Any]) -> dict[str, Any]:
    """A struct of a Delta schema."""
    return {"type": "struct", "fields": list(fields)}


def array(element: Any) -> dict[str, Any]:
    """An array of a Delta schema."""
    return {"type": "array", "elementType": element, "containsNull": True}


def map_of(key: Any, value: Any) -> dict[str, Any]:
    """A map of a Delta schema."""
    return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}


class DataFolder:
    """A folder of Parquet files, and the schema they are read by."""

    def __init__(self, folder: Path, *fields: dict[str, Any], mode: str = "none", **options: Any) -> None:
        """`options`: of `Selection`, such as `partition_columns`."""
        self.folder = folder
        self.schema: StructType = parse_schema(msgspec.json.encode(struct(*fields)).decode(), WHERE)
        self.mode = mode
        self.options = options
        self.storage = open_storage(str(folder), Settings())

    def write(self, rows: pa.Table, name: str = "f.parquet", **options: Any) -> DataFile:
        """The rows as a data file; `options` are pyarrow's."""
        pq.write_table(rows, self.folder / name, **options)
        return self.file(name)

    def file(self, name: str = "f.parquet", **facts: Any) -> DataFile:
        """A file that is there; `facts` are fields of `DataFile`."""
        facts.setdefault("partition_values", {})
        return DataFile(path=name, size=(self.folder / name).stat().st_size, **facts)

    def loader(
        self, columns: list[str] | None = None, *, where: str | None = None, **options: Any
    ) -> RowLoader:
        """A loader of these columns; `options` are its own."""
        fields: tuple[Field, ...] = tuple(
            found for found in self.schema.fields if columns is None or found.name in columns
        )
        chosen = {"partition_columns": frozenset(), "metadata_columns": (), "time_zone": "UTC"} | self.options
        names = tuple(found.name for found in fields) + tuple(chosen["metadata_columns"])
        selection = Selection(output=names, fields=fields, mapping_mode=self.mode, **chosen)
        if where is not None:
            options["predicate"] = bind(
                parse_where(where), self.schema, list(chosen["partition_columns"]), where=WHERE
            )
        # Of its own scope, as a scan's: what another loader read of a file may have been written over since.
        return RowLoader(self.storage.scoped(Deadline()), selection, version=7, **options)

    def read(
        self, file: DataFile | None = None, columns: list[str] | None = None, **options: Any
    ) -> pa.Table:
        """All rows of a file, checked by pyarrow."""
        loader = self.loader(columns, **options)
        batches = [rows for segment in loader.segments(file or self.file()) for rows in loader.load(segment)]
        rows = pa.Table.from_batches(batches, loader.schema)
        rows.validate(full=True)
        return rows
