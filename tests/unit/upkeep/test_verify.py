"""A sidecar that is right passes; whatever is damaged, on disk and for real, is found and named."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lazydelta.errors import CorruptLogError, TableNotFoundError, VersionNotFoundError
from lazydelta.sidecar import SidecarConfig
from lazydelta.upkeep.build import build_sidecar
from lazydelta.upkeep.findings import Difference
from lazydelta.upkeep.verify import VerifyReport, verify_sidecar
from tests.support.actions import add, inline_dv, metadata, relative_dv, stats
from tests.support.far_moments import FAR_KINDS, far_table
from tests.support.sidecar_damage import (
    CONFIG,
    edit_manifest,
    lazy_folder,
    numbered_file,
    numbered_files,
    only,
    rewrite_part,
    storage_of,
    with_value,
)
from tests.support.table_builder import TableBuilder


def build(table: TableBuilder, **options: Any) -> None:
    build_sidecar(storage_of(table), config=CONFIG, **options)


def verify(table: TableBuilder, version: int | None = None, config: SidecarConfig = CONFIG) -> VerifyReport:
    report = verify_sidecar(storage_of(table), config=config, version=version)
    assert report.is_ok is (report.differences_total == 0) is not report.differences
    return report


def differences(table: TableBuilder) -> list[Difference]:
    return list(verify(table).differences)


def kinds(table: TableBuilder) -> set[str]:
    return {found.kind for found in differences(table)}


@pytest.fixture
def table(made: TableBuilder, tmp_path: Path) -> TableBuilder:
    """Forty files in a checkpoint with its sidecar of five row groups."""
    return made.copy_to(tmp_path / "table")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> TableBuilder:
    """Built once, and copied by each test that changes it."""
    builder = (
        TableBuilder(tmp_path_factory.mktemp("made")).commit(adds=numbered_files(range(40))).checkpoint()
    )
    build(builder)
    return builder


# --- what is right -------------------------------------------------------------


@pytest.mark.parametrize("kind", FAR_KINDS, ids=str)
@pytest.mark.parametrize("time_column", [None, "moment"])
def test_a_sidecar_of_moments_that_python_has_no_words_for_passes(
    tmp_path: Path, kind: pa.DataType, time_column: str | None
) -> None:
    far_table(tmp_path, kind, files=5)
    config = msgspec.structs.replace(CONFIG, row_group_rows=2, time_column=time_column)
    build_sidecar(storage_of(tmp_path), config=config)
    assert verify_sidecar(storage_of(tmp_path), config=config).differences == ()


@pytest.mark.parametrize("kind", ["v1", "v1-multipart", "v2-parquet", "v2-json", "classic-named-v2"])
@pytest.mark.parametrize("form", ["json", "parsed", "both", "none"])
def test_a_sidecar_of_any_checkpoint_passes(tmp_path: Path, kind: str, form: str) -> None:
    files = [
        *numbered_files(range(30)),
        numbered_file(30, deletion_vector=inline_dv()),
        numbered_file(31, deletion_vector=relative_dv(offset=0)),
        numbered_file(32, tags={"a": "b", "c": "d"}, clusteringProvider="liquid"),
        numbered_file(33, partition={"date": None}),
        add("spaced%20name", stats=None),
        add("broken-stats", stats="{this is not JSON"),
    ]
    table = TableBuilder(tmp_path, row_tracking=True).commit(adds=files).checkpoint(kind, stats=form)
    build(table)
    report = verify(table)
    assert report.differences == ()
    assert (report.files_checked, report.rows_checked, report.parts_checked) == (36, 36, 1)
    assert report.row_groups_checked == 5


@pytest.mark.parametrize("column_mapping", [None, "name"])
def test_a_sidecar_that_references_older_parts_passes(tmp_path: Path, column_mapping: str | None) -> None:
    table = TableBuilder(tmp_path, column_mapping=column_mapping).commit(adds=numbered_files(range(100)))
    table.checkpoint(stats="both")
    build(table)
    for step in range(3):
        added = numbered_files(range(100 + 5 * step, 105 + 5 * step))
        table.commit(adds=added, removes=[f"part-{step:05}.parquet", f"part-{50 + step:05}.parquet"])
        table.commit(adds=[numbered_file(60 + step, size=77)])  # added again with another size
        table.checkpoint(stats="both")
        build(table)
    report = verify(table)
    assert report.differences == ()
    assert report.files_checked == report.rows_checked == 109
    assert report.parts_checked > 1
    assert [verify(table, version).is_ok for version in (0, 2, 4)] == [True] * 3


def test_an_empty_table_passes(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit().checkpoint()
    build(table)
    report = verify(table)
    assert (report.is_ok, report.files_checked, report.parts_checked) == (True, 0, 0)


def test_a_part_from_before_a_new_column_passes_and_its_lack_is_no_difference(tmp_path: Path) -> None:
    columns = {"value": "double", "date": "date"}
    table = TableBuilder(tmp_path, schema=columns)
    first = [add(f"a{n}", stats=stats(1, low={"value": n}, high={"value": n})) for n in range(20)]
    table.commit(adds=first).checkpoint()
    build(table)
    wider = {**columns, "extra": "long"}
    told = stats(1, low={"value": 1, "extra": 5}, high={"value": 1, "extra": 6})
    table.commit(adds=[add("b", stats=told)], metadata=metadata(wider)).checkpoint()
    build(table)
    report = verify(table)
    assert report.differences == ()
    assert report.parts_checked == 2


def test_the_version_is_replayed_where_its_checkpoint_is_gone(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit(adds=numbered_files(range(40))).checkpoint()
    build(table)  # no copy of one: of that log only the checkpoint could prove that it is the same
    only_checkpoint = table.log_file("*.checkpoint.parquet")
    only_checkpoint.unlink()
    table.without_hint().crc()
    report = verify(table)
    assert report.differences == ()
    assert report.files_checked == 40


def test_nothing_is_written_by_a_verification(table: TableBuilder) -> None:
    before = {path: path.stat().st_mtime_ns for path in table.path.rglob("*")}
    verify(table)
    assert {path: path.stat().st_mtime_ns for path in table.path.rglob("*")} == before


def test_many_files_are_compared_on_disk_within_the_memory_given(tmp_path: Path) -> None:
    files = [add(f"part-{n:06}", stats=stats(n, low={"count": n}, high={"count": n})) for n in range(15_000)]
    table = TableBuilder(tmp_path / "t").commit(adds=files).checkpoint()
    config = SidecarConfig(sort_memory_bytes=1 << 20)
    build_sidecar(storage_of(table), config=config)
    report = verify(table, config=config)
    assert report.differences == ()
    assert report.files_checked == 15_000
    rewrite_part(table, with_value("min.count", 12_000, 1))
    [found] = verify(table, config=config).differences
    assert (found.kind, found.path) == ("differs", "part-012000")


@pytest.fixture
def wide_table(tmp_path: Path) -> TableBuilder:
    """A table so wide that its part is split into index and statistics."""
    columns = {"date": "date"} | {f"c{n:03}": "long" for n in range(30)}
    files = []
    for number in range(40):
        values = {f"c{n:03}": number + n for n in range(30)}
        told = stats(9, low=values, high=values, nulls=dict.fromkeys(values, 0))
        files.append(add(f"f{number:02}", stats=told))
    builder = TableBuilder(tmp_path / "wide", schema=columns).commit(adds=files).checkpoint()
    build_sidecar(storage_of(builder), config=msgspec.structs.replace(CONFIG, footer_bytes_max=20_000))
    assert only(builder, "*.stats.parquet").exists()
    return builder


def test_a_split_part_passes(wide_table: TableBuilder) -> None:
    report = verify(wide_table)
    assert report.differences == ()
    assert (report.parts_checked, report.rows_checked) == (1, 40)


@pytest.mark.parametrize("half", ["index", "stats"])
def test_a_missing_or_torn_half_of_a_split_part_is_named(wide_table: TableBuilder, half: str) -> None:
    path = only(wide_table, f"*.{half}.parquet")
    path.write_bytes(path.read_bytes()[:-10])
    assert any(path.name in found.what for found in differences(wide_table))
    path.unlink()
    assert any(f"{path.name} is missing" in found.what for found in differences(wide_table))


def test_a_table_without_partitions_is_sorted_by_path_alone(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path, partition_columns=()).commit(
        adds=[numbered_file(n, partition={}) for n in range(30)]
    )
    build(table.checkpoint())
    assert verify(table).differences == ()
    rewrite_part(table, lambda rows: rows.take(pa.array([*range(28), 29, 28])))
    assert any("not sorted at part-00028" in found.what for found in differences(table))


def test_a_table_sorted_by_a_column_of_statistics_passes_and_its_ranges_are_checked(tmp_path: Path) -> None:
    config = msgspec.structs.replace(CONFIG, time_column="count")
    files = [*numbered_files(range(30)), add("without", stats=None)]
    table = TableBuilder(tmp_path).commit(adds=files).checkpoint()
    build_sidecar(storage_of(table), config=config)
    assert verify(table, config=config).differences == ()
    edit_manifest(table, lambda m: m["row_groups"][3].update(event_hour_max="30"))
    [found] = verify(table, config=config).differences
    assert "row group 3 event_hour_max is '30', but a row has" in found.what


# --- parts ---------------------------------------------------------------------


def test_a_missing_part_is_named(table: TableBuilder) -> None:
    part = only(table, "*.parquet")
    part.unlink()
    [found] = [found for found in differences(table) if found.kind == "part"]
    assert (found.path, found.what) == (part.name, f"not read: its part {part.name} is missing")


@pytest.mark.parametrize("keep_bytes", [0, 3, 1000, -1])
def test_a_truncated_part_is_named(table: TableBuilder, keep_bytes: int) -> None:
    part = only(table, "*.parquet")
    part.write_bytes(part.read_bytes()[:keep_bytes])
    [found] = [found for found in differences(table) if found.kind == "part"]
    assert found.path == part.name
    assert "bytes instead of" in found.what


def test_a_flipped_bit_is_found_wherever_it_changes_a_row(table: TableBuilder) -> None:
    part = only(table, "*.parquet")
    body, rows, harmless = part.read_bytes(), pq.read_table(only(table, "*.parquet")), 0
    footer_start = len(body) - 8 - int.from_bytes(body[-8:-4], "little")
    for at in range(4, footer_start, footer_start // 60):
        part.write_bytes(body[:at] + bytes([body[at] ^ 0x10]) + body[at + 1 :])
        if not kinds(table) & {"part", "differs", "row group"}:
            assert pq.read_table(part).equals(rows), f"byte {at}"
            harmless += 1  # in a header of a page, in what nobody reads
    assert harmless < 40
    part.write_bytes(body)
    assert verify(table).is_ok


def test_a_flipped_bit_in_the_footer_is_damage_or_harmless_and_never_a_crash(table: TableBuilder) -> None:
    part = only(table, "*.parquet")
    body = part.read_bytes()
    footer_start = len(body) - 8 - int.from_bytes(body[-8:-4], "little")
    found = 0
    for at in range(footer_start, len(body), (len(body) - footer_start) // 70):
        part.write_bytes(body[:at] + bytes([body[at] ^ 0x04]) + body[at + 1 :])
        found += not verify(table).is_ok
    assert found > 35


def test_a_part_that_is_another_parquet_file_is_named(table: TableBuilder, tmp_path: Path) -> None:
    other = TableBuilder(tmp_path / "other").commit(adds=numbered_files(range(100, 140))).checkpoint()
    build(other)
    part = only(table, "*.parquet")
    shutil.copy(only(other, "*.parquet"), part)
    size = part.stat().st_size
    edit_manifest(table, lambda m: m["parts"][0].update(size_bytes=size, footer_crc32=None))
    assert {"part", "missing", "extra"} <= kinds(table)


def test_a_wrong_row_count_is_named(table: TableBuilder) -> None:
    def change(manifest: Any) -> None:
        manifest["num_files"] += 1
        manifest["parts"][0]["num_rows"] += 1

    edit_manifest(table, change)
    found = differences(table)
    assert any(f.kind == "part" and "rows" in f.what for f in found)
    assert any(f.kind == "manifest" and "41 files, the log has 40" in f.what for f in found)


# --- rows ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("size", 1),
        ("modification_time", 1),
        ("num_records", 1),
        ("tight_bounds", True),
        ("min.value", -1.0),
        ("max.count", 10**6),
        ("null_count.count", 7),
        ("min.device_id", "a"),
        ("raw.date", "2026-02-1"),
        ("tags", [("x", "y")]),
        ("base_row_id", 1),
        ("default_row_commit_version", 1),
        ("clustering_provider", "liquid"),
        ("dv.cardinality", 1),
    ],
)
def test_a_changed_value_is_named_with_its_file_and_column(
    table: TableBuilder, column: str, value: object
) -> None:
    part = rewrite_part(table, with_value(column, 11, value))
    found = [f for f in differences(table) if f.kind == "differs"]
    assert len(found) == 1
    path = pq.read_table(lazy_folder(table) / part, columns=["path"])["path"][11].as_py()
    assert found[0].path == path
    assert f"in {part}: {column} is " in found[0].what


def test_a_changed_deletion_vector_is_another_file(table: TableBuilder) -> None:
    rewrite_part(table, with_value("dv.storageType", 11, "u"))
    assert {"missing", "extra"} <= kinds(table)


def test_a_file_that_is_missing_extra_or_there_twice_is_named(table: TableBuilder) -> None:
    rewrite_part(table, with_value("path", 3, "part-99999.parquet"))
    found = {(f.kind, f.path) for f in differences(table)}
    assert ("extra", "part-99999.parquet") in found
    assert {path for kind, path in found if kind == "missing"} == {"part-00021.parquet"}


def test_a_file_that_is_there_twice_is_named(table: TableBuilder) -> None:
    rewrite_part(table, with_value("path", 3, "part-00000.parquet"))
    found = {(f.kind, f.path) for f in differences(table)}
    assert ("twice", "part-00000.parquet") in found
    assert ("missing", "part-00021.parquet") in found


def test_a_row_that_is_wrongly_taken_for_removed_is_missing(table: TableBuilder) -> None:
    def change(manifest: Any) -> None:
        manifest["parts"][0]["removed"] = [0, 2]
        manifest["num_files"] -= 2

    edit_manifest(table, change)
    report = verify(table)
    assert report.differences_by_kind["missing"] == 2
    assert {f.path for f in report.differences if f.kind == "missing"} == {
        "part-00000.parquet",
        "part-00020.parquet",
    }


def test_a_removed_row_that_is_forgotten_is_extra(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit(adds=numbered_files(range(200))).checkpoint()
    build(table)
    table.commit(removes=["part-00007.parquet"]).checkpoint()
    build(table)

    def change(manifest: Any) -> None:
        [entry] = [part for part in manifest["parts"] if part.get("removed")]
        entry["removed"] = []
        manifest["num_files"] += 1

    edit_manifest(table, change, version=1)
    assert ("extra", "part-00007.parquet") in {(f.kind, f.path) for f in differences(table)}


def test_every_difference_is_counted_and_only_the_first_are_named(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit(adds=numbered_files(range(100))).checkpoint()
    build(table)
    rewrite_part(table, lambda rows: rows.set_column(1, rows.schema.field(1), pa.array([5] * rows.num_rows)))
    report = verify(table)
    assert report.differences_by_kind["differs"] == 100
    assert len(report.differences) == 20
    assert report.differences_total >= 100


# --- another log ---------------------------------------------------------------


def test_a_sidecar_of_another_log_is_named(table: TableBuilder, tmp_path: Path) -> None:
    other = TableBuilder(tmp_path / "other").commit(adds=numbered_files(range(1, 41))).checkpoint()
    shutil.copytree(lazy_folder(table), lazy_folder(other))
    found = differences(other)
    assert any(f.kind == "manifest" and "does not belong to this log" in f.what for f in found)
    assert {"missing", "extra"} <= {f.kind for f in found}


def test_a_sidecar_newer_than_the_log_is_named(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t").commit(adds=numbered_files(range(5))).checkpoint()
    table.commit(adds=numbered_files(range(5, 9))).checkpoint()
    build(table)
    for path in table.log.glob(f"{1:020}*"):
        path.unlink()
    found = differences(table.without_hint())
    assert any("the log does not hold its version" in f.what for f in found)


# --- requests ------------------------------------------------------------------


def test_no_table_is_told(tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError):
        verify_sidecar(storage_of(tmp_path / "nothing"), config=CONFIG)


def test_a_table_without_a_sidecar_is_told_how_to_get_one(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit(adds=["a"]).checkpoint()
    with pytest.raises(VersionNotFoundError, match="sidecar build"):
        verify(table)


def test_a_version_without_a_sidecar_is_told_which_have_one(table: TableBuilder) -> None:
    table.commit(adds=["x"])
    with pytest.raises(VersionNotFoundError, match="of the versions 0"):
        verify(table, 1)


def test_the_verdict_is_an_error_with_exit_code_5_that_names_the_way_out(table: TableBuilder) -> None:
    rewrite_part(table, with_value("size", 11, 1))
    error = verify(table).error()
    assert isinstance(error, CorruptLogError)
    assert error.exit_code == 5
    assert "1 differs" in error.what
    assert "sidecar build --full" in error.fix


def test_building_in_full_mends_what_verify_found(table: TableBuilder) -> None:
    rewrite_part(table, with_value("size", 11, 1))
    assert not verify(table).is_ok
    build(table, full=True)
    assert verify(table).is_ok


def test_the_report_is_plain_json(table: TableBuilder) -> None:
    rewrite_part(table, with_value("size", 11, 1))
    report = json.loads(msgspec.json.encode(verify(table)))
    assert report["is_ok"] is False
    assert report["differences"][0].keys() == {"kind", "path", "what"}
    assert os.fspath(table.path) in report["table"]
