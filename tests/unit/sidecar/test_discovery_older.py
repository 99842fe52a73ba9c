"""The sidecar of an older checkpoint: used with the commits in between where that is less to read."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import pytest

import lazydelta as ld
from lazydelta.settings import Settings
from lazydelta.sidecar import SidecarConfig
from lazydelta.upkeep.build import build_sidecar
from tests.support.actions import remove
from tests.support.reading import keys
from tests.support.sidecar_damage import edit_manifest, lazy_folder, numbered_file, numbered_files, storage_of
from tests.support.sidecar_states import (
    CHECKPOINT,
    NO_CACHE,
    part_paths,
    scanned,
    table_with_sidecar,
)
from tests.support.table_builder import TableBuilder

LARGE = SidecarConfig(row_group_rows=250, row_groups_max=2)
SMALL = SidecarConfig(row_group_rows=10, row_groups_max=2)
FOLDERS: list[tempfile.TemporaryDirectory[str]] = []  # gone when the process ends
OTHER_COMMIT = pytest.mark.long("another commit of the three in between")
LAST_DAY = "date = '2026-02-20'"


def table_with_older_sidecar(
    folder: Path, *, files: int = 2000, config: SidecarConfig = LARGE
) -> TableBuilder:
    """A large checkpoint 1 with a sidecar; commits 2 to 4; checkpoint 4 without one; commits after it."""
    return made_once(files, config).copy_to(folder)


@cache
def made_once(files: int, config: SidecarConfig) -> TableBuilder:
    """Built once, and copied by each test that changes it."""
    folder = tempfile.TemporaryDirectory(prefix="lazydelta-test-")
    FOLDERS.append(folder)
    table = TableBuilder(Path(folder.name)).commit(numbered_files(range(files // 2)))
    table.commit(numbered_files(range(files // 2, files))).checkpoint()
    build_sidecar(storage_of(table), config=config)
    table.commit([numbered_file(5, size=7), numbered_file(9001)], ["part-00007.parquet"])
    table.commit([numbered_file(9002)], ["part-00005.parquet", "part-00008.parquet"])
    table.commit([numbered_file(5, size=8), numbered_file(8)]).checkpoint()
    table.commit([numbered_file(9003)], ["part-00009.parquet", "part-09001.parquet"])
    return table


@pytest.mark.parametrize("strategy", ["auto", "reverse", "forward"])
def test_a_longer_tail_serves_where_the_checkpoint_is_more_to_read(tmp_path: Path, strategy: str) -> None:
    table = table_with_older_sidecar(tmp_path)
    report = scanned(table, strategy=strategy)
    assert report.source == "sidecar 1 (manifest)"
    assert report.source_reason.startswith("the sidecar of checkpoint 1 and 3 commits after it take about")
    assert (report.commits_read, report.commits_total) == (4, 4)
    assert report.fallbacks == ()


def test_the_checkpoint_serves_where_it_is_less_to_read(tmp_path: Path) -> None:
    table = table_with_sidecar(tmp_path)
    table.commit(numbered_files(range(100, 130)))
    table.commit([], [f"part-{n:05}.parquet" for n in range(100, 130)]).checkpoint()
    report = scanned(table)
    assert report.source == f"checkpoint {table.version}"
    assert len(report.fallbacks) == 1
    assert "and no cheaper" in report.fallbacks[0]
    assert "bytes" in report.source_reason


def test_a_predicate_makes_the_older_sidecar_the_cheaper_one(tmp_path: Path) -> None:
    """The decision is by bytes: a sidecar that is larger than the checkpoint serves a narrow question."""
    table = table_with_older_sidecar(tmp_path, files=300, config=SMALL)
    checkpoint = table.log_file("*4.checkpoint.parquet").stat().st_size
    assert sum(path.stat().st_size for path in part_paths(table)) > checkpoint
    assert scanned(table).source == "checkpoint 4"
    narrow = scanned(table, "date = '2026-02-20' and count > 250")
    assert narrow.source == "sidecar 1 (manifest)"
    assert narrow.row_groups_skipped > narrow.row_groups_read


def test_where_a_commit_in_between_is_gone_the_checkpoint_serves(tmp_path: Path) -> None:
    table = table_with_older_sidecar(tmp_path)
    table.delete_commit(3)
    report = scanned(table)
    assert report.source == "checkpoint 4"
    assert "commit 3 after it is gone" in report.fallbacks[0]


def test_an_older_sidecar_of_another_log_does_not_serve(tmp_path: Path) -> None:
    table = table_with_older_sidecar(tmp_path)
    other = {"head_sha256": "0" * 64, "etag": "0"}
    edit_manifest(table, lambda body: body["binding"]["commit"].update(other), version=1)
    report = scanned(table)
    assert report.source == "checkpoint 4"
    assert "it is of another log" in report.fallbacks[0]


def test_of_several_older_sidecars_the_newest_that_is_whole_serves(tmp_path: Path) -> None:
    table = table_with_older_sidecar(tmp_path)
    build_sidecar(storage_of(table), config=LARGE)  # of checkpoint 4
    table.commit([numbered_file(9100)]).checkpoint()
    assert scanned(table).source == "sidecar 4 (manifest)"
    (lazy_folder(table) / f"v{4:020}.manifest.json").write_bytes(b"{")
    report = scanned(table)
    assert report.source == "sidecar 1 (manifest)"
    assert "before checkpoint 6, cannot be used" in report.fallbacks[0]


@pytest.mark.parametrize("at", [0, 1, 3])
def test_an_older_sidecar_that_is_damaged_half_way_gives_nothing_twice(tmp_path: Path, at: int) -> None:
    table = table_with_older_sidecar(tmp_path)
    path = part_paths(table)[at]
    path.write_bytes(path.read_bytes()[:-40])
    report = scanned(table)
    assert report.source == "checkpoint 4"
    assert "the sidecar of checkpoint 1 is damaged" in report.fallbacks[0]
    assert report.source_reason == "the sidecar could not be read to its end"


def test_a_file_that_went_and_came_back_in_between_is_told_as_it_is_now(tmp_path: Path) -> None:
    table_with_older_sidecar(tmp_path)
    sizes = {
        file.path.rpartition("/")[2]: file.size for file in ld.open(str(tmp_path), settings=NO_CACHE).scan()
    }
    assert sizes["part-00005.parquet"] == 8
    assert sizes["part-00008.parquet"] == 1008
    assert "part-00007.parquet" not in sizes
    assert "part-09001.parquet" not in sizes


def test_an_older_version_is_read_by_its_own_sidecar(tmp_path: Path) -> None:
    table = table_with_older_sidecar(tmp_path)
    scan = ld.open(str(tmp_path), version=3, settings=NO_CACHE).scan()
    found = {(file.path, file.dv_id) for file in scan.files()}
    assert found == table.live(3)
    assert scan.explain().source == "sidecar 1 (manifest)"
    assert scan.explain().source_reason == "checkpoint 1 has a sidecar"


def test_a_limit_on_a_narrow_question_may_use_it_too(tmp_path: Path) -> None:
    table = table_with_older_sidecar(tmp_path)
    report = scanned(table, LAST_DAY, limit=5)
    assert report.source in {"sidecar 1 (manifest)", "none"}
    assert report.files_emitted == 5


def test_deletion_vectors_in_between_are_followed(tmp_path: Path) -> None:
    table = table_with_sidecar(tmp_path)  # its tail changes the vector of part-00030
    table.checkpoint()
    table.commit([], [remove("part-00031.parquet")])
    big = table.log_file("*5.checkpoint.parquet")
    assert big.stat().st_size > 0
    hint = {"version": 5, "size": 1, "sizeInBytes": 1 << 30}  # so the older sidecar is the cheaper one
    table.with_hint(hint)
    report = scanned(table)
    assert report.source == f"sidecar {CHECKPOINT} (manifest)"


@pytest.mark.parametrize(
    "gone",
    [pytest.param(2, marks=OTHER_COMMIT), 3, pytest.param(4, marks=OTHER_COMMIT)],
)
@pytest.mark.parametrize("order", [None, "asc", "desc"])
@pytest.mark.parametrize("cache_bytes", [0, 64 << 20])
def test_commits_in_between_may_be_cleaned_up_after_they_were_listed(
    tmp_path: Path, gone: int, order: str | None, cache_bytes: int
) -> None:
    """The checkpoint holds what they say: cleaning the log below it must not end a scan."""
    table = table_with_older_sidecar(tmp_path)
    opened = ld.open(str(tmp_path), settings=Settings(cache_bytes=cache_bytes))
    before = opened.scan(order=order)  # of the older sidecar, which is remembered
    listed = keys(before.files())
    assert before.explain().source == "sidecar 1 (manifest)"
    table.delete_commit(gone)
    again = opened.scan(order=order)
    found = keys(again.files())
    assert len(found) == len(set(found))
    assert set(found) == table.live()
    assert order is None or found == listed
    report = again.explain()
    assert report.source == "checkpoint 4"
    assert "the sidecar of checkpoint 1 lacks a commit after it" in report.fallbacks[0]
    ld.cache.clear()
