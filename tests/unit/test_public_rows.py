"""The public face of rows: every way out of a table and of a scan is there and leads to the same rows."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pads
import pytest
from deltalake import write_deltalake

import lazydelta as ld
from lazydelta.errors import InvalidRequestError
from tests.support.row_tables import HOURS, ROWS_A_FILE, Row, all_readings, by_id, readings_table

LATE = [("_event_hour", ">=", "2026021006")]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> ld.Table:
    return ld.open(readings_table(tmp_path_factory.mktemp("readings")))


def late_readings() -> list[Row]:
    return [row for row in all_readings() if row["_event_hour"] >= "2026021006"]


def test_a_table_as_arrow(table: ld.Table) -> None:
    assert by_id(table.to_arrow().to_pylist()) == all_readings()
    assert table.to_arrow(["id"], partitions=LATE).num_rows == 2 * ROWS_A_FILE


def test_a_table_as_a_dataset(table: ld.Table) -> None:
    dataset = table.to_pyarrow_dataset(partitions=LATE)
    assert isinstance(dataset, pads.Dataset)
    assert by_id(dataset.to_table().to_pylist()) == late_readings()


def test_a_table_and_a_scan_as_pandas(table: ld.Table) -> None:
    assert sorted(table.to_pandas(["id"], partitions=LATE)["id"]) == [row["id"] for row in late_readings()]
    assert len(table.scan("value > 5").to_pandas()) == sum(row["value"] > 5 for row in all_readings())


def test_a_table_and_a_scan_as_polars(table: ld.Table) -> None:
    import polars

    frame = table.to_polars(partitions=LATE)
    assert isinstance(frame, polars.LazyFrame)
    assert by_id(frame.collect().to_dicts()) == late_readings()
    found: Any = table.scan("value > 5").to_polars(["id"]).collect()
    assert found.height == sum(row["value"] > 5 for row in all_readings())


def test_the_files_of_a_table_by_a_filter(table: ld.Table) -> None:
    assert len(list(table.file_infos())) == HOURS
    assert len(list(table.file_infos(predicate="_event_hour >= '2026021006'"))) == 2


def test_a_scan_as_batches_and_as_arrow(table: ld.Table) -> None:
    scan = table.scan(limit=5)
    assert isinstance(scan.batches(), ld.LazyRecordBatchIterator)
    assert scan.to_arrow().num_rows == 5
    assert isinstance(scan.estimate(), ld.ScanEstimate)


def test_columns_may_come_from_a_generator_and_nothing_else_odd(table: ld.Table) -> None:
    names = ["id", "_event_hour"]
    assert table.scan().batches(name for name in names).read_all().schema.names == names
    assert table.scan().page(3, columns=(name for name in names)).rows.schema.names == names
    for odd in (5, "id", b"id", [1]):
        with pytest.raises(InvalidRequestError, match="columns is"):
            table.to_arrow(odd)  # type: ignore[arg-type]


def test_a_scan_in_pages(table: ld.Table) -> None:
    scan = table.scan(order="asc")
    first = scan.page(rows=7, columns=["id"])
    assert isinstance(first, ld.Page)
    second = scan.page(rows=7, columns=["id"], after=first.next_token)
    assert [row["id"] for page in (first, second) for row in page.rows.to_pylist()] == list(range(14))
    files = scan.file_page(files=HOURS - 1)
    assert isinstance(files, ld.FilePage)
    last = scan.file_page(files=HOURS - 1, after=files.next_token)
    assert (len(last.files), last.next_token) == (1, None)


def test_a_table_in_sql(table: ld.Table) -> None:
    count = HOURS * ROWS_A_FILE
    assert table.sql("select count(*) from t").fetchall() == [(count,)]
    assert ld.sql("select count(*) from a join b using (id)", a=table, b=table.url).fetchall() == [(count,)]
    assert ld.connect({"readings": table.url}).sql("select max(id) from readings").fetchall() == [
        (count - 1,)
    ]


@pytest.mark.parametrize("value", [10**37, -(10**37), 2**63, -(2**63) - 1])
def test_a_decimal_past_what_delta_rs_tells_of_it_is_found(tmp_path: Path, value: int) -> None:
    write_deltalake(tmp_path, pa.table({"x": pa.array([Decimal(value), Decimal(0)], pa.decimal128(38, 0))}))
    for where in (f"x = {value}", f"x {'>' if value > 0 else '<'} {value // 2}"):
        assert ld.open(tmp_path).scan(where).to_arrow()["x"].to_pylist() == [Decimal(value)]
