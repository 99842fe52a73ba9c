"""Through the sidecar or not: any history, sidecars whole or damaged, gives the eager twin's live files."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lazydelta as ld
from lazydelta.errors import CorruptLogError
from lazydelta.settings import Settings
from lazydelta.sidecar import SidecarConfig
from lazydelta.storage import open_storage
from lazydelta.upkeep.build import build_sidecar
from tests.support.eager_twin import replay
from tests.support.growing_table import GrowingTable, grown_in_steps
from tests.support.histories import History, build, histories, may_hold_a_match, table_predicates
from tests.support.hypothesis_profile import examples
from tests.support.predicates import Predicate, to_sql
from tests.support.reading import STRATEGIES, keys

SMALL = SidecarConfig(row_group_rows=4, row_groups_max=2, delta_commits_min=2)
PLAIN = {"delta.sidecar.enabled": "false"}
PREDICATES = (
    None,
    "_event_hour >= '2026021005'",
    "_event_hour < '2026021003' or value > 3",
    "device_id = 'd3' and count <= 2",
    "not (value < 1) and _event_hour <> '2026021001'",
    "count is null or value is null",
    "_event_hour in ('2026021002', '2026021004')",
)

knobs = st.fixed_dictionaries(
    {
        "batch_size": st.sampled_from([1, 3, 8192]),
        "remove_set_memory_limit": st.sampled_from([1, 1 << 20]),
        "strategy": st.sampled_from(STRATEGIES),
    }
)


@settings(max_examples=examples(12))
@given(histories(), knobs, st.randoms(use_true_random=False))
def test_sidecars_of_any_history_give_its_live_files(
    history: History, knobs: dict[str, Any], dice: random.Random
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        build(history, Path(folder))
        build_some(Path(folder), [axes["version"] for axes in history.checkpoints], dice)
        truth = replay(Path(folder))
        files = list(ld.open(folder).scan(**knobs).files())
        assert sorted(keys(files), key=str) == sorted(truth.live, key=str)
        plain = ld.open(folder, storage_options=PLAIN).scan(**knobs).files()
        assert facts(files) == facts(plain)


@settings(max_examples=examples(12))
@given(histories(), knobs, table_predicates(), st.randoms(use_true_random=False))
def test_a_predicate_keeps_the_same_files_with_and_without_a_sidecar(
    history: History, knobs: dict[str, Any], predicate: Predicate, dice: random.Random
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        build(history, Path(folder))
        build_some(Path(folder), [axes["version"] for axes in history.checkpoints], dice)
        where = to_sql(predicate)
        through = list(ld.open(folder).scan(where=where, **knobs).files())
        plain = list(ld.open(folder, storage_options=PLAIN).scan(where=where, **knobs).files())
        if any(axes["stats"] == "none" for axes in history.checkpoints):
            # A sidecar may have statistics that a checkpoint left out, and parts of an older one may lack
            # what a newer checkpoint has: neither may drop a file with a matching row.
            needed = {
                key
                for key, action in replay(Path(folder)).live.items()
                if may_hold_a_match(action, predicate, history.column_mapping)
            }
            assert needed <= set(keys(through))
            assert needed <= set(keys(plain))
        else:
            assert facts(through) == facts(plain)


@settings(max_examples=examples(6))
@given(st.randoms(use_true_random=False), knobs, st.sampled_from(PREDICATES), st.integers(0, 30))
def test_a_growing_table_is_read_right_at_every_step_whatever_is_damaged(
    dice: random.Random, knobs: dict[str, Any], where: str | None, limit: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for _ in grown_in_steps(Path(folder), dice, SMALL):
            if dice.random() < 0.6:
                damage_something(Path(folder), dice)
            assert_same(folder, where=where, **knobs)
            some = keys(ld.open(folder).scan(limit=limit, **knobs).files())
            truth = replay(Path(folder))
            assert len(set(some)) == len(some) == min(limit, len(truth.live))
            assert set(some) <= set(truth.live)


@pytest.mark.parametrize("seed", range(examples(2)))
def test_a_sidecar_damaged_half_way_through_a_scan_gives_every_file_once(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    growing = GrowingTable(tmp_path, dice)
    growing.grow(12)
    growing.checkpoint()
    build_sidecar(open_storage(str(tmp_path), Settings()), config=SMALL)
    growing.grow(2)
    files = ld.open(str(tmp_path)).scan(batch_size=1).files()
    truth = replay(tmp_path)
    found = [next(files) for _ in range(min(len(truth.live), 1 + 3 * seed))]
    for part in sorted((tmp_path / "_delta_log" / "_lazy").glob("*.parquet"))[1:]:
        part.write_bytes(part.read_bytes()[:-20])
    try:
        found += files
    except CorruptLogError as gone:  # what went out of a part that is another one now is not known any more
        assert "after some of its files had gone out" in gone.what
        assert len(set(keys(found))) == len(found)
        assert set(keys(found)) <= set(truth.live)
        return
    assert sorted(keys(found), key=str) == sorted(truth.live, key=str)


def assert_same(folder: str, **scan: Any) -> None:
    """Through the sidecar, through the checkpoint and by the eager twin: the same files, none twice."""
    through = list(ld.open(folder).scan(**scan).files())
    assert len(set(keys(through))) == len(through)
    assert facts(through) == facts(ld.open(folder, storage_options=PLAIN).scan(**scan).files())
    if scan.get("where") is None:
        assert sorted(keys(through), key=str) == sorted(replay(Path(folder)).live, key=str)


def facts(files: Any) -> list[str]:
    """Everything told of each file, in an order of its own."""
    return sorted(repr(file) for file in files)


def build_some(table: Path, versions: list[int], dice: random.Random) -> None:
    """Sidecars of some of the checkpoints, in any order."""
    storage = open_storage(str(table), Settings())
    for version in dice.sample(versions, dice.randint(0, len(versions))):
        build_sidecar(storage, config=SMALL, version=version)


def damage_something(table: Path, dice: random.Random) -> None:
    """Do something to one file of the sidecar that no writer does."""
    files = sorted((table / "_delta_log" / "_lazy").glob("v*"))
    if not files:
        return
    harms: list[Callable[[Path], object]] = [
        lambda path: path.unlink(),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(path.read_bytes()[: somewhere(path.stat().st_size, dice)]),
        lambda path: path.write_bytes(flipped(path.read_bytes(), dice)),
        lambda path: path.write_bytes(dice.choice(files).read_bytes()),
        lambda path: path.rename(path.with_name(f"{path.name}.gone")),
    ]
    dice.choice(harms)(dice.choice(files))


def flipped(body: bytes, dice: random.Random) -> bytes:
    """One bit is another."""
    if not body:
        return body
    changed = bytearray(body)
    changed[somewhere(len(body), dice)] ^= 1 << dice.randrange(8)
    return bytes(changed)


def somewhere(length: int, dice: random.Random) -> int:
    """A place in a file. The draw is the same for any length: no two builds have quite the same one."""
    return int(length * dice.random())
