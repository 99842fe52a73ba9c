"""A table that only the delta response format can tell, and one with a change data feed: real data files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake

from tests.support.deletion_vector_writer import stored_vectors
from tests.support.row_tables import Row

FEED = {"delta.enableChangeDataFeed": "true"}
ROWS_A_FILE = 10


def feed_table(folder: Path) -> str:
    """Version 0 creates, 1 appends, 2 updates a row, 3 deletes two, 4 appends again."""
    table = str(folder / "feed")
    write_deltalake(table, _readings(0, 4), partition_by=["day"], configuration=FEED)
    write_deltalake(table, _readings(4, 8), mode="append")
    DeltaTable(table).update(updates={"value": "value + 100"}, predicate="id = 5")
    DeltaTable(table).delete("id = 1 OR id = 6")
    write_deltalake(table, _readings(8, 10), mode="append")
    return table


def mapped_table(folder: Path, *, files: int = 3) -> str:
    """Column mapping by name, partitioned, a deletion vector on every second file: as Spark has it."""
    table = folder / "mapped"
    (table / "_delta_log").mkdir(parents=True)
    adds = [_mapped_add(table, number) for number in range(files)]
    marked = adds[::2]
    for add, vector in zip(marked, stored_vectors(table, [[0, 3]] * len(marked)), strict=True):
        add["deletionVector"] = vector
    head: list[dict[str, Any]] = [
        {
            "protocol": {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": ["columnMapping", "deletionVectors"],
                "writerFeatures": ["columnMapping", "deletionVectors"],
            }
        },
        {
            "metaData": {
                "id": "5fba94ed-9794-4965-ba6e-6ee3c0d22af9",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps({"type": "struct", "fields": _FIELDS}),
                "partitionColumns": ["day"],
                "configuration": {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "3"},
                "createdTime": 0,
            }
        },
    ]
    log = table / "_delta_log" / f"{0:020}.json"
    log.write_text("\n".join(json.dumps(line) for line in [*head, *({"add": add} for add in adds)]), "utf-8")
    return str(table)


def vector_feed_table(folder: Path) -> str:
    """A feed without change files: version 1 deletes rows 2 and 7 by a deletion vector, as Spark does."""
    table = folder / "vector_feed"
    (table / "_delta_log").mkdir(parents=True)
    pq.write_table(pa.table({"id": list(range(ROWS_A_FILE))}), table / "part.parquet")
    size = (table / "part.parquet").stat().st_size
    file = {"path": "part.parquet", "partitionValues": {}, "size": size, "dataChange": True}
    add = {**file, "modificationTime": 0, "stats": json.dumps({"numRecords": ROWS_A_FILE})}
    features = {
        "readerFeatures": ["deletionVectors"],
        "writerFeatures": ["deletionVectors", "changeDataFeed"],
    }
    field = {"name": "id", "type": "long", "nullable": True, "metadata": {}}
    metadata = {
        "id": "0f0d3a2c-0b3f-4d0c-9a57-5a9d2f6b7c11",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": [field]}),
        "partitionColumns": [],
        "configuration": {**FEED, "delta.enableDeletionVectors": "true"},
        "createdTime": 0,
    }
    (vector,) = stored_vectors(table, [[2, 7]])
    commits = [
        [
            {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}},
            {"metaData": metadata},
            {"add": add},
        ],
        [
            {"remove": {**file, "deletionTimestamp": 1, "extendedFileMetadata": True}},
            {"add": {**add, "deletionVector": vector}},
        ],
    ]
    for version, lines in enumerate(commits):
        path = table / "_delta_log" / f"{version:020}.json"
        path.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    return str(table)


def mapped_rows(*, files: int = 3) -> list[Row]:
    """The rows of it that are not deleted."""
    return [
        {"id": number * ROWS_A_FILE + row, "text": f"t{row}", "day": f"2026-02-{number + 1:02}"}
        for number in range(files)
        for row in range(ROWS_A_FILE)
        if number % 2 or row not in (0, 3)
    ]


def _field(name: str, number: int, kind: str) -> dict[str, Any]:
    mapping = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"col-{number}"}
    return {"name": name, "type": kind, "nullable": True, "metadata": mapping}


_FIELDS = [_field("id", 1, "long"), _field("text", 2, "string"), _field("day", 3, "date")]


def _mapped_add(table: Path, number: int) -> dict[str, Any]:
    ids = [number * ROWS_A_FILE + row for row in range(ROWS_A_FILE)]
    schema = pa.schema(
        [
            pa.field("col-1", pa.int64(), metadata={"PARQUET:field_id": "1"}),
            pa.field("col-2", pa.string(), metadata={"PARQUET:field_id": "2"}),
        ]
    )
    rows = pa.table([ids, [f"t{row}" for row in range(ROWS_A_FILE)]], schema=schema)
    name = f"part-{number}.parquet"
    pq.write_table(rows, table / name)
    return {
        "path": name,
        "partitionValues": {"col-3": f"2026-02-{number + 1:02}"},
        "size": (table / name).stat().st_size,
        "modificationTime": 0,
        "dataChange": True,
        "stats": json.dumps(
            {"numRecords": ROWS_A_FILE, "minValues": {"col-1": ids[0]}, "maxValues": {"col-1": ids[-1]}}
        ),
    }


def _readings(first: int, end: int) -> pa.Table:
    ids = list(range(first, end))
    return pa.table({"id": ids, "day": [f"d{id_ % 2}" for id_ in ids], "value": [float(id_) for id_ in ids]})
