"""`get_stats_for_files`: what it tells of a path, what it costs, and what it refuses."""

from __future__ import annotations

import datetime as dt
import gc
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lazydelta as ld
from lazydelta.errors import InvalidRequestError, StorageError
from lazydelta.log import open_snapshot
from lazydelta.scan import FileScan, LazyScanConfig, ScanReport, look_up_stats
from lazydelta.settings import Settings
from lazydelta.sidecar import SidecarAwareProvider, SidecarConfig, SidecarReading, TakenOnce
from lazydelta.storage import Storage
from lazydelta.upkeep.build import build_sidecar
from tests.support.actions import add, inline_dv, metadata, remove, stats
from tests.support.faulty_storage import fail_at, faulty
from tests.support.long_tail import long_tail
from tests.support.sidecar_damage import storage_of
from tests.support.sidecar_states import STATES, copy_with_sidecar
from tests.support.table_builder import TableBuilder

HOURLY = {"device_id": "string", "value": "double", "_event_hour": "string"}
SOURCES = (Settings(), Settings(cache_bytes=0), Settings(sidecar_enabled=False))


def hour_file(hour: int, number: int, **more: Any) -> dict[str, Any]:
    told = stats(10, low={"value": float(hour)}, high={"value": hour + 0.5}, nulls={"value": number})
    given = {"partition": {"_event_hour": f"{2026021000 + hour}"}, "stats": told}
    return add(hour_path(hour, number), **(given | more))


def hour_path(hour: int, number: int) -> str:
    return f"_event_hour={2026021000 + hour}/part-{number}.parquet"


def hourly_table(folder: Path, *, hours: int = 12, files: int = 8) -> TableBuilder:
    """A sidecar of several parts, each with several row groups of one hour each; a short tail."""
    table = TableBuilder(folder, schema=HOURLY, partition_columns=("_event_hour",))
    table.commit([hour_file(hour, number) for hour in range(hours) for number in range(files)])
    table.checkpoint().crc()
    build_sidecar(storage_of(table), config=SidecarConfig(row_group_rows=files, row_groups_max=3))
    return table.commit([hour_file(hours, 0)], [hour_path(3, 3)]).crc()


def looked_up(
    storage: Storage, paths: list[str], columns: list[str]
) -> tuple[list[dict[str, Any]], ScanReport]:
    """The rows, and what was read for them, without a cache."""
    provider = SidecarAwareProvider(storage, SidecarReading(), TakenOnce())
    snapshot = open_snapshot(storage, parallelism=4, companion=provider)
    provider.opened(snapshot.state.metadata)
    scan = FileScan(snapshot, LazyScanConfig(), provider)
    rows = look_up_stats(scan, paths, columns).to_pylist()
    return rows, scan.report()


# --- what is told ---


@pytest.mark.parametrize("settings", SOURCES)
def test_rows_come_in_the_order_of_the_paths_and_a_repeated_path_repeats_its_row(
    tmp_path: Path, settings: Settings
) -> None:
    table = hourly_table(tmp_path)
    paths = [hour_path(12, 0), hour_path(5, 2), "nobody.parquet", hour_path(5, 2), hour_path(3, 3)]
    opened = ld.open(str(table.path), settings=settings)
    found = opened.get_stats_for_files(paths, ["value"])
    assert found.column("path").to_pylist() == paths
    assert found.column("live").to_pylist() == [True, True, False, True, False]
    assert found.column("min.value").to_pylist() == [12.0, 5.0, None, 5.0, None]
    assert found.column("max.value").to_pylist() == [12.5, 5.5, None, 5.5, None]
    assert found.column("null_count.value").to_pylist() == [0, 2, None, 2, None]
    assert found.column("num_records").to_pylist() == [10, 10, None, 10, None]
    assert found.column("deleted_rows").to_pylist() == [0, 0, None, 0, None]


def test_a_path_may_have_the_tables_address_before_it(tmp_path: Path) -> None:
    table = hourly_table(tmp_path)
    opened = ld.open(str(table.path))
    path = hour_path(5, 2)
    asked = [f"{opened.url}/{path}", f"{table.path}/{path}", f"file:{table.path}/{path}"]
    found = opened.get_stats_for_files(asked, ["value"])
    assert found.column("live").to_pylist() == [True] * 3
    assert found.column("path").to_pylist() == asked


def test_a_path_is_taken_as_a_scan_gives_it_and_not_decoded_again(tmp_path: Path) -> None:
    spellings = ["a%20b", "100%2525", "%C3%BC", "/elsewhere/f%23", "100%25FF"]
    table = TableBuilder(tmp_path).commit([add(path, stats=stats(7)) for path in spellings])
    table.checkpoint().commit([add("later%2541", stats=stats(7))])
    paths = [file.path for file in ld.open(str(table.path)).scan().files()]
    assert {"a b", "100%25", "ü", "100%FF", "later%41"} < set(paths)
    found = ld.open(str(table.path)).get_stats_for_files(paths, [])
    assert found.column("num_records").to_pylist() == [7] * 6


def test_no_paths_give_no_rows_but_the_same_columns_and_read_nothing(tmp_path: Path) -> None:
    storage = faulty(storage_of(hourly_table(tmp_path)), lambda _: None)
    _, report = looked_up(storage, [], ["value"])
    assert report.commits_read == report.row_groups_read == 0
    table = ld.open(str(tmp_path))
    found = table.get_stats_for_files([], ["value"])
    assert found.num_rows == 0
    assert found.schema == table.get_stats_for_files(["x"], ["value"]).schema


def test_without_columns_counts_are_told_alone(tmp_path: Path) -> None:
    table = hourly_table(tmp_path)
    for settings in SOURCES:
        found = ld.open(str(table.path), settings=settings).get_stats_for_files([hour_path(5, 2)], [])
        assert found.to_pylist() == [
            {
                "path": hour_path(5, 2),
                "live": True,
                "num_records": 10,
                "tight_bounds": None,
                "deleted_rows": 0,
            }
        ]


def test_a_partition_columns_value_is_both_of_its_bounds(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path)
    table.commit([add("a", stats=stats(4)), add("b", partition={"date": None}, stats=stats(4))]).checkpoint()
    found = ld.open(str(table.path)).get_stats_for_files(["a", "b"], ["date"])
    day = dt.date(2026, 2, 8)
    assert found.column("min.date").to_pylist() == found.column("max.date").to_pylist() == [day, None]
    assert found.column("null_count.date").to_pylist() == [0, 4]


@pytest.mark.parametrize("settings", SOURCES)
def test_a_deletion_vectors_rows_are_counted_and_wide_bounds_are_named(
    tmp_path: Path, settings: Settings
) -> None:
    wide = stats(10, low={"value": 1}, high={"value": 2}, nulls={"value": 0}, tight_bounds=False)
    table = TableBuilder(tmp_path).commit([add("a", stats=wide), add("b", stats=wide)])
    table.commit([add("a", stats=wide, deletion_vector=inline_dv(rows=3))], ["a"]).checkpoint()
    build_sidecar(storage_of(table), config=SidecarConfig())
    table.commit([add("b", stats=wide, deletion_vector=inline_dv(rows=4))], [remove("b")])
    found = ld.open(str(table.path), settings=settings).get_stats_for_files(["a", "b"], ["value"])
    assert found.column("deleted_rows").to_pylist() == [3, 4]
    assert found.column("tight_bounds").to_pylist() == [False, False]


@pytest.mark.parametrize("settings", SOURCES)
def test_nested_and_renamed_columns_are_found_by_the_names_users_know(
    tmp_path: Path, settings: Settings
) -> None:
    table = nested_table(tmp_path)
    opened = ld.open(str(table.path), settings=settings)
    found = opened.get_stats_for_files(["a"], ["payload.price", "`odd.name`", "Payload.At", "tags", "raw"])
    row = found.to_pylist()[0]
    assert (row["min.payload.price"], row["max.payload.price"]) == (Decimal("1.50"), Decimal("2.50"))
    assert row["min.`odd.name`"] == 3
    assert row["max.Payload.At"] == dt.datetime(2026, 2, 8, 10, 0, 0, 999000, tzinfo=dt.UTC)
    assert (row["min.tags"], row["null_count.tags"]) == (None, 2)
    assert (row["min.raw"], row["null_count.raw"]) == (None, 1)
    assert found.schema.field("min.payload.price").type == pa.decimal128(10, 2)
    assert found.schema.field("max.Payload.At").type == pa.timestamp("us", tz="UTC")


def nested_table(folder: Path) -> TableBuilder:
    def field(name: str, type_: Any) -> dict[str, Any]:
        mapped = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": f"col-{name}"}
        return {"name": name, "type": type_, "nullable": True, "metadata": mapped}

    tags = {"type": "array", "elementType": "string", "containsNull": True}
    payload = {"type": "struct", "fields": [field("price", "decimal(10,2)"), field("at", "timestamp")]}
    fields = [
        field("payload", payload),
        field("odd.name", "long"),
        field("tags", tags),
        field("raw", "binary"),
    ]
    table = TableBuilder(folder, schema={"x": "long"}, partition_columns=(), column_mapping="name")
    table.metadata = metadata({"x": "long"}, partition_columns=(), column_mapping="name") | {
        "schemaString": json.dumps({"type": "struct", "fields": fields})
    }
    told = {
        "numRecords": 5,
        "minValues": {
            "col-payload": {"col-price": 1.5, "col-at": "2026-02-08T09:00:00.000Z"},
            "col-odd.name": 3,
        },
        "maxValues": {
            "col-payload": {"col-price": 2.5, "col-at": "2026-02-08T10:00:00.999Z"},
            "col-odd.name": 4,
        },
        "nullCount": {"col-tags": 2, "col-raw": 1},
    }
    action = add("a", partition={}, stats=json.dumps(told))
    table.commit([action]).checkpoint(stats="json")
    build_sidecar(storage_of(table), config=SidecarConfig())
    return table


def test_an_older_version_tells_its_own_files(tmp_path: Path) -> None:
    table = hourly_table(tmp_path)
    found = ld.open(str(table.path), version=0).get_stats_for_files(
        [hour_path(3, 3), hour_path(12, 0)], ["value"]
    )
    assert found.column("live").to_pylist() == [True, False]


# --- what it costs ---


def test_one_path_costs_one_footer_and_one_row_group_of_a_sidecar_with_many(tmp_path: Path) -> None:
    storage = faulty(storage_of(hourly_table(tmp_path)), lambda _: None)
    rows, report = looked_up(storage, [hour_path(5, 2)], ["value"])
    assert rows[0]["min.value"] == 5.0
    assert report.source == "sidecar 0 (manifest)"
    assert (report.parts_read, report.parts_total, report.row_groups_read) == (1, 4, 1)
    read = {name for _, name in storage.log.calls if name.endswith(".parquet")}
    # Opening reads the footer of the newest part ahead, whatever is asked for.
    assert len({name for name in read if not name.endswith(".00003.parquet")}) == 1


def test_a_path_that_a_commit_removed_is_not_searched_for_everywhere(tmp_path: Path) -> None:
    _, report = looked_up(storage_of(hourly_table(tmp_path)), [hour_path(3, 3)], ["value"])
    assert report.row_groups_read == 1


def test_a_path_of_an_hour_that_is_not_there_costs_no_row_group(tmp_path: Path) -> None:
    table = hourly_table(tmp_path)
    rows, report = looked_up(storage_of(table), [hour_path(99, 1), "_event_hour=x/y.parquet"], ["value"])
    assert [row["live"] for row in rows] == [False, False]
    assert report.row_groups_read == 0


def test_paths_of_several_hours_cost_their_row_groups_alone(tmp_path: Path) -> None:
    asked = [hour_path(hour, 1) for hour in (0, 4, 9)]
    rows, report = looked_up(storage_of(hourly_table(tmp_path)), asked, ["value"])
    assert [row["min.value"] for row in rows] == [0.0, 4.0, 9.0]
    assert (report.row_groups_read, report.parts_read) == (3, 3)


def test_a_path_whose_folder_lies_about_the_hour_is_found_all_the_same(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path, schema=HOURLY, partition_columns=("_event_hour",))
    files = [hour_file(hour, number) for hour in range(6) for number in range(8)]
    liar = hour_file(2, 0) | {"path": "_event_hour=2026021005/liar.parquet"}
    table.commit([*files, liar]).checkpoint()
    build_sidecar(storage_of(table), config=SidecarConfig(row_group_rows=8, row_groups_max=2))
    rows, report = looked_up(storage_of(table), [liar["path"]], ["value"])
    assert rows[0]["min.value"] == 2.0
    assert report.source.startswith("sidecar")
    assert report.row_groups_read < 6


def test_an_escaped_path_is_found_where_its_spelling_lies(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path, schema=HOURLY, partition_columns=("_event_hour",))
    odd = hour_file(2, 0) | {"path": "%5Fevent_hour%3D2026021002/p%61rt.parquet"}
    table.commit([odd, *(hour_file(hour, number) for hour in range(6) for number in range(8))]).checkpoint()
    build_sidecar(storage_of(table), config=SidecarConfig(row_group_rows=8, row_groups_max=2))
    rows, _ = looked_up(storage_of(table), ["_event_hour=2026021002/part.parquet"], ["value"])
    assert rows[0]["live"] is True


def test_an_absent_path_of_an_hour_with_many_parts_is_ruled_out_by_most_footers(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path, schema=HOURLY, partition_columns=("_event_hour",))
    table.commit([hour_file(1, number) for number in range(96)]).checkpoint().crc()
    build_sidecar(storage_of(table), config=SidecarConfig(row_group_rows=4, row_groups_max=2))
    rows, report = looked_up(storage_of(table), [hour_path(1, 777), hour_path(1, 55)], ["value"])
    assert [row["live"] for row in rows] == [False, True]
    assert report.parts_total == 12
    assert report.row_groups_skipped > report.row_groups_read


def test_what_was_looked_up_before_comes_from_the_cache(tmp_path: Path) -> None:
    table = hourly_table(tmp_path)
    ld.cache.clear()
    for _ in range(2):
        opened = ld.open(str(table.path), settings=Settings(max_staleness_seconds=60))
        found = opened.get_stats_for_files([hour_path(5, 2)], ["value"])
        assert found.column("min.value").to_pylist() == [5.0]
    gc.collect()  # a scan that another test left half-way is counted when it is collected
    before = ld.metrics()["delta.lazy.requests"]
    ld.open(str(table.path), settings=Settings(max_staleness_seconds=60)).get_stats_for_files(
        [hour_path(5, 3)], ["value"]
    )
    assert ld.metrics()["delta.lazy.requests"] == before


def test_a_long_tail_is_asked_by_delta_files_and_tells_the_same(tmp_path: Path) -> None:
    table = long_tail(tmp_path)
    asked = [path for path, _ in sorted(table.live())[::17]] + ["f7"]
    columns = ["value", "_event_hour"]
    rows, report = looked_up(storage_of(table), asked, columns)
    assert (report.commits_read, report.delta_files) == (12, 3)
    assert [row["live"] for row in rows] == [True] * (len(asked) - 1) + [False]
    assert all(row["num_records"] is not None for row in rows[:-1])
    for settings in SOURCES:
        assert (
            ld.open(str(table.path), settings=settings).get_stats_for_files(asked, columns).to_pylist()
            == rows
        )


# --- damage ---


@pytest.mark.parametrize("name", sorted(STATES))
def test_whatever_state_the_sidecar_is_in_the_answer_is_that_of_the_log(tmp_path: Path, name: str) -> None:
    table = copy_with_sidecar(tmp_path)
    STATES[name].make(table)
    asked = [f"part-{number:05}.parquet" for number in (0, 3, 4, 5, 17, 30, 39, 51, 52, 99)]
    answers = [
        ld.open(str(table.path), settings=settings).get_stats_for_files(asked, ["value", "count", "date"])
        for settings in SOURCES
    ]
    assert answers[0].equals(answers[2])
    assert answers[1].equals(answers[2])
    live = {path for path, _ in table.live()}
    assert answers[0].column("live").to_pylist() == [path in live for path in asked]


@pytest.mark.parametrize("call", range(1, 16))
def test_a_store_that_fails_once_gives_the_right_answer_or_an_error(tmp_path: Path, call: int) -> None:
    storage = faulty(storage_of(hourly_table(tmp_path)), fail_at(call))
    try:
        rows, _ = looked_up(storage, [hour_path(5, 2), hour_path(12, 0), hour_path(3, 3)], ["value"])
    except StorageError:
        return
    assert [row["min.value"] for row in rows] == [5.0, 12.0, None]


@pytest.mark.parametrize(
    "given",
    [
        tuple,
        iter,
        lambda paths: dict.fromkeys(paths).keys(),
        lambda paths: (path for path in paths),
        lambda paths: [Path(path) for path in paths],
        pa.array,
        lambda paths: pa.chunked_array([paths[:1], paths[1:]]),
        lambda paths: pa.array(paths, pa.large_string()),
        lambda paths: pa.array(paths).dictionary_encode(),
    ],
)
def test_paths_may_come_as_any_iterable_of_texts_or_paths(tmp_path: Path, given: Any) -> None:
    table = hourly_table(tmp_path)
    paths = [hour_path(5, 2), "not-there.parquet", hour_path(3, 1)]
    found = ld.open(str(table.path)).get_stats_for_files(given(paths), ["value"])
    assert found.schema.field("path").type == pa.string()
    assert found.column("path").to_pylist() == paths
    assert found.column("min.value").to_pylist() == [5.0, None, 3.0]


def test_a_path_object_below_the_table_is_the_file_there(tmp_path: Path) -> None:
    table = hourly_table(tmp_path)
    path = table.path.resolve() / hour_path(5, 2)
    found = ld.open(str(table.path)).get_stats_for_files([path], ["value"])
    assert found.column("path").to_pylist() == [path.as_posix()]
    assert found.column("live").to_pylist() == [True]


# --- what is refused ---


@pytest.mark.parametrize(
    "paths",
    [
        "a.parquet",
        b"a",
        Path("a.parquet"),
        None,
        5,
        {"a": 1},
        [1],
        [None],
        ["ok", b"x"],
        ["\ud800"],
        pa.array(["ok", None]),
        pa.array([1]),
    ],
)
def test_paths_that_are_no_list_of_texts_are_refused(tmp_path: Path, paths: Any) -> None:
    table = ld.open(str(TableBuilder(tmp_path).commit(["a"]).path))
    with pytest.raises(InvalidRequestError, match="path"):
        table.get_stats_for_files(paths, ["value"])


@pytest.mark.parametrize("columns", ["value", None, [1], [None], 7])
def test_columns_that_are_no_list_of_names_are_refused(tmp_path: Path, columns: Any) -> None:
    table = ld.open(str(TableBuilder(tmp_path).commit(["a"]).path))
    with pytest.raises(InvalidRequestError):
        table.get_stats_for_files(["a"], columns)


def test_a_column_that_is_not_there_is_refused_with_near_names(tmp_path: Path) -> None:
    table = ld.open(str(TableBuilder(tmp_path).commit(["a"]).path))
    with pytest.raises(InvalidRequestError, match="did you mean value"):
        table.get_stats_for_files(["a"], ["valeu"])
    with pytest.raises(InvalidRequestError, match="get_stats_for_files"):
        table.get_stats_for_files(["a"], ["a..b"])


def test_a_struct_is_refused_because_its_fields_have_the_statistics(tmp_path: Path) -> None:
    table = ld.open(str(nested_table(tmp_path).path))
    with pytest.raises(InvalidRequestError, match="struct"):
        table.get_stats_for_files(["a"], ["payload"])
