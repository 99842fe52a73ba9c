"""The table that grows is one that a reader reads right, checkpoint after checkpoint."""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import lazydelta as ld
from bench.growing import GrowingSpec, GrowingTable, hour_text

SPEC = GrowingSpec(
    files=600, checkpoints=4, commits_per_checkpoint=3, adds_per_commit=20, late_every=5, optimized_hours=2,
    commits_per_hour=2, stats="json",
)  # fmt: skip


@pytest.fixture
def table(tmp_path: Path) -> GrowingTable:
    growing = GrowingTable(SPEC, tmp_path / "growing")
    growing.start()
    return growing


def hours(table: GrowingTable, *, version: int | None = None) -> dict[str, str]:
    """The hour of every live file."""
    scan = ld.open(str(table.path), version=version).scan()
    return {file.path: str(file.partition_values["_event_hour"]) for file in scan.files()}


def test_each_checkpoint_holds_the_live_files_of_its_version(table: GrowingTable) -> None:
    assert len(hours(table)) == table.live_files == SPEC.files
    for number in range(3):
        version = table.grow(optimize=number == 1)
        live = hours(table)
        assert len(live) == table.live_files
        (rows,) = (table.path / "_delta_log").glob(f"*{version}.checkpoint.parquet")
        paths = pc.struct_field(pq.read_table(rows, columns=["add"])["add"], "path").drop_null()
        assert set(paths.to_pylist()) == set(live)


def test_commits_and_checkpoint_tell_the_same_story(table: GrowingTable) -> None:
    table.grow()
    table.grow(optimize=True)
    from_checkpoint = hours(table)
    table.drop_checkpoint(table.version)
    assert hours(table, version=table.version) == from_checkpoint


def test_optimize_leaves_one_file_in_each_of_its_hours(table: GrowingTable) -> None:
    table.grow()
    before = hours(table)
    table.grow(optimize=True)
    after = hours(table)
    rewritten = {
        after[path] for path in after if path not in before and list(after.values()).count(after[path]) == 1
    }
    gone = set(before) - set(after)
    assert {before[path] for path in gone} == rewritten
    assert len(rewritten) == SPEC.optimized_hours
    # Every hour holds as many files as the pace says.
    assert len(gone) >= SPEC.optimized_hours * SPEC.files_per_hour


def test_some_of_the_added_files_are_late(table: GrowingTable) -> None:
    before, reached = hours(table), hour_text(table.newest_ms)
    table.grow()
    added = [hour for path, hour in hours(table).items() if path not in before]
    late = [hour for hour in added if hour < reached]
    assert len(added) == 60
    assert 2 <= len(late) <= 30
    assert max(added) <= hour_text(table.newest_ms)
