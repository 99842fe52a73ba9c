"""Rows of small tables that delta-rs wrote."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

import lazydelta as ld
from lazydelta.errors import CorruptDataError, InvalidRequestError


@pytest.fixture
def table(tmp_path: Path) -> str:
    """Two commits of three rows, partitioned by day."""
    for first in (0, 3):
        rows = pa.table(
            {"id": [first, first + 1, first + 2], "day": [f"d{first}"] * 3, "v": [0.5, None, 2.0]}
        )
        write_deltalake(str(tmp_path / "t"), rows, mode="append", partition_by=["day"])
    return str(tmp_path / "t")


def rows_of(scan: ld.Scan, columns: list[str] | None = None) -> list[dict[str, object]]:
    return [row for batch in scan.batches(columns) for row in batch.to_pylist()]


def test_rows_have_the_columns_of_the_table_newest_files_first(table: str) -> None:
    rows = rows_of(ld.open(table).scan())
    assert [row["id"] for row in rows] == [3, 4, 5, 0, 1, 2]
    assert rows[0] == {"id": 3, "day": "d3", "v": 0.5}


def test_the_filter_is_exact_and_the_limit_counts_rows(table: str) -> None:
    assert [row["id"] for row in rows_of(ld.open(table).scan("v > 1"))] == [5, 2]
    assert [row["id"] for row in rows_of(ld.open(table).scan("v > 1", limit=1))] == [5]


def test_columns_are_chosen_and_ordered_and_the_filter_may_name_others(table: str) -> None:
    rows = rows_of(ld.open(table).scan("day = 'd0'"), ["v", "id"])
    assert [list(row) for row in rows] == [["v", "id"]] * 3
    assert [row["id"] for row in rows] == [0, 1, 2]


def test_an_unknown_column_is_told_with_the_nearest_name(table: str) -> None:
    with pytest.raises(InvalidRequestError) as told:
        rows_of(ld.open(table).scan(), ["dya"])
    assert "did you mean day?" in told.value.fix


def test_a_missing_data_file_is_named_with_its_version(table: str) -> None:
    for path in Path(table).glob("day=d0/*.parquet"):
        path.unlink()
    with pytest.raises(CorruptDataError) as told:
        rows_of(ld.open(table).scan())
    assert "version 1" in told.value.what
    assert "day=d0/" in told.value.where
