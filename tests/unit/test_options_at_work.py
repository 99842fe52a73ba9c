"""Options of a table change what is read, and how much at once: each reaches the code that it is for."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

import lazydelta as ld
from lazydelta import limits
from lazydelta.sidecar import SidecarConfig
from lazydelta.upkeep.build import build_sidecar
from tests.support.sidecar_damage import storage_of
from tests.support.table_builder import TableBuilder

SMALL = SidecarConfig(row_group_rows=10, row_groups_max=12)


def report_of(table: TableBuilder, **options: object) -> ld.ScanReport:
    """What a scan of every file does, with these options and without a cache."""
    given = {name.replace("__", "."): str(value) for name, value in options.items()}
    scan = ld.open(str(table.path), storage_options={"delta.cache.bytes": "0", **given}).scan()
    assert len(list(scan.files())) == len(table.live())
    return scan.explain()


def test_the_sidecar_is_looked_for_in_the_folder_that_the_option_names(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit([f"f{number}" for number in range(30)]).checkpoint()
    build_sidecar(storage_of(table), config=SidecarConfig(folder="_delta_log/_mine"))
    assert report_of(table).source == "checkpoint 0"
    assert report_of(table, delta__sidecar__directory="_mine").source == "sidecar 0 (manifest)"


def test_as_many_row_groups_of_a_sidecar_are_fetched_together_as_the_option_says(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit([f"f{number}" for number in range(120)]).checkpoint()
    build_sidecar(storage_of(table), config=SMALL)
    one, all_of_them = (
        report_of(table, delta__sidecar__row_groups_per_batch=count).requests_by_kind["get_range"]
        for count in (1, 11)
    )
    assert one - all_of_them == 10  # the first row group comes alone: somebody waits for it


def test_as_many_row_groups_of_a_checkpoint_are_fetched_together_as_the_option_says(tmp_path: Path) -> None:
    table = (
        TableBuilder(tmp_path).commit([f"f{number}" for number in range(120)]).checkpoint(row_group_rows=10)
    )
    few, many = (
        report_of(table, delta__checkpoint_row_groups_per_batch=count).requests_by_kind["get_range"]
        for count in (20, 1)
    )
    assert many - few >= 10


@pytest.mark.parametrize("option", ["delta.commit.parallelism", "delta.commit_read_parallelism"])
def test_as_many_commits_are_fetched_ahead_as_either_name_of_the_option_says(
    tmp_path: Path, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        limits, "QUICK_READ_SECONDS", 10.0
    )  # commits are read here and now, so many at a time
    table = TableBuilder(tmp_path)
    for number in range(20):
        table.commit([f"f{number}"])
    table.crc()
    fetched = []
    for count in ("1", "5"):
        options = {"delta.cache.bytes": "0", option: count}
        scan = ld.open(str(table.path), storage_options=options).scan(strategy="reverse")
        with closing(scan.file_batches(["path"])) as batches:
            assert next(batches).num_rows == int(count)
            fetched.append(scan.explain().requests_by_kind["get"])
    assert fetched[1] - fetched[0] == 4


def test_past_the_memory_that_the_option_gives_the_remove_set_moves_to_disk(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit(["a", "b"]).checkpoint().commit(["c"], removes=["a"])
    assert not report_of(table).remove_set_on_disk
    assert report_of(table, delta__remove_set_memory_limit=0).remove_set_on_disk
