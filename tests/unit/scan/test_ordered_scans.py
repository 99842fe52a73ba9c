"""Scans in order: what they read under a limit, what they tell, and what they do when a sidecar fails."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

import lazydelta as ld
from lazydelta import limits
from lazydelta.errors import CorruptLogError, InvalidRequestError, UnsupportedTableError
from lazydelta.sidecar import SidecarConfig
from lazydelta.upkeep.build import build_sidecar
from lazydelta.upkeep.deltas import write_delta_files
from tests.support.actions import add, remove, stats
from tests.support.cached import CACHED, UNCACHED
from tests.support.eager_twin import replay
from tests.support.keys import Action
from tests.support.ordered_twin import is_in_order, order_keys
from tests.support.reading import keys
from tests.support.sidecar_damage import edit_manifest, lazy_folder, rewrite_part, storage_of
from tests.support.table_builder import TableBuilder

SCHEMA = {"value": "double", "count": "long", "_event_hour": "string"}
SMALL = SidecarConfig(row_group_rows=10, row_groups_max=4)
DESCENDING = pytest.mark.long("the other direction of what is tested ascending")
ORDERS = pytest.mark.parametrize("order", ["asc", "desc"])


def hour_file(number: int, *, hour: int | None = None, name: str = "part") -> Action:
    """Five files an hour, unless one is given."""
    at = f"20260210{number // 5 if hour is None else hour:02}"
    told = stats(low={"value": number / 2, "count": number}, high={"value": number, "count": number + 7})
    return add(f"{name}-{number:05}.parquet", partition={"_event_hour": at}, stats=told)


def hourly_table(folder: Path, *, files: int = 120, **builder: Any) -> TableBuilder:
    """A checkpoint at version 0 with that many files."""
    table = TableBuilder(folder, schema=SCHEMA, **({"partition_columns": ("_event_hour",)} | builder))
    return table.commit([hour_file(number) for number in range(files)]).checkpoint()


def build(table: TableBuilder, config: SidecarConfig = SMALL, **more: Any) -> None:
    build_sidecar(storage_of(table), config=config, **more)


def ran(table: TableBuilder, **scan: Any) -> tuple[list[tuple[str, str | None]], ld.ScanReport]:
    """The keys that came, and the report."""
    run = ld.open(str(table.path), storage_options=UNCACHED).scan(**scan)
    return keys(run.files()), run.explain()


def assert_in_order(table: TableBuilder, order: str, column: str | None = "_event_hour", **how: Any) -> Any:
    """The table's files come in that order; the report of the run."""
    found, report = ran(table, order=order)
    told = order_keys(replay(table.path).live, column, **how)
    assert is_in_order(found, told, descending=order == "desc")
    return report


@ORDERS
@pytest.mark.parametrize(("limit", "row_groups", "parts"), [(1, 1, 1), (10, 1, 1), (11, 2, 1), (45, 5, 2)])
def test_a_limit_reads_only_the_row_groups_it_needs(
    tmp_path: Path, order: str, limit: int, row_groups: int, parts: int
) -> None:
    table = hourly_table(tmp_path)
    build(table)
    found, report = ran(table, order=order, limit=limit)
    every, _ = ran(table, order=order)
    assert found == every[:limit]
    assert (report.row_groups_read, report.parts_read) == (row_groups, parts)
    assert report.parts_total == 3


@ORDERS
def test_files_of_the_tail_can_satisfy_a_limit_before_any_part_is_opened(tmp_path: Path, order: str) -> None:
    table = hourly_table(tmp_path)
    build(table)
    edge = 0 if order == "asc" else 99
    first = "a" if order == "asc" else "z"
    table.commit([hour_file(number, hour=edge, name=first) for number in range(3)])
    found, report = ran(table, order=order, limit=3)
    assert {path[0] for path, _ in found} == {first}
    assert (report.row_groups_read, report.parts_read) == ((0, 0) if order == "desc" else (1, 1))


@ORDERS
@pytest.mark.parametrize(("limit", "row_groups", "parts"), [(5, 1, 1), (15, 2, 1), (17, 3, 2)])
def test_of_overlapping_parts_only_those_are_read_that_the_order_reaches(
    tmp_path: Path, order: str, limit: int, row_groups: int, parts: int
) -> None:
    table = hourly_table(tmp_path)
    build(table)
    table.commit([hour_file(hour, hour=hour, name="late") for hour in (3, 8, 13, 20)]).checkpoint()
    build(table)  # a small part over the range of all the others
    found, report = ran(table, order=order, limit=limit)
    told = order_keys(replay(table.path).live, "_event_hour")
    assert [told[key] for key in found] == sorted(told.values(), reverse=order == "desc")[:limit]
    assert (report.row_groups_read, report.parts_read) == (row_groups, parts)
    assert report.parts_total == 4
    assert_in_order(table, order)


def test_a_predicate_leaves_row_groups_unread_in_order_too(tmp_path: Path) -> None:
    table = hourly_table(tmp_path)
    build(table)
    found, report = ran(table, order="asc", where="_event_hour = '2026021012'")
    assert [path for path, _ in found] == [f"part-{number:05}.parquet" for number in range(60, 65)]
    assert (report.row_groups_read, report.row_groups_skipped) == (1, 11)


@ORDERS
def test_files_without_a_value_come_first_or_last(tmp_path: Path, order: str) -> None:
    table = TableBuilder(tmp_path, schema=SCHEMA, partition_columns=("_event_hour",))
    nowhere = [add(f"null-{number:02}", partition={"_event_hour": None}) for number in range(30)]
    table.commit([*nowhere, *(hour_file(number) for number in range(50))]).checkpoint()
    build(table)
    assert_in_order(table, order)
    _, report = ran(table, order=order, limit=10)
    assert report.row_groups_read == 1


@ORDERS
@pytest.mark.parametrize("has_sidecar", [True, False])
def test_a_table_without_partitions_comes_by_path(tmp_path: Path, order: str, *, has_sidecar: bool) -> None:
    table = TableBuilder(tmp_path, schema=SCHEMA, partition_columns=())
    files = [add(f"part-{(number * 37) % 100:05}", partition={}) for number in range(100)]
    table.commit(files[:60]).commit(files[60:80]).checkpoint()
    if has_sidecar:
        build(table)
    table.commit(files[80:])
    report = assert_in_order(table, order, None)
    assert report.reason.startswith(f"by path, {order}ending")
    if has_sidecar:
        _, report = ran(table, order=order, limit=5)
        assert report.row_groups_read == 1


@ORDERS
@pytest.mark.parametrize("has_sidecar", [True, False])
def test_a_column_that_is_no_partition_orders_by_its_minimum(
    tmp_path: Path, order: str, *, has_sidecar: bool
) -> None:
    table = hourly_table(tmp_path, configuration={"lazydelta.time.column": "count"})
    if has_sidecar:
        build(table)
    table.commit([hour_file(number, name="late") for number in (3, 500)])
    table.commit([add("unknown.parquet", partition={"_event_hour": "2026021003"})])
    report = assert_in_order(table, order, "count", kind="long", is_partition=False)
    assert report.reason.startswith(f"by count, then path, {order}ending")
    if has_sidecar:
        _, report = ran(table, order=order, limit=12)
        assert report.row_groups_read <= 2


@ORDERS
def test_row_groups_that_the_manifest_does_not_list_are_told_by_footers(
    tmp_path: Path, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MANIFEST_ROW_GROUPS_MAX", 2)
    table = hourly_table(tmp_path)
    build(table)
    report = assert_in_order(table, order)
    assert report.source.startswith("sidecar")
    _, report = ran(table, order=order, limit=10)
    assert (report.row_groups_read, report.parts_read) == (1, 1)


@ORDERS
def test_without_a_sidecar_the_same_order_is_sorted_here_and_told(tmp_path: Path, order: str) -> None:
    table = hourly_table(tmp_path)
    table.commit([hour_file(number, name="late") for number in range(40, 50)], ["part-00007.parquet"])
    report = assert_in_order(table, order)
    assert report.strategy == "ordered"
    assert "the files at the checkpoint are sorted here (no sidecar" in report.reason
    found, _ = ran(table, order=order, limit=7)
    assert found == ran(table, order=order)[0][:7]


@ORDERS
def test_without_a_checkpoint_the_log_comes_in_order(tmp_path: Path, order: str) -> None:
    table = TableBuilder(tmp_path, schema=SCHEMA, partition_columns=("_event_hour",))
    for number in (7, 3, 99, 40):
        table.commit([hour_file(number), hour_file(number + 100)])
    table.commit([], ["part-00099.parquet"])
    report = assert_in_order(table, order)
    assert report.reason.endswith("there is no checkpoint")


@ORDERS
@pytest.mark.parametrize("has_sidecar", [True, False])
def test_more_rows_than_memory_are_sorted_on_disk(
    tmp_path: Path, order: str, monkeypatch: pytest.MonkeyPatch, *, has_sidecar: bool
) -> None:
    monkeypatch.setattr(limits, "SORT_MEMORY_BYTES", 4000)
    table = hourly_table(tmp_path)
    if has_sidecar:
        build(table)
    for start in range(0, 90, 30):
        table.commit([hour_file(number, name="late") for number in range(start, start + 30)])
    assert_in_order(table, order)
    assert ran(table, order=order, limit=35)[0] == ran(table, order=order)[0][:35]


@ORDERS
def test_statistics_as_json_come_in_order_from_the_checkpoint(tmp_path: Path, order: str) -> None:
    table = hourly_table(tmp_path)
    build(table)
    scan = ld.open(str(table.path), storage_options=UNCACHED).scan(order=order)
    files = list(scan.files(with_stats=True))
    told = order_keys(replay(table.path).live, "_event_hour")
    assert is_in_order(keys(files), told, descending=order == "desc")
    assert all(file.stats for file in files)
    assert "a sidecar has no statistics as JSON" in scan.explain().reason


@ORDERS
def test_columns_that_are_asked_for_come_alone(tmp_path: Path, order: str) -> None:
    table = hourly_table(tmp_path, files=30)
    build(table)
    table.commit([hour_file(40)])
    scan = ld.open(str(table.path)).scan(order=order)
    batches = list(scan.file_batches(["size", "partition_values"]))
    rows = pa.Table.from_batches(batches)
    assert rows.column_names == ["size", "partition_values"]
    hours = [dict(value)["_event_hour"] for value in rows.column("partition_values").to_pylist()]
    assert hours == sorted(hours, reverse=order == "desc")
    assert len(hours) == 31


@ORDERS
def test_a_part_that_is_not_sorted_is_damage_and_the_order_is_right(tmp_path: Path, order: str) -> None:
    table = hourly_table(tmp_path)
    build(table)
    rewrite_part(table, lambda rows: rows.take(_swapped(rows.num_rows, 12, 13)), part=1)
    report = assert_in_order(table, order)
    assert any("not sorted" in fallback for fallback in report.fallbacks)


@ORDERS
def test_a_range_that_is_not_that_of_the_rows_is_damage_and_the_order_is_right(
    tmp_path: Path, order: str
) -> None:
    table = hourly_table(tmp_path)
    build(table)

    def lie(manifest: Any) -> None:
        manifest["row_groups"][4] |= {"event_hour_min": "2026021011", "event_hour_max": "2026021007"}

    edit_manifest(table, lie)
    report = assert_in_order(table, order)
    assert any("outside the range" in fallback for fallback in report.fallbacks)


@ORDERS
@pytest.mark.parametrize("went_out", [0, 1, 30, 55])
def test_damage_half_way_gives_the_rest_from_the_checkpoint(
    tmp_path: Path, order: str, went_out: int
) -> None:
    table = hourly_table(tmp_path)
    build(table)
    table.commit([hour_file(number, name="late") for number in range(0, 100, 9)])
    scan = ld.open(str(table.path), storage_options=UNCACHED).scan(order=order, batch_size=1, limit=1000)
    files = scan.files()
    found = [next(files) for _ in range(went_out)]
    farthest = sorted(lazy_folder(table).glob("*.parquet"))[-1 if order == "asc" else 0]
    body = farthest.read_bytes()
    farthest.write_bytes(bytes(len(body) // 2) + body[len(body) // 2 :])
    found += files
    told = order_keys(replay(table.path).live, "_event_hour")
    assert is_in_order(keys(found), told, descending=order == "desc")
    assert [text for text in scan.explain().fallbacks if "is damaged" in text]


@pytest.mark.parametrize("scan", [{}, {"order": "asc"}, pytest.param({"order": "desc"}, marks=DESCENDING)])
def test_a_key_that_came_again_is_not_lost_when_its_first_part_went_out_before_damage(
    tmp_path: Path, scan: dict[str, str]
) -> None:
    table = hourly_table(tmp_path)
    build(table)
    # The same keys under other hours: their old rows are removed by number, their new ones lie elsewhere.
    again = [hour_file(number, hour=19 - number // 5) for number in (0, 33, 66, 99)]
    table.commit(again).checkpoint()
    build(table)
    parts = sorted(lazy_folder(table).glob("*.parquet"))
    for spoiled in parts:
        for went_out in (1, 25, 60, 90):
            body = spoiled.read_bytes()
            run = ld.open(str(table.path), storage_options=UNCACHED).scan(limit=1000, batch_size=1, **scan)
            files = run.files()
            found = [next(files) for _ in range(went_out)]
            spoiled.write_bytes(bytes(len(body) // 2) + body[len(body) // 2 :])
            try:
                found += files
            except CorruptLogError as lost:
                assert "had gone out" in lost.what
            else:
                assert sorted(keys(found), key=str) == sorted(replay(table.path).live, key=str)
            finally:
                spoiled.write_bytes(body)


@ORDERS
def test_deletion_vectors_ride_along(tmp_path: Path, order: str) -> None:
    table = hourly_table(tmp_path, files=20)
    vector = {"storageType": "i", "pathOrInlineDv": "wi5b", "sizeInBytes": 40, "cardinality": 2}
    old = hour_file(3)
    table.commit([old | {"deletionVector": vector}], [remove(old["path"])]).checkpoint()
    build(table)
    found, _ = ran(table, order=order)
    assert ("part-00003.parquet", "iwi5b") in found
    assert_in_order(table, order)


@ORDERS
@pytest.mark.parametrize("column", ["_event_hour", "count"])
def test_a_tail_that_comes_from_delta_files_comes_in_order(
    tmp_path: Path, order: str, column: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SIDECAR_DELTA_COMMITS", 4)
    config = msgspec.structs.replace(SMALL, delta_commits_min=4)
    table = hourly_table(tmp_path, configuration={"lazydelta.time.column": column})
    build(table, config)
    for number in range(12):
        table.commit([hour_file(3 * number, name="late")], [f"part-{number * 7:05}.parquet"])
    write_delta_files(storage_of(table), config=config)
    table.commit([hour_file(50, name="later")])
    how: dict[str, Any] = {} if column == "_event_hour" else {"kind": "long", "is_partition": False}
    report = assert_in_order(table, order, column, **how)
    assert report.delta_files > 0


@ORDERS
def test_a_second_scan_in_order_costs_one_listing(tmp_path: Path, order: str) -> None:
    table = hourly_table(tmp_path)
    build(table)
    for number in range(5):
        table.commit([hour_file(number, hour=10, name="late")])
    told = order_keys(replay(table.path).live, "_event_hour")
    for expected in ({}, {"list": 1}):
        scan = ld.open(str(table.path), storage_options=CACHED).scan(order=order)
        assert is_in_order(keys(scan.files()), told, descending=order == "desc")
        assert not expected or scan.explain().requests_by_kind == expected


def test_scans_in_order_and_in_none_share_what_is_known_while_commits_come(tmp_path: Path) -> None:
    table = hourly_table(tmp_path)
    build(table)
    for number in range(8):
        table.commit([hour_file(number, hour=number, name="late")], [f"part-{number * 11:05}.parquet"])
        live = replay(table.path).live
        told = order_keys(live, "_event_hour")
        for order in (None, "desc", "asc")[number % 3 :]:
            found = keys(ld.open(str(table.path), storage_options=CACHED).scan(order=order).files())
            assert sorted(found, key=str) == sorted(live, key=str)
            assert order is None or is_in_order(found, told, descending=order == "desc")


def test_a_strict_scan_tells_that_it_tripped_and_comes_in_order(tmp_path: Path) -> None:
    table = hourly_table(tmp_path, files=20)
    table.commit([hour_file(40)], extra_actions=[{"txn": {"appId": "a", "version": 1, "lastUpdated": 1}}])
    found, report = ran(table, order="asc", strict=True)
    assert len(found) == 21
    assert any(text.startswith("strict:") for text in report.fallbacks)
    with pytest.raises(UnsupportedTableError, match="tripped"):
        ran(table, order="asc", strict=True, enable_fallback=False)


@pytest.mark.parametrize("given", [{"order": "up"}, {"order": 1}, {"order": "asc", "strategy": "forward"}])
def test_an_order_that_cannot_be_is_named(tmp_path: Path, given: dict[str, Any]) -> None:
    table = hourly_table(tmp_path, files=1)
    with pytest.raises(InvalidRequestError, match="order"):
        ld.open(str(table.path)).scan(**given)


def _swapped(count: int, left: int, right: int) -> Sequence[int]:
    order = list(range(count))
    order[left], order[right] = right, left
    return order


def test_a_sidecar_of_another_time_column_orders_by_that_one_and_explain_names_it(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path)
    for number in range(6):
        told = stats(1, low={"count": number}, high={"count": number}, nulls={"count": 0})
        table.commit([add(f"f{number}", partition={"date": f"2026-02-0{9 - number}"}, stats=told)])
    table.checkpoint()
    by_default, report = ran(table, order="desc", limit=2)
    assert [path for path, _ in by_default] == ["f0", "f1"]
    assert "by date, then path" in report.reason
    build(table, SidecarConfig(time_column="count"))
    found, report = ran(table, order="desc", limit=2)
    assert [path for path, _ in found] == ["f5", "f4"]
    assert "by count, then path" in report.reason


@pytest.mark.parametrize("order", [None, "asc", "desc"])
def test_a_sidecar_that_vanishes_in_the_middle_is_an_error_that_says_to_run_the_scan_again(
    tmp_path: Path, order: str | None
) -> None:
    table = hourly_table(tmp_path)
    build(table)
    run = ld.open(str(table.path), storage_options=UNCACHED).scan(order=order, batch_size=1)
    files = run.files()
    next(files)
    for part in lazy_folder(table).glob("*.parquet"):
        part.unlink()
    with pytest.raises(CorruptLogError, match="after some of its files had gone out") as lost:
        list(files)
    assert lost.value.fix.startswith("run the scan again")
    assert len(list(ld.open(str(table.path), storage_options=UNCACHED).scan(order=order).files())) == 120
