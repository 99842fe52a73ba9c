"""The seeds' tests of streaming execution: parity, descending order, residual filter, limit pushdown."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

import lazydelta as ld
from lazydelta.errors import InvalidRequestError
from tests.support.row_tables import (
    HOURS,
    ROWS_A_FILE,
    Row,
    all_readings,
    by_id,
    eventually,
    readings_table,
    rows_of,
)

FILTERS = [
    None,
    "value > 5",
    "device is null",
    "device = 'sensor-3' and value < 4",
    "_event_hour >= '2026021004'",
    "_event_hour = '2026021002' and value > 9",
    "id < 0",
]
LONG = pytest.mark.long("more sizes of what is read ahead or a page, or a table without a checkpoint")
KEPT = {
    None: lambda _: True,
    "value > 5": lambda row: row["value"] > 5,
    "device is null": lambda row: row["device"] is None,
    "device = 'sensor-3' and value < 4": lambda row: row["device"] == "sensor-3" and row["value"] < 4,
    "_event_hour >= '2026021004'": lambda row: row["_event_hour"] >= "2026021004",
    "_event_hour = '2026021002' and value > 9": lambda row: (
        row["_event_hour"] == "2026021002" and row["value"] > 9
    ),
    "id < 0": lambda _: False,
}


@pytest.fixture(scope="module", params=[pytest.param("commits", marks=LONG), "checkpoint", "sidecar"])
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ld.Table:
    """The same files told by commits, by a checkpoint and a tail, by a sidecar and a tail."""
    at = None if request.param == "commits" else HOURS - 3
    folder = tmp_path_factory.mktemp(request.param)
    return ld.open(readings_table(folder, checkpoint_at=at, sidecar=request.param == "sidecar"))


@pytest.mark.parametrize("where", FILTERS)
def test_parity_streaming_equals_materialized(table: ld.Table, where: str | None) -> None:
    scan = table.scan(where)
    streamed = rows_of(scan)
    assert streamed == rows_of(scan, lazy=False)
    assert by_id(streamed) == [row for row in all_readings() if KEPT[where](row)]


@pytest.mark.parametrize("where", FILTERS)
@pytest.mark.parametrize("prefetch_size", [0, pytest.param(1, marks=LONG), 16])
def test_parity_whatever_is_read_ahead(table: ld.Table, where: str | None, prefetch_size: int) -> None:
    scan = table.scan(where, order="asc", batch_size=5)
    assert rows_of(scan, prefetch_size=prefetch_size) == [row for row in all_readings() if KEPT[where](row)]


@pytest.mark.parametrize("where", FILTERS)
@pytest.mark.parametrize("limit", [None, 10])
def test_desc_parity_reversed_traversal_equals_reversed_rows(
    table: ld.Table, where: str | None, limit: int | None
) -> None:
    whole = rows_of(table.scan(where, order="asc"))
    down = rows_of(table.scan(where, order="desc", limit=limit, batch_size=4))
    assert down == whole[::-1][:limit]


@pytest.mark.parametrize("where", FILTERS)
@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize("size", [pytest.param(1, marks=LONG), 13, pytest.param(ROWS_A_FILE, marks=LONG)])
def test_pagination_pages_concatenated_equal_the_whole(
    table: ld.Table, where: str | None, order: str, size: int
) -> None:
    scan = table.scan(where, order=order)
    source = scan._source.with_config(limit=size)
    whole = rows_of(scan)[: 5 * size]
    found: list[Row] = []
    after = None
    while True:
        with source.rows().located(after=after) as located:
            page = list(located)
        if not page or len(found) >= len(whole):
            break
        found += [row for part in page for row in part.rows.to_pylist()]
        assert page[-1].last_position != after, "the anchor is never emitted"
        after = page[-1].last_position
    assert found[: len(whole)] == whole


def test_positions_tell_where_rows_lie_even_if_a_column_has_that_name(tmp_path: Path) -> None:
    rows = pa.table({"_row_index": [7, 8, 9, 10], "id": [0, 1, 2, 3]})
    write_deltalake(str(tmp_path), rows)
    source = ld.open(str(tmp_path)).scan("_row_index > 7", order="desc")._source
    with source.rows().located() as located:
        parts = list(located)
    assert [row for part in parts for row in part.rows.to_pylist()] == rows.to_pylist()[:0:-1]
    assert [at for part in parts for at in part.row_index.to_pylist()] == [3, 2, 1]


@pytest.mark.parametrize("order", [None, "desc"])
@pytest.mark.parametrize("where", FILTERS)
def test_rows_without_columns_are_still_counted(
    table: ld.Table, where: str | None, order: str | None
) -> None:
    batches = table.scan(where, order=order, batch_size=4).batches([])
    assert sum(batch.num_rows for batch in batches) == sum(map(KEPT[where], all_readings()))


@pytest.mark.parametrize("order", [None, "asc", "desc"])
def test_residual_predicate_does_not_change_the_traversal(table: ld.Table, order: str | None) -> None:
    whole = rows_of(table.scan(order=order))
    left = rows_of(table.scan("value > 5 and device like '%-2'", order=order))
    assert left == [row for row in whole if row["value"] > 5 and row["device"] == "sensor-2"]


@pytest.mark.parametrize("where", FILTERS)
@pytest.mark.parametrize("order", [None, "asc", "desc"])
def test_limit_pushdown_gives_what_a_limit_afterwards_gives(
    table: ld.Table, where: str | None, order: str | None
) -> None:
    # Without an order a limit reads the newest files first: so does the scan that it is compared with.
    strategy = "reverse" if order is None else None
    whole = rows_of(table.scan(where, order=order, strategy=strategy))
    for limit in (0, 1, ROWS_A_FILE, ROWS_A_FILE + 1):
        assert rows_of(table.scan(where, order=order, limit=limit)) == whole[:limit]


@pytest.mark.parametrize("order", [None, "asc", "desc"])
@pytest.mark.parametrize("where", [None, "_event_hour >= '2026021002'"])
def test_a_limit_ends_the_traversal_where_partitions_decide(
    table: ld.Table, where: str | None, order: str | None
) -> None:
    scan = table.scan(where, order=order, limit=2 * ROWS_A_FILE + 1)
    assert len(rows_of(scan, prefetch_size=0)) == 2 * ROWS_A_FILE + 1
    report = scan.explain().rows
    assert report is not None
    assert (report.limit_ends_traversal, report.files_opened) == (True, 3)


def test_a_limit_does_not_end_the_traversal_where_rows_decide(table: ld.Table) -> None:
    scan = table.scan("device like '%nowhere'", limit=1)
    assert rows_of(scan) == []
    report = scan.explain().rows
    assert report is not None
    assert (report.limit_ends_traversal, report.files_opened) == (False, HOURS)


@pytest.mark.parametrize("where", [None, "value > 5"])
@pytest.mark.parametrize("order", ["asc", "desc"])
def test_a_row_range_is_a_slice_of_the_rows(table: ld.Table, where: str | None, order: str) -> None:
    scan = table.scan(where, order=order)
    whole = rows_of(scan)
    for row_range in ((0, 0), (5, 95), (40, None), (None, 3), (239, 300), (500, 501)):
        assert rows_of(scan, row_range=row_range) == whole[slice(*row_range)]


def test_a_limit_counts_before_a_row_range(table: ld.Table) -> None:
    ids = [row["id"] for row in rows_of(table.scan(order="asc", limit=12), row_range=(10, 20))]
    assert ids == [10, 11]


@pytest.mark.parametrize("row_range", [(3, 2), (-1, 2), (1.0, 2), 5, (1, 2, 3), ("a", "b"), (True, 2)])
def test_a_row_range_that_is_none_is_refused(table: ld.Table, row_range: object) -> None:
    with pytest.raises(InvalidRequestError, match="row_range"):
        table.scan().batches(row_range=row_range)  # type: ignore[arg-type]


def test_rows_of_files_come_in_the_order_of_the_time_column_and_within_a_file_as_they_lie(
    table: ld.Table,
) -> None:
    ids = [row["id"] for row in rows_of(table.scan(order="asc"), ["id"])]
    assert ids == list(range(HOURS * ROWS_A_FILE))


def test_batches_are_no_longer_than_asked_for_and_none_is_empty(table: ld.Table) -> None:
    lengths = [batch.num_rows for batch in table.scan("value > 9", batch_size=3).batches()]
    assert set(lengths) <= {1, 2, 3}


def test_a_row_group_turned_round_on_disk_is_the_same(
    table: ld.Table, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("lazydelta.limits.MATERIALIZE_BYTES", 1)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    ids = [row["id"] for row in rows_of(table.scan(order="desc", limit=200), ["id"])]
    assert ids == list(range(HOURS * ROWS_A_FILE))[::-1][:200]
    assert eventually(lambda: not list(tmp_path.iterdir())), "what a worker held goes with it"
