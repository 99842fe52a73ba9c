"""What is left of older sidecars goes; what a reader or a build under way needs stays."""

from __future__ import annotations

import math
import os
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lazydelta.errors import InvalidRequestError, StorageError, TableNotFoundError
from lazydelta.sidecar import delta_name, manifest_name, part_name
from lazydelta.upkeep.build import build_sidecar
from lazydelta.upkeep.clean import CleanReport, clean_sidecars
from lazydelta.upkeep.deltas import write_delta_files
from lazydelta.upkeep.verify import verify_sidecar
from tests.support.faulty_storage import fail_at, faulty
from tests.support.sidecar_damage import CONFIG, edit_manifest, lazy_folder, numbered_files, storage_of
from tests.support.table_builder import TableBuilder

NOW_MS = 1_900_000_000_000
HOUR_MS = 3_600_000


@pytest.fixture
def table(made: TableBuilder, tmp_path: Path) -> TableBuilder:
    """Sidecars of the versions 0, 1 and 2; the later ones reference parts of the first."""
    return made.copy_to(tmp_path / "table")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> TableBuilder:
    """Built once, and copied by each test that changes it."""
    builder = (
        TableBuilder(tmp_path_factory.mktemp("made")).commit(adds=numbered_files(range(300))).checkpoint()
    )
    build(builder)
    for first in (300, 310):
        builder.commit(
            adds=numbered_files(range(first, first + 10)), removes=[f"part-{first - 300:05}.parquet"]
        )
        builder.checkpoint()
        build(builder)
    age(builder, hours=1000)
    return builder


def build(table: TableBuilder, **options: Any) -> None:
    build_sidecar(storage_of(table), config=CONFIG, **options)


def write_deltas(table: TableBuilder) -> None:
    config = msgspec.structs.replace(CONFIG, delta_commits_min=1)
    assert write_delta_files(storage_of(table), config=config)


def age(table: TableBuilder, pattern: str = "*", *, hours: float) -> None:
    """Set how long ago the files were written."""
    then_ns = int((NOW_MS - hours * HOUR_MS) * 1_000_000)
    for path in [*lazy_folder(table).glob(pattern), *lazy_folder(table).glob(f".{pattern}")]:
        os.utime(path, ns=(then_ns, then_ns))


def clean(table: TableBuilder, **options: Any) -> CleanReport:
    given = {"retention_hours": 168, "now_ms": NOW_MS} | options
    return clean_sidecars(storage_of(table), config=CONFIG, **given)


def names(table: TableBuilder) -> set[str]:
    return {path.name for path in lazy_folder(table).iterdir()}


def removed(report: CleanReport) -> dict[str, str]:
    return {removal.name.rpartition("/")[2]: removal.reason for removal in report.removed}


def put(table: TableBuilder, name: str, hours: float = 1000) -> str:
    (lazy_folder(table) / name).write_bytes(b"content")
    age(table, name.removeprefix("."), hours=hours)
    return name


# --- sidecars ------------------------------------------------------------------


def test_only_the_newest_sidecar_stays_past_the_retention_with_every_part_it_references(
    table: TableBuilder,
) -> None:
    before = names(table)
    report = clean(table)
    gone = before - names(table)
    assert set(removed(report)) == gone
    assert {manifest_name(0), manifest_name(1)} <= gone
    assert report.versions_kept == (2,)
    assert any(name.startswith(f"v{0:020}-") for name in names(table)), "a part of version 0 is still needed"
    assert verify_sidecar(storage_of(table), config=CONFIG).is_ok


def test_a_second_run_finds_nothing(table: TableBuilder) -> None:
    clean(table)
    assert clean(table).removed == ()


def test_an_older_sidecar_stays_for_the_retention_after_it_was_replaced(table: TableBuilder) -> None:
    age(table, manifest_name(2), hours=100)
    assert set(clean(table).versions_kept) == {1, 2}, "0 was replaced by 1 long ago, 1 by 2 just now"
    assert clean(table, retention_hours=99).versions_kept == (2,)


def test_the_reason_says_when_it_was_replaced(table: TableBuilder) -> None:
    age(table, manifest_name(2), hours=200)
    assert "replaced 200 hours ago" in removed(clean(table, dry_run=True))[manifest_name(1)]


def test_parts_of_a_sidecar_that_stays_stay(table: TableBuilder) -> None:
    age(table, manifest_name(2), hours=1)
    age(table, manifest_name(1), hours=1)
    assert clean(table).removed == ()


def test_a_dry_run_deletes_nothing_and_tells_the_same(table: TableBuilder) -> None:
    before = names(table)
    dry = clean(table, dry_run=True)
    assert names(table) == before
    real = clean(table)
    assert dry.removed == real.removed
    assert (dry.is_dry_run, real.is_dry_run) == (True, False)
    assert dry.bytes_removed == real.bytes_removed > 0


def test_the_newest_sidecar_stays_however_old_it_is(table: TableBuilder) -> None:
    clean(table)
    assert clean(table, retention_hours=0, now_ms=NOW_MS * 2).removed == ()


def test_a_sidecar_whose_part_is_missing_is_not_the_newest_valid_one(table: TableBuilder) -> None:
    [part] = lazy_folder(table).glob(f"v{2:020}-*.parquet")
    part.unlink()
    report = clean(table)
    assert report.versions_kept == (1,)
    assert part.name in removed(report)[manifest_name(2)]
    assert verify_sidecar(storage_of(table), config=CONFIG).is_ok


def test_a_manifest_that_was_just_written_stays_even_if_its_parts_are_not_listed_yet(
    table: TableBuilder,
) -> None:
    for part in lazy_folder(table).glob(f"v{2:020}-*.parquet"):
        part.unlink()
    age(table, manifest_name(2), hours=1)
    assert manifest_name(2) not in removed(clean(table))


def test_a_manifest_of_another_log_goes_and_its_parts_too(table: TableBuilder, tmp_path: Path) -> None:
    other = TableBuilder(tmp_path / "other").commit(adds=numbered_files(range(7))).checkpoint()
    shutil.copytree(lazy_folder(table), lazy_folder(other))
    report = clean(other)
    assert names(other) == set()
    assert report.versions_kept == ()
    assert "is not the commit it was built from" in removed(report)[manifest_name(0)]


def test_a_torn_manifest_goes(table: TableBuilder) -> None:
    (lazy_folder(table) / manifest_name(1)).write_bytes(b'{"format": 1, "ver')
    age(table, manifest_name(1), hours=25)
    assert "cannot be read" in removed(clean(table))[manifest_name(1)]


def test_a_manifest_of_a_newer_format_stays_and_no_part_goes_while_it_is_there(table: TableBuilder) -> None:
    edit_manifest(table, lambda manifest: manifest.update(format=2), version=0)
    orphan = put(table, part_name(0, "f" * 16, 0))
    age(table, manifest_name(0), hours=1000)
    report = clean(table)
    assert set(removed(report)) == {manifest_name(1)}
    assert orphan in names(table)


# --- leftovers -----------------------------------------------------------------


def test_a_part_that_no_manifest_names_goes_after_the_grace(table: TableBuilder) -> None:
    old = put(table, part_name(2, "a" * 16, 0), hours=25)
    young = put(table, part_name(2, "b" * 16, 0), hours=23)
    gone = removed(clean(table))
    assert gone[old] == "no manifest names it"
    assert young not in gone
    assert {old, young} & names(table) == {young}


def test_both_halves_of_a_split_part_go(table: TableBuilder) -> None:
    base = part_name(2, "a" * 16, 0).removesuffix(".parquet")
    halves = {put(table, f"{base}.index.parquet"), put(table, f"{base}.stats.parquet")}
    assert halves <= set(removed(clean(table)))


@pytest.fixture
def gathered(tmp_path: Path) -> TableBuilder:
    """Delta files below and above the sidecar of version 2."""
    builder = TableBuilder(tmp_path / "gathered").commit(adds=numbered_files(range(9))).checkpoint()
    builder.commit(adds=numbered_files(range(9, 12))).commit(removes=["part-00000.parquet"])
    write_deltas(builder)
    builder.checkpoint()
    build(builder)
    builder.commit(adds=numbered_files(range(12, 15)))
    write_deltas(builder)
    age(builder, hours=25)
    return builder


def test_a_delta_file_goes_once_a_sidecar_covers_it(gathered: TableBuilder) -> None:
    assert {delta_name(0, 2), delta_name(2, 3)} <= names(gathered)
    gone = removed(clean(gathered))
    assert gone == {delta_name(0, 2): "the sidecar of version 2 holds what it holds"}
    assert delta_name(2, 3) in names(gathered)


def test_a_young_delta_file_stays(gathered: TableBuilder) -> None:
    age(gathered, "*.delta.parquet", hours=23)
    assert removed(clean(gathered)) == {}


def test_delta_files_stay_where_no_sidecar_covers_them(gathered: TableBuilder) -> None:
    (lazy_folder(gathered) / manifest_name(2)).unlink()
    assert not [name for name in removed(clean(gathered)) if "delta" in name]


def test_a_delta_file_of_another_log_or_torn_goes(gathered: TableBuilder) -> None:
    gathered.append_to_commit(3, "\n")
    assert "commit 3 is not the one" in removed(clean(gathered, dry_run=True))[delta_name(2, 3)]
    torn = put(gathered, delta_name(2, 4), hours=25)
    assert "cannot be read" in removed(clean(gathered))[torn]


def test_temporary_files_of_killed_writers_go_after_the_grace(table: TableBuilder) -> None:
    old = put(table, f".{manifest_name(3)}.{'0' * 32}.tmp", hours=25)
    young = put(table, f".{part_name(3, 'a' * 16, 1)}.{'1' * 32}.tmp", hours=1)
    gone = removed(clean(table))
    assert old in gone
    assert young not in gone


def test_names_that_are_not_ours_are_never_touched_and_told(table: TableBuilder) -> None:
    strangers = {
        "notes.txt",
        ".v1.tmp",
        f".{manifest_name(3)}.tmp",
        "v1.manifest.json",
        f"{manifest_name(1)}.bak",
        f"v{1:020}.parquet",
        f".notes.{'0' * 32}.tmp",
    }
    for name in strangers:
        put(table, name)
    report = clean(table)
    assert {name.rpartition("/")[2] for name in report.strangers} == strangers
    assert strangers <= names(table)


def test_the_log_itself_is_never_touched(table: TableBuilder) -> None:
    before = {path.name for path in table.log.iterdir()}
    clean(table, retention_hours=0)
    assert {path.name for path in table.log.iterdir()} == before


# --- kills and races -----------------------------------------------------------


def test_killed_at_any_deletion_no_manifest_is_without_its_parts_and_the_next_run_goes_on(
    tmp_path: Path, table: TableBuilder
) -> None:
    doomed = len(clean(table, dry_run=True).removed)
    for calls in range(200):
        copy = tmp_path / f"copy-{calls}"
        shutil.copytree(table.path, copy)
        storage = faulty(storage_of(copy), fail_at(calls + 1))
        try:
            clean_sidecars(storage, config=CONFIG, now_ms=NOW_MS)
            break
        except StorageError:
            pass
        mended = clean_sidecars(storage_of(copy), config=CONFIG, now_ms=NOW_MS)
        assert 2 in mended.versions_kept
        assert len(list((copy / "_delta_log" / "_lazy").iterdir())) == len(names(table)) - doomed
    else:
        pytest.fail("it never ended")
    assert calls > doomed


def test_manifests_go_before_parts(table: TableBuilder) -> None:
    storage = faulty(storage_of(table), lambda _: None)
    clean_sidecars(storage, config=CONFIG, now_ms=NOW_MS)
    deleted = [name for method, name in storage.log.calls if method == "delete"]
    is_manifest = [name.endswith(".manifest.json") for name in deleted]
    assert is_manifest == sorted(is_manifest, reverse=True)
    assert len(deleted) > sum(is_manifest) > 0


def test_a_part_that_a_build_has_just_referenced_stays(table: TableBuilder) -> None:
    """A manifest that appears between the first look and the deletions is honoured."""
    folder = lazy_folder(table)
    saved = {path.name: path.read_bytes() for path in folder.glob("*")}
    manifest_two = saved.pop(manifest_name(2))
    (folder / manifest_name(2)).unlink()
    [part] = [name for name in saved if name.startswith(f"v{2:020}-")]

    def plan(call: int) -> None:
        deletes = [method for method, _ in storage.log.calls if method == "delete"]
        if deletes and not (folder / manifest_name(2)).exists():
            (folder / manifest_name(2)).write_bytes(manifest_two)

    storage = faulty(storage_of(table), plan)
    report = clean_sidecars(storage, config=CONFIG, now_ms=NOW_MS)
    assert manifest_name(0) in removed(report)
    assert part in names(table)
    assert verify_sidecar(storage_of(table), config=CONFIG).is_ok


# --- requests ------------------------------------------------------------------


@pytest.mark.parametrize("hours", [-1, -0.001, math.nan, math.inf, "7", None, True])
def test_a_retention_that_is_no_number_of_hours_is_refused(made: TableBuilder, hours: Any) -> None:
    before = names(made)
    with pytest.raises(InvalidRequestError, match="retention"):
        clean(made, retention_hours=hours)
    assert names(made) == before


def test_where_there_is_no_log_nothing_is_deleted(table: TableBuilder) -> None:
    for path in table.log.glob("*.*"):
        path.unlink() if path.is_file() else None
    before = names(table)
    with pytest.raises(TableNotFoundError):
        clean(table)
    assert names(table) == before


def test_a_table_without_sidecars_has_nothing_to_clean(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit(adds=["a"])
    report = clean(table)
    assert (report.removed, report.versions_kept, report.strangers) == ((), (), ())
