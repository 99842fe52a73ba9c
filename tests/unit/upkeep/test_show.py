"""What sidecars there are, told from listings and manifests alone."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from lazydelta.errors import TableNotFoundError
from lazydelta.sidecar import delta_name, manifest_name, part_name
from lazydelta.upkeep.build import build_sidecar
from lazydelta.upkeep.deltas import write_delta_files
from lazydelta.upkeep.show import FolderSummary, describe_sidecars
from tests.support.actions import add
from tests.support.sidecar_damage import CONFIG, edit_manifest, lazy_folder, numbered_files, storage_of
from tests.support.table_builder import TableBuilder


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    """Sidecars of the versions 0 and 1, and a delta file up to version 2."""
    builder = TableBuilder(tmp_path / "table").commit(adds=numbered_files(range(200))).checkpoint()
    build_sidecar(storage_of(builder), config=CONFIG)
    builder.commit(adds=numbered_files(range(200, 205)), removes=["part-00003.parquet"]).checkpoint()
    build_sidecar(storage_of(builder), config=CONFIG)
    builder.commit(adds=numbered_files(range(205, 207)))
    config = msgspec.structs.replace(CONFIG, delta_commits_min=1)
    write_delta_files(storage_of(builder), config=config)
    return builder


def describe(table: TableBuilder) -> FolderSummary:
    return describe_sidecars(storage_of(table), CONFIG)


def test_every_sidecar_is_told_with_its_parts(table: TableBuilder) -> None:
    first, second = describe(table).sidecars
    assert [(s.version, s.file, s.is_valid, s.problem) for s in (first, second)] == [
        (0, manifest_name(0), True, None),
        (1, manifest_name(1), True, None),
    ]
    assert (first.num_files, first.removed_rows, first.row_groups) == (200, 0, 25)
    assert (second.num_files, second.removed_rows) == (204, 1)
    assert (second.order_column, second.order_min, second.order_max) == ("date", "2026-02-01", "2026-02-20")
    assert {part.is_of_this_build for part in second.parts} == {True, False}
    [older] = [part for part in second.parts if not part.is_of_this_build]
    assert (older.file, older.rows, older.removed_rows) == (first.parts[0].file, 200, 1)
    assert second.size_bytes == sum(part.size_bytes for part in second.parts)
    on_disk = {path.name: path.stat().st_size for path in lazy_folder(table).glob("*.parquet")}
    assert all(on_disk[part.file] == part.size_bytes for part in second.parts)


def test_a_small_part_stands_on_a_lower_level_than_a_full_one(table: TableBuilder) -> None:
    levels = {part.rows: part.level for part in describe(table).sidecars[1].parts}
    assert levels[200] < levels[5]


def test_a_delta_file_is_told_with_its_versions_and_rows(table: TableBuilder) -> None:
    [delta] = describe(table).deltas
    assert (delta.file, delta.version, delta.after, delta.until) == (delta_name(1, 2), 1, 1, 2)
    assert (delta.rows, delta.is_valid, delta.problem) == (2, True, None)


def test_the_range_is_by_value_not_by_text(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path, schema={"n": "long"}, partition_columns=["n"])
    table.commit(adds=[add(f"f{n}", partition={"n": str(n)}) for n in range(120)]).checkpoint()
    build_sidecar(storage_of(table), config=CONFIG)
    [sidecar] = describe(table).sidecars
    assert (sidecar.order_min, sidecar.order_max) == ("0", "119")


def test_a_sidecar_that_does_not_belong_to_the_log_says_why(table: TableBuilder) -> None:
    table.append_to_commit(0, "\n")
    first, second = describe(table).sidecars
    assert not first.is_valid
    assert "is not the commit it was built from" in (first.problem or "")
    assert second.is_valid


def test_a_sidecar_without_one_of_its_parts_says_which(table: TableBuilder) -> None:
    [part] = lazy_folder(table).glob(f"v{0:020}-*.parquet")
    part.unlink()
    assert all(part.name in (sidecar.problem or "") for sidecar in describe(table).sidecars)


def test_a_manifest_that_cannot_be_read_is_told_without_its_numbers(table: TableBuilder) -> None:
    (lazy_folder(table) / manifest_name(0)).write_bytes(b"torn")
    edit_manifest(table, lambda manifest: manifest.update(format=7), version=1)
    first, second = describe(table).sidecars
    assert (first.is_valid, first.num_files, first.parts) == (False, None, ())
    assert "cannot be read" in (first.problem or "")
    assert "format 7" in (second.problem or "")


def test_leftovers_are_counted(table: TableBuilder) -> None:
    folder = lazy_folder(table)
    (folder / part_name(1, "a" * 16, 0)).write_bytes(b"")
    (folder / f".{manifest_name(2)}.{'0' * 32}.tmp").write_bytes(b"")
    (folder / "notes.txt").write_bytes(b"")
    summary = describe(table)
    assert (summary.unreferenced_parts, summary.temporary_files, summary.strangers) == (1, 1, 1)


def test_no_part_is_opened(table: TableBuilder) -> None:
    storage = storage_of(table)
    describe_sidecars(storage, CONFIG)
    counted = storage.counters.snapshot().requests_by_kind
    assert counted["list"] == 2
    assert counted["get"] == 2  # the manifests


def test_a_table_without_sidecars_has_none(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit(adds=["a"])
    assert describe(table).sidecars == describe(table).deltas == ()


def test_no_table_is_told(tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError):
        describe_sidecars(storage_of(tmp_path), CONFIG)
