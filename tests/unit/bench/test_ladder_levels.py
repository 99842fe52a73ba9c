"""Each rung of the ladder switches on what it is named for, and every rung finds the same files."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.ladder_budget import hour_budget
from bench.ladder_levels import L0, L1, L3, L4, L5, L6, L7, LEVELS, Level, level_settings, open_at
from bench.ladder_tables import (
    EVENT,
    HOUR,
    QUERIES,
    TAKE,
    LadderTable,
    ladder_spec,
    ladder_table,
    width_spec,
)
from bench.peers.measure import HOUR_PREDICATE

SWITCHES = (
    "commit_parallelism",
    "has_sidecar",
    "uses_manifest",
    "projects",
    "prunes",
    "stops_early",
    "has_cache",
    "max_staleness_s",
)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LadderTable]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAZYDELTA_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield ladder_table(ladder_spec(30_000))


def test_each_level_switches_one_thing_on() -> None:
    lazy = [level for level in LEVELS if level is not L0]
    for below, level in itertools.pairwise(lazy):
        changed = [name for name in SWITCHES if getattr(below, name) != getattr(level, name)]
        assert len(changed) == 1, (level.name, changed)


def test_without_the_cache_nothing_is_kept() -> None:
    assert [level_settings(level, {}).cache_bytes > 0 for level in LEVELS] == [False] * 8 + [True] * 2


def test_the_peers_are_asked_for_the_same_hour() -> None:
    assert HOUR.where() == HOUR_PREDICATE


@pytest.mark.parametrize(
    "level", [level for level in LEVELS if level is not L0], ids=lambda level: level.name
)
def test_every_level_finds_the_files_of_every_window(table: LadderTable, level: Level) -> None:
    opened = open_at(level, str(table.table.path), {})
    for query in (*QUERIES, EVENT):
        if query is not TAKE:
            scan = opened.scan(where=query.where())
            found = sum(batch.num_rows for batch in scan.file_batches(columns=["path"]))
            assert found == table.answers[query.name], query.name


def test_a_level_reads_from_the_source_that_it_is_named_for(table: LadderTable) -> None:
    for level, source in (
        (L1, "checkpoint 1000"),
        (L3, "sidecar 1000 (footers)"),
        (L4, "sidecar 1000 (manifest)"),
    ):
        scan = open_at(level, str(table.table.path), {}).scan(where=HOUR.where())
        assert scan.explain().source == source


def test_pruning_leaves_row_groups_out_and_is_off_below_its_level(table: LadderTable) -> None:
    read = {}
    for level in (L5, L6, L7):
        scan = open_at(level, str(table.table.path), {}).scan(where=HOUR.where())
        read[level.name] = scan.explain().row_groups_read
    assert read == {"L5": 3, "L6": 1, "L7": 1}


def test_the_last_hour_is_in_the_tail_and_in_the_checkpoint(table: LadderTable) -> None:
    assert table.tail_files < table.answers["hour"] < table.answers["day"] < table.answers["month"]


def test_the_budget_is_that_of_one_row_group(table: LadderTable) -> None:
    budget = hour_budget(table)
    part_bytes = sum(part.size_bytes for part in table.manifest.parts)
    assert 0 < budget.projected_bytes < part_bytes / 2
    assert budget.tail_bytes == sum(
        path.stat().st_size
        for path in Path(table.table.path / "_delta_log").glob("*.json")
        if int(path.stem) > table.table.spec.base_version
    )


@pytest.mark.parametrize("width", [2, 50])
def test_the_pair_differs_in_the_width_of_its_statistics(width: int) -> None:
    spec = width_spec(1_000, width)
    assert len(spec.stats_columns) == width
    assert spec.tail_commits == 0
