"""Delta files, whole or damaged anywhere, never change an answer: the eager twin's files, each once."""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lazydelta as ld
from lazydelta import limits
from lazydelta.log import find_segment
from lazydelta.sidecar import SidecarConfig
from lazydelta.upkeep.deltas import write_delta_files
from tests.support.eager_twin import TableState, replay
from tests.support.growing_table import GrowingTable
from tests.support.histories import History, build, histories, may_hold_a_match, table_predicates
from tests.support.hypothesis_profile import examples
from tests.support.long_tail import UNCACHED
from tests.support.predicates import Predicate, to_sql
from tests.support.reading import keys
from tests.support.sidecar_twin import LAZY
from tests.support.table_builder import TableBuilder
from tests.support.telemetry_table import storage_of

configs = st.builds(
    SidecarConfig, row_group_rows=st.sampled_from([1, 2, 5, 1000]), delta_commits_min=st.integers(1, 3)
)
scans = st.fixed_dictionaries(
    {
        "strategy": st.sampled_from(["reverse", "forward"]),
        "commit_read_parallelism": st.sampled_from([1, 2, 10]),
        "remove_set_memory_limit": st.sampled_from([1, 1 << 25]),
        "batch_size": st.sampled_from([1, 3, 8192]),
    }
)


@pytest.fixture(autouse=True, scope="module")
def _short_tails_too() -> Any:
    """Delta files are looked for however short a tail is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "SIDECAR_DELTA_COMMITS", 1)
        yield


@settings(max_examples=examples(15))
@given(histories(commits_max=10), configs, scans, st.data())
def test_for_any_history_delta_files_give_the_eager_twins_files(
    history: History, config: SidecarConfig, scan: dict[str, Any], data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        table = build(history, Path(folder))
        if not history.checkpoints:
            table.checkpoint(version=0)
        written_in_stretches(table, config, data)
        assert_same(table, scan)


@settings(max_examples=examples(15))
@given(histories(commits_max=8), configs, scans, table_predicates())
def test_no_file_that_may_match_is_dropped_by_what_a_delta_file_says_of_it(
    history: History, config: SidecarConfig, scan: dict[str, Any], predicate: Predicate
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        table = build(history, Path(folder))
        if not history.checkpoints:
            table.checkpoint(version=0)
        write_delta_files(storage_of(table), config=config)
        run = ld.open(str(table.path), settings=UNCACHED).scan(where=to_sql(predicate), **scan)
        found = keys(run.files())
        assert len(found) == len(set(found))
        truth = replay(table.path)
        wanted = {
            key
            for key, action in truth.live.items()
            if may_hold_a_match(action, predicate, history.column_mapping)
        }
        assert wanted <= set(found) <= set(truth.live)


@settings(max_examples=examples(10))
@given(st.randoms(use_true_random=False), configs, scans)
def test_damage_at_random_is_a_fallback_and_never_another_answer(
    dice: Random, config: SidecarConfig, scan: dict[str, Any]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        growing = GrowingTable(Path(folder), dice)
        growing.checkpoint()
        for _ in range(3):
            growing.grow(commits=dice.randint(1, 5))
            write_delta_files(storage_of(growing.path), config=config)
        growing.grow(commits=dice.randint(0, 2))
        for path in sorted((growing.path / LAZY).glob("*.delta.parquet")):
            damage(path, dice)
        assert_same(growing.table, scan)


def written_in_stretches(table: TableBuilder, config: SidecarConfig, data: st.DataObject) -> None:
    """Delta files up to some versions, one after another."""
    first = find_segment(storage_of(table)).floor
    for version in sorted(data.draw(st.sets(st.integers(first, table.version), max_size=3))):
        write_delta_files(storage_of(table), config=config, version=version)


def assert_same(table: TableBuilder, scan: dict[str, Any]) -> None:
    """The eager twin's keys, each once, with the newest add's size."""
    files = list(ld.open(str(table.path), settings=UNCACHED).scan(**scan).files())
    truth: TableState = replay(table.path)
    assert sorted(keys(files), key=repr) == sorted(truth.live, key=repr)
    for file in files:
        assert file.size == truth.live[file.path, file.dv_id]["size"]
        assert file.modification_time == truth.live[file.path, file.dv_id]["modificationTime"]


def damage(path: Path, dice: Random) -> None:
    """Cut it, change a byte anywhere, swap it for a part of itself, or leave it."""
    body = bytearray(path.read_bytes())
    match dice.randrange(5):
        case 0:
            del body[int(len(body) * dice.random()) :]
        case 1 | 2:
            body[int(len(body) * dice.random())] ^= 1 << dice.randrange(8)
        case 3:
            start = int(len(body) * dice.random())
            body[start : start + 16] = dice.randbytes(len(body[start : start + 16]))
        case _:
            return
    path.write_bytes(body)
