"""Tables that other engines wrote, row by row.

Every golden table with known rows must have exactly those, under the table's own schema; every other one must
read, or be refused for the reason given here.
"""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lazydelta as ld
from lazydelta.errors import CorruptDataError
from tests.golden.test_golden_tables import FOLDER, READABLE, needs_golden, table_folder

WITH_ROWS = [name for name in READABLE if (FOLDER / name / "expected").is_dir()]
WITHOUT_ROWS = [name for name in READABLE if name not in WITH_ROWS]
# Logs alone: the tables were made to test the log, and their data files were never there.
WITHOUT_DATA_FILES = re.compile(r"canonicalized-paths|deltalog-|log-replay-special-characters-b|crc-full")

pytestmark = needs_golden


@pytest.mark.parametrize("name", WITH_ROWS)
def test_a_golden_table_has_exactly_the_rows_it_must_have(name: str) -> None:
    table = ld.open(str(table_folder(name)))
    ours = rows_of(table)
    expected = expected_rows(FOLDER / name / "expected")
    assert sorted(ours.column_names) == sorted(expected.column_names)
    columns = ours.column_names
    assert counted(ours.select(columns)) == counted(expected.select(columns))


@pytest.mark.parametrize("name", WITH_ROWS)
def test_each_column_of_a_golden_table_reads_alone_as_it_does_beside_the_others(name: str) -> None:
    table = ld.open(str(table_folder(name)))
    whole = rows_of(table)
    for column in whole.column_names:
        alone = rows_of(table, [column])
        assert alone.schema == pa.schema([whole.schema.field(column)])
        assert counted(alone) == counted(whole.select([column]))


@pytest.mark.parametrize("name", WITHOUT_ROWS)
def test_a_golden_table_without_known_rows_reads_as_many_as_its_statistics_count(name: str) -> None:
    table = ld.open(str(table_folder(name)))
    if WITHOUT_DATA_FILES.search(name) and list(table.scan().files()):
        with pytest.raises(CorruptDataError, match="is not there"):
            rows_of(table)
        return
    rows = rows_of(table)
    counts = [file_rows(table_folder(name), file) for file in table.scan().files()]
    assert rows.num_rows == sum(counts)


def rows_of(table: ld.Table, columns: list[str] | None = None) -> pa.Table:
    """All rows, as one table that pyarrow finds nothing wrong with."""
    batches = list(table.scan().batches(columns))
    schema = pa.schema([field for field in table.schema if columns is None or field.name in columns])
    rows = pa.Table.from_batches(batches, schema)  # an error where a batch has another schema
    rows.validate(full=True)
    return rows


def file_rows(root: Path, file: ld.DeltaFile) -> int:
    """Rows of a file by its own footer, less those that its deletion vector lists by the log."""
    deleted = 0 if file.deletion_vector is None else file.deletion_vector.cardinality
    return int(pq.read_metadata(root / file.path).num_rows) - deleted


def expected_rows(folder: Path) -> pa.Table:
    parts = [
        pq.ParquetFile(path, coerce_int96_timestamp_unit="us").read()
        for path in sorted(folder.rglob("*.parquet"))
    ]
    return pa.concat_tables(parts)


def counted(rows: pa.Table) -> Counter[str]:
    """How often each row comes; order does not matter."""
    return Counter(repr({name: plain(value) for name, value in row.items()}) for row in rows.to_pylist())


def plain(value: Any) -> Any:
    """Instants without their zone, which Parquet's INT96 does not note; maps in any order."""
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(dt.UTC).replace(tzinfo=None)
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        inner = [plain(item) for item in value]
        return sorted(inner, key=repr) if inner and isinstance(inner[0], tuple) else inner
    return tuple(plain(item) for item in value) if isinstance(value, tuple) else value
