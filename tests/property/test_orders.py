"""Scans in order: any history, with sidecars whole, torn or absent, gives the eager twin's files, sorted."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lazydelta as ld
from lazydelta.errors import CorruptLogError
from lazydelta.settings import Settings
from lazydelta.sidecar import SidecarConfig
from lazydelta.storage import open_storage
from lazydelta.upkeep.build import build_sidecar
from tests.support import actions
from tests.support.cached import CACHED, UNCACHED
from tests.support.eager_twin import replay
from tests.support.growing_table import GrowingTable, grown_in_steps
from tests.support.histories import History, build, histories, table_predicates
from tests.support.hypothesis_profile import examples
from tests.support.ordered_twin import is_in_order, order_keys
from tests.support.predicates import Predicate, to_sql
from tests.support.reading import keys

ORDERS = st.sampled_from(["asc", "desc"])
configs = st.builds(
    SidecarConfig,
    row_group_rows=st.sampled_from([1, 2, 3, 7]),
    row_groups_max=st.sampled_from([1, 2, 4]),
    level_ratio=st.sampled_from([2, 16]),
    footer_bytes_max=st.sampled_from([128 << 10, 6000]),  # the second splits parts in two
)
COLUMNS = {"date": "date", "region": "string", "value": "double", "count": "long", "device_id": "string"}


@settings(max_examples=examples(10))
@given(histories(), ORDERS, configs, st.sampled_from([None, *COLUMNS]), st.randoms(use_true_random=False))
def test_any_history_comes_in_order_with_sidecars_of_any_order_and_without(
    history: History, order: str, config: SidecarConfig, column: str | None, dice: random.Random
) -> None:
    history = with_statistics(history)
    config = msgspec.structs.replace(config, time_column=column)
    with tempfile.TemporaryDirectory() as folder:
        # By the builder, not by the twin: a checkpoint may have kept statistics in typed form alone.
        live = build(history, Path(folder)).states[-1].live
        build_some(Path(folder), [axes["version"] for axes in history.checkpoints], config, dice)
        scan = ld.open(folder).scan(order=order)
        found = keys(scan.files())
        by = column_of(scan.explain())
        assert by in {"date", column}
        told = order_keys(
            live,
            actions.physical_name(by, history.column_mapping),
            kind=COLUMNS[by],
            is_partition=by in {"date", "region"},
        )
        assert is_in_order(found, told, descending=order == "desc")


@settings(max_examples=examples(10))
@given(histories(), ORDERS, configs, table_predicates(), st.randoms(use_true_random=False))
def test_a_predicate_and_a_limit_keep_the_first_of_the_same_files(
    history: History, order: str, config: SidecarConfig, predicate: Predicate, dice: random.Random
) -> None:
    limit = dice.randint(1, 6)
    with tempfile.TemporaryDirectory() as folder:
        build(history, Path(folder))
        build_some(Path(folder), [axes["version"] for axes in history.checkpoints], config, dice)
        where = to_sql(predicate)
        kept = set(keys(ld.open(folder).scan(where=where).files()))
        live = {key: action for key, action in replay(Path(folder)).live.items() if key in kept}
        told = order_keys(live, actions.physical_name("date", history.column_mapping), kind="date")
        every = keys(ld.open(folder).scan(where=where, order=order).files())
        assert is_in_order(every, told, descending=order == "desc")
        first = keys(ld.open(folder).scan(where=where, order=order, limit=limit).files())
        assert [told[key] for key in first] == sorted(told.values(), reverse=order == "desc")[:limit]
        assert len(set(first)) == len(first)


@settings(max_examples=examples(5))
@given(st.randoms(use_true_random=False), ORDERS, configs, st.integers(1, 30))
def test_a_growing_table_comes_in_order_at_every_step_whatever_is_damaged(
    dice: random.Random, order: str, config: SidecarConfig, limit: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for _ in grown_in_steps(Path(folder), dice, config):
            if dice.random() < 0.4:
                tear_a_part(Path(folder), dice)
            told = order_keys(replay(Path(folder)).live, "_event_hour")
            descending = order == "desc"
            for options in (UNCACHED, CACHED):
                found = keys(ld.open(folder, storage_options=options).scan(order=order).files())
                assert is_in_order(found, told, descending=descending)
            first = keys(ld.open(folder).scan(order=order, limit=limit).files())
            assert [told[key] for key in first] == sorted(told.values(), reverse=descending)[:limit]


@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize("seed", range(examples(3)))
def test_a_sidecar_damaged_half_way_gives_every_file_once_and_in_order(
    tmp_path: Path, seed: int, order: str
) -> None:
    dice = random.Random(seed)
    growing = GrowingTable(tmp_path, dice)
    config = SidecarConfig(row_group_rows=2, row_groups_max=3, level_ratio=2)
    for _ in range(3):
        growing.grow(8)
        growing.checkpoint()
        build_sidecar(open_storage(str(tmp_path), Settings()), config=config)
    growing.grow(2)
    told = order_keys(replay(tmp_path).live, "_event_hour")
    scan = ld.open(str(tmp_path), storage_options=UNCACHED).scan(order=order, batch_size=1)
    files = scan.files()
    found = [next(files) for _ in range(min(len(told), 1 + 4 * seed))]
    parts = sorted((tmp_path / "_delta_log" / "_lazy").glob("*.parquet"))
    for part in dice.sample(parts, len(parts) // 2):
        body = bytearray(part.read_bytes())
        body[len(body) // 2 :] = bytes(len(body) - len(body) // 2)
        part.write_bytes(body)
    try:
        found += files
    except CorruptLogError as gone:  # what went out cannot be told any more: an end, not a wrong answer
        assert "after some of its files had gone out" in gone.what
        assert [told[key] for key in keys(found)] == sorted(told.values(), reverse=order == "desc")[
            : len(found)
        ]
        return
    assert is_in_order(keys(found), told, descending=order == "desc")


def column_of(report: Any) -> str:
    """The column that explain names."""
    assert report.strategy == "ordered"
    return str(report.reason.removeprefix("by ").partition(",")[0])


def with_statistics(history: History) -> History:
    """The same with checkpoints that have kept them."""
    kept = tuple(axes | {"stats": axes["stats"].replace("none", "json")} for axes in history.checkpoints)
    return msgspec.structs.replace(history, checkpoints=kept)


def build_some(table: Path, versions: list[int], config: SidecarConfig, dice: random.Random) -> None:
    """Sidecars of some of the checkpoints, in any order."""
    storage = open_storage(str(table), Settings())
    for version in dice.sample(versions, dice.randint(0, len(versions))):
        build_sidecar(storage, config=config, version=version)


def tear_a_part(table: Path, dice: random.Random) -> None:
    """Cut off the end of one file of the sidecar."""
    files = sorted((table / "_delta_log" / "_lazy").glob("v*"))
    if files:
        path = dice.choice(files)
        path.write_bytes(path.read_bytes()[: -dice.choice([1, 20, 300])])
