"""Sidecars are built whole or from what changed, replaced when stale, and say why."""

from __future__ import annotations

import json
import shutil
from hashlib import md5
from itertools import pairwise
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lazydelta import limits
from lazydelta.errors import (
    CorruptLogError,
    InvalidRequestError,
    StorageError,
    TableNotFoundError,
    UnsupportedTableError,
    VersionNotFoundError,
)
from lazydelta.log import CheckpointReader
from lazydelta.sidecar import SidecarConfig
from lazydelta.upkeep.build import build_sidecar
from lazydelta.upkeep.build_plan import plan_build
from tests.support import actions
from tests.support.actions import add, remove, stats
from tests.support.sidecar_twin import (
    LAZY,
    manifest_of,
    part_files,
    referenced_files,
    sidecar_rows,
)
from tests.support.table_builder import TableBuilder
from tests.support.telemetry_table import (
    CONFIG,
    SCHEMA,
    assert_exact,
    built,
    file_at,
    forty_files,
    removed,
    storage_of,
    telemetry,
)


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    return forty_files(tmp_path / "table")


# --- full builds ---------------------------------------------------------------


def test_a_full_build_makes_balanced_sorted_parts(table: TableBuilder) -> None:
    manifest = manifest_of(table.path, 0)
    assert [part["num_rows"] for part in manifest["parts"]] == [13, 13, 14]
    assert manifest["order_column"] == "_event_hour"
    ranges = [(part["order_min"], part["order_max"]) for part in manifest["parts"]]
    assert ranges == sorted(ranges)
    assert all(before[1] <= after[0] for before, after in pairwise(ranges))
    assert_exact(table, 0)


def test_the_report_tells_what_was_done(tmp_path: Path) -> None:
    table = telemetry(tmp_path).commit([file_at(1, "a"), file_at(2, "b")]).checkpoint()
    told: list[tuple[str, dict[str, object]]] = []
    report = built(table, progress=lambda event, **facts: told.append((event, facts)))
    manifest_bytes = next((tmp_path / LAZY).glob("*.manifest.json")).stat().st_size
    part_bytes = sum((tmp_path / LAZY / name).stat().st_size for name in part_files(tmp_path))
    assert (report.version, report.kind, report.reason) == (0, "full", "no earlier sidecar")
    assert (report.parts_total, report.parts_written, report.parts_referenced) == (1, 1, 0)
    assert (report.rows_written, report.num_files, report.num_row_groups) == (2, 2, 1)
    assert report.manifest_bytes == manifest_bytes
    assert report.bytes_written == manifest_bytes + part_bytes
    assert report.bytes_read > 0
    assert report.elapsed_ms > 0
    assert [event for event, _ in told] == ["planned", "writing", "part_written", "finished"]
    assert json.loads(msgspec.json.encode(report))["kind"] == "full"


def test_a_sidecar_that_is_there_is_left_alone(table: TableBuilder) -> None:
    before = {path: path.stat().st_mtime_ns for path in (table.path / LAZY).iterdir()}
    report = built(table)
    assert (report.kind, report.parts_written, report.bytes_written) == ("present", 0, 0)
    assert report.num_files == 40
    assert {path: path.stat().st_mtime_ns for path in (table.path / LAZY).iterdir()} == before


def test_a_full_build_that_was_asked_for_replaces_what_is_there(table: TableBuilder) -> None:
    before = manifest_of(table.path, 0)["build"]
    report = built(table, full=True)
    assert (report.kind, report.reason) == ("full", "a full build was asked for")
    assert manifest_of(table.path, 0)["build"] == report.build != before


def test_the_newest_checkpoint_up_to_the_version_asked_for_is_taken(table: TableBuilder) -> None:
    table.commit([file_at(30, "later")]).checkpoint().commit([file_at(31, "tail")])
    plan = plan_build(storage_of(table), CONFIG, version=0)
    assert plan.version == 0
    assert plan.present is not None
    assert built(table).version == 1


def test_an_empty_table_has_a_sidecar_without_parts(tmp_path: Path) -> None:
    table = telemetry(tmp_path).commit().checkpoint()
    report = built(table)
    assert (report.kind, report.parts_total, report.num_files) == ("full", 0, 0)
    assert manifest_of(tmp_path, 0)["sidecar_file"] is None
    table.commit([file_at(1, "first")]).checkpoint()
    assert built(table).kind == "incremental"
    assert_exact(table, 1)
    table.commit([], [removed(1, "first")]).checkpoint()
    assert (built(table).parts_total, built(table).kind) == (0, "present")


def test_a_table_without_columns_to_sort_by_is_sorted_by_path(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path, schema={"value": "double"}, partition_columns=())
    table.commit([add(f"{name}.parquet", partition={}) for name in "cab"]).checkpoint()
    built(table)
    assert [path for path, _ in sidecar_rows(tmp_path, 0)] == ["a.parquet", "b.parquet", "c.parquet"]
    table.commit([], [remove("b.parquet")]).checkpoint()
    assert built(table).kind == "incremental"
    assert_exact(table, 1)


def test_a_time_column_that_is_no_partition_column_sorts_by_its_minimum(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path, schema={"value": "double"}, partition_columns=())
    config = msgspec.structs.replace(CONFIG, time_column="value")
    for round_ in range(3):
        bounds = [{"value": float(round_ * 7 % 5 + n)} for n in range(6)]
        files = [
            add(f"{round_}-{n}.parquet", partition={}, stats=stats(1, low=low, high=low))
            for n, low in enumerate(bounds)
        ]
        table.commit(files, [f"{round_ - 1}-2.parquet"] if round_ else []).checkpoint()
        report = built(table, config=config)
        assert report.kind == ("incremental" if round_ else "full")
        assert manifest_of(tmp_path, round_)["order_column"] == "min.value"
        assert_exact(table, round_)


def test_counts_of_records_survive_where_no_column_has_statistics(tmp_path: Path) -> None:
    table = TableBuilder(
        tmp_path,
        schema={"value": "double", "date": "date"},
        configuration={"delta.dataSkippingNumIndexedCols": "0"},
    )
    table.commit([add("a.parquet", stats=stats(17))]).checkpoint(stats="json")
    built(table)
    assert [row["num_records"] for row in sidecar_rows(tmp_path, 0).values()] == [17]


def test_statistics_beyond_the_configured_columns_are_found_in_a_sample(tmp_path: Path) -> None:
    table = TableBuilder(
        tmp_path,
        schema={"value": "double", "date": "date"},
        configuration={"delta.dataSkippingNumIndexedCols": "0"},
    )
    table.commit([add("a.parquet", stats=stats(1, low={"value": 2.5}, high={"value": 2.5}))]).checkpoint()
    built(table)
    assert [row["min.value"] for row in sidecar_rows(tmp_path, 0).values()] == [2.5]


# --- incremental builds --------------------------------------------------------


def test_unchanged_parts_are_referenced_and_small_ones_added(table: TableBuilder) -> None:
    before = manifest_of(table.path, 0)
    stamps = {path.name: path.stat().st_mtime_ns for path in (table.path / LAZY).iterdir()}
    table.commit([file_at(25, "new")], [removed(3, "f7")]).checkpoint()
    report = built(table)
    assert (report.kind, report.parts_referenced, report.rows_written) == ("incremental", 3, 1)
    after = manifest_of(table.path, 1)
    assert referenced_files(before) < referenced_files(after)
    assert [part["removed"] for part in after["parts"] if "removed" in part] == [[7, 1]]
    assert all((table.path / LAZY / name).stat().st_mtime_ns == stamp for name, stamp in stamps.items())
    assert_exact(table, 1)


@pytest.mark.parametrize("is_listed", [True, False], ids=["listed", "by footers"])
def test_only_row_groups_in_reach_of_the_change_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_listed: bool
) -> None:
    if not is_listed:
        monkeypatch.setattr(limits, "MANIFEST_ROW_GROUPS_MAX", 2)
    table = telemetry(tmp_path)
    config = SidecarConfig(row_group_rows=500, row_groups_max=40)
    names = [md5(b"%d" % number).hexdigest() for number in range(20_000)]
    table.commit([file_at(number // 50, name) for number, name in enumerate(names)]).checkpoint()
    whole = built(table, config=config)
    table.commit([file_at(401, "new")], [removed(3, names[170])]).checkpoint()
    near = built(table, config=config)
    table.commit([file_at(402, "new")], [remove(f"_event_hour=0000000004/{names[210]}.parquet")]).checkpoint()
    everywhere = built(table, config=config)
    part_bytes = whole.bytes_written - whole.manifest_bytes
    assert bool(manifest_of(table.path, 2)["row_groups"]) is is_listed
    assert near.bytes_read + part_bytes // 4 < everywhere.bytes_read
    assert_exact(table, 2)


def test_of_a_checkpoint_of_many_files_the_checksum_tells_the_number_of_files(
    table: TableBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CHECKPOINT_FOOTERS_MAX", 0)
    counts: list[str] = []
    count = CheckpointReader.add_count
    monkeypatch.setattr(CheckpointReader, "add_count", lambda self: counts.append("looked") or count(self))
    table.commit([file_at(25, "new")], [removed(3, "f7")]).crc().checkpoint()
    assert (built(table).kind, counts) == ("incremental", [])
    assert (built(table).kind, counts) == ("present", [])
    assert_exact(table, 1)
    table.commit([file_at(26, "next")]).checkpoint()  # without a checksum the checkpoint is asked
    assert (built(table).kind, counts) == ("incremental", ["looked"])
    assert_exact(table, 2)


def test_a_checksum_that_counts_wrongly_costs_a_full_build(
    table: TableBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CHECKPOINT_FOOTERS_MAX", 0)
    table.commit([file_at(25, "new")]).crc(numFiles=7).checkpoint()
    report = built(table)
    assert (report.kind, report.num_files) == ("full", 41)
    assert "the commits lead to 41 files, the checkpoint lists 7" in report.reason
    assert_exact(table, 1)


def test_a_file_added_again_under_another_hour_is_found(table: TableBuilder) -> None:
    moved = file_at(2, "f5") | {"partitionValues": {"_event_hour": f"{19:010}"}}
    table.commit([moved]).checkpoint()
    assert built(table).kind == "incremental"
    assert_exact(table, 1)


def test_a_file_that_comes_and_goes_again_and_again_counts_once(table: TableBuilder) -> None:
    for round_ in range(6):
        if round_ % 2:
            table.commit([file_at(3, "f7", size=100 + round_)]).checkpoint()
        else:
            # Beside it another file of the same part, so that the part's entry changes each time.
            table.commit([], [removed(3, "f7"), removed(round_ // 2, f"f{round_}")]).checkpoint()
        assert built(table).kind == "incremental"
        assert_exact(table, round_ + 1)


def test_a_part_whose_rows_are_all_gone_vanishes(table: TableBuilder) -> None:
    gone = [removed(number // 2, f"f{number}") for number in range(13)]
    table.commit([], gone).checkpoint()
    report = built(table)
    assert (report.kind, report.parts_total, report.rows_written) == ("incremental", 2, 0)
    assert_exact(table, 1)


def test_a_worn_part_is_written_anew(table: TableBuilder) -> None:
    table.commit([], [removed(number // 2, f"f{number}") for number in range(0, 12, 2)]).checkpoint()
    report = built(table)
    assert (report.kind, report.parts_written, report.rows_written) == ("incremental", 1, 7)
    assert all("removed" not in part for part in manifest_of(table.path, 1)["parts"])
    assert_exact(table, 1)


def test_statistics_of_older_parts_survive_a_merge_after_the_configuration_forgot_them(
    table: TableBuilder,
) -> None:
    forgetful = actions.metadata(
        SCHEMA,
        partition_columns=("_event_hour",),
        configuration={"delta.dataSkippingStatsColumns": "count"},
    )
    gone = [removed(number // 2, f"f{number}") for number in range(0, 12, 2)]
    table.commit([], gone, metadata=forgetful).checkpoint(stats="none")
    assert (built(table).kind, built(table).kind) == ("incremental", "present")
    assert all(row["min.value"] is not None for row in sidecar_rows(table.path, 1).values())


def test_a_widened_column_is_no_reason_for_a_full_build(table: TableBuilder) -> None:
    wider = actions.metadata(SCHEMA | {"count": "long"}, partition_columns=("_event_hour",))
    big = add(
        "_event_hour=0000000021/big.parquet",
        partition={"_event_hour": "0000000021"},
        stats=stats(1, low={"count": 2**40}, high={"count": 2**40}),
    )
    gone = [removed(number // 2, f"f{number}") for number in range(0, 12, 2)]
    table.commit([big], gone, metadata=wider).checkpoint()
    assert built(table).kind == "incremental"
    assert_exact(table, 1)


def changed(table: TableBuilder, how: str) -> str:
    """Change the table so that older parts cannot serve; the words that the reason must have."""
    partition = ("_event_hour",)
    match how:
        case "type":
            metadata = actions.metadata(SCHEMA | {"value": "string"}, partition_columns=partition)
            table.commit([], metadata=metadata).checkpoint()
            words = "the type of the column value changed"
        case "order column":
            settings = {"lazydelta.time.column": "date"}
            metadata = actions.metadata(SCHEMA, partition_columns=partition, configuration=settings)
            table.commit([], metadata=metadata).checkpoint()
            words = "it is sorted by _event_hour, not by min.date"
        case "partition columns":
            settings = {"lazydelta.time.column": "_event_hour"}
            metadata = actions.metadata(
                SCHEMA, partition_columns=("_event_hour", "date"), configuration=settings
            )
            table.commit([], metadata=metadata).checkpoint()
            words = "the partition columns changed"
        case "table id":
            metadata = actions.metadata(SCHEMA, partition_columns=partition, table_id="another")
            table.commit([], metadata=metadata).checkpoint()
            words = "it is of the table 11111111"
        case "commit gone":
            table.commit([file_at(30, "a")]).commit([file_at(31, "b")]).checkpoint().delete_commit(1)
            words = "commit 1 is gone"
        case "part gone":
            table.commit([file_at(30, "a")]).checkpoint()
            (table.path / LAZY / manifest_of(table.path, 0)["parts"][1]["file"]).unlink()
            words = "is missing"
        case "part damaged":
            table.commit([], [removed(1, "f3")]).checkpoint()
            part = table.path / LAZY / manifest_of(table.path, 0)["parts"][0]["file"]
            part.write_bytes(b"x" * part.stat().st_size)
            words = "a file of the sidecar cannot be read"
        case "another log":
            table.append_to_commit(0, '{"commitInfo":{}}\n').commit([file_at(30, "a")]).checkpoint()
            words = "is not the commit it was built from"
        case "manifest torn":
            table.commit([file_at(30, "a")]).checkpoint()
            path = next((table.path / LAZY).glob("*.manifest.json"))
            path.write_bytes(path.read_bytes()[:100])
            words = "the manifest cannot be read"
        case "checkpoint differs":
            table.commit([file_at(30, "a")])
            table.states[-1].live.popitem()  # the checkpoint will list one file less than the commits say
            table.checkpoint()
            words = "the commits lead to 41 files, the checkpoint lists 40"
        case _:
            raise AssertionError(how)
    return words


@pytest.mark.parametrize(
    "how",
    [
        "type",
        "order column",
        "partition columns",
        "table id",
        "commit gone",
        "part gone",
        "part damaged",
        "another log",
        "manifest torn",
        "checkpoint differs",
    ],
)
def test_where_older_parts_cannot_serve_the_build_is_full_and_says_why(table: TableBuilder, how: str) -> None:
    words = changed(table, how)
    report = built(table)
    assert report.kind == "full"
    assert "the sidecar of version 0 is no ground to build upon" in report.reason
    assert words in report.reason
    if how not in {"type", "partition columns"}:  # the log's old values make no sense under the new schema
        assert_exact(table, table.version)
    assert part_files(table.path) >= referenced_files(manifest_of(table.path, table.version))


def test_an_earlier_sidecar_serves_where_the_newest_is_stale(table: TableBuilder) -> None:
    table.commit([file_at(30, "a")]).checkpoint()
    built(table)
    path = table.path / LAZY / f"v{1:020}.manifest.json"
    path.write_text("{", encoding="utf-8")
    table.commit([file_at(31, "b")]).checkpoint()
    report = built(table)
    assert report.kind == "incremental"
    assert "2 commits after the sidecar of version 0" in report.reason
    assert_exact(table, 2)


# --- a manifest that is in the way ---------------------------------------------


def test_a_restored_log_gets_a_sidecar_of_its_own(table: TableBuilder, tmp_path: Path) -> None:
    other = telemetry(tmp_path / "other")
    other.commit([file_at(number, f"other-{number}") for number in range(9)]).checkpoint()
    shutil.copytree(table.path / LAZY, other.path / LAZY)
    report = built(other)
    assert report.kind == "full"
    assert "the manifest that was there is stale" in report.reason
    assert_exact(other, 0)


@pytest.mark.parametrize("body", [b"", b"{", b'{"format": 1}', b"\xff\xfe", b"[]"])
def test_a_torn_manifest_is_replaced(table: TableBuilder, body: bytes) -> None:
    path = next((table.path / LAZY).glob("*.manifest.json"))
    path.write_bytes(body)
    report = built(table)
    assert report.kind == "full"
    assert "the manifest" in report.reason
    assert_exact(table, 0)


def test_a_manifest_whose_part_is_missing_is_replaced(table: TableBuilder) -> None:
    (table.path / LAZY / manifest_of(table.path, 0)["parts"][0]["file"]).unlink()
    report = built(table)
    assert report.kind == "full"
    assert "is missing" in report.reason
    assert_exact(table, 0)


def test_a_folder_in_the_manifests_place_is_an_error_and_no_endless_wait(table: TableBuilder) -> None:
    manifest = next((table.path / LAZY).glob("*.manifest.json"))
    manifest.unlink()
    manifest.mkdir()
    with pytest.raises(StorageError, match="a folder is in the place of a file"):
        built(table)


def test_a_manifest_of_a_newer_format_is_not_touched(table: TableBuilder) -> None:
    path = next((table.path / LAZY).glob("*.manifest.json"))
    path.write_text('{"format": 2, "something": "new"}', encoding="utf-8")
    with pytest.raises(UnsupportedTableError, match="has format 2"):
        built(table)
    assert path.read_text(encoding="utf-8") == '{"format": 2, "something": "new"}'


# --- what cannot be built ------------------------------------------------------


def test_a_table_without_a_checkpoint_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    table = telemetry(tmp_path).commit([file_at(1, "a")])
    with pytest.raises(InvalidRequestError, match="the table has no checkpoint") as caught:
        built(table)
    assert "sidecar build --checkpoint" in caught.value.fix
    table.commit().checkpoint()
    with pytest.raises(InvalidRequestError, match="no checkpoint up to version 0"):
        built(table, version=0)
    assert not (tmp_path / LAZY).exists()


def test_a_folder_without_a_table_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError):
        build_sidecar(storage_of(tmp_path), config=CONFIG)


def test_a_version_that_does_not_exist_is_an_error(table: TableBuilder) -> None:
    with pytest.raises(VersionNotFoundError):
        built(table, version=99)


def test_a_time_column_that_does_not_exist_is_an_error(table: TableBuilder) -> None:
    with pytest.raises(InvalidRequestError, match="cannot be sorted by 'nothing'"):
        built(table, config=msgspec.structs.replace(CONFIG, time_column="nothing"))


def test_a_damaged_checkpoint_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    table = telemetry(tmp_path).commit([file_at(n, f"f{n}") for n in range(50)]).checkpoint()
    path = table.log_file("*.checkpoint.parquet")
    body = bytearray(path.read_bytes())
    body[200:2000] = b"\0" * 1800
    path.write_bytes(body)
    with pytest.raises(CorruptLogError):
        built(table)
    assert list((tmp_path / LAZY).glob("*")) == []


def test_a_checkpoint_with_an_add_twice_is_written_as_it_is(tmp_path: Path) -> None:
    """The builder copies; that a checkpoint contradicts itself is for `verify` to say."""
    table = telemetry(tmp_path).commit([file_at(1, "a")]).checkpoint()
    path = table.log_file("*.checkpoint.parquet")
    rows = pq.read_table(path)
    pq.write_table(pa.concat_tables([rows, rows]), path)
    assert built(table).num_files == 2
