"""Lazy equals naive: every way of scanning any history gives the eager twin's live files."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lazydelta as ld
from tests.support.eager_twin import TableState, replay
from tests.support.histories import (
    History,
    build,
    histories,
    logical_partition,
    may_hold_a_match,
    table_predicates,
)
from tests.support.hypothesis_profile import examples
from tests.support.peers import delta_rs_paths
from tests.support.predicates import Predicate, to_sql
from tests.support.reading import STRATEGIES, keys

knobs = st.fixed_dictionaries(
    {
        "batch_size": st.sampled_from([1, 2, 3, 8192]),
        "remove_set_memory_limit": st.sampled_from([1, 16, 1 << 20]),
        "commit_read_parallelism": st.integers(1, 10),
        "checkpoint_row_groups_per_batch": st.integers(1, 10),
    }
)
strategies = st.sampled_from(STRATEGIES)


@settings(max_examples=examples(15))
@given(histories(), knobs)
def test_reverse_forward_and_auto_give_the_live_files_of_the_eager_twin(
    history: History, knobs: dict[str, Any]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        build(history, Path(folder))
        truth = replay(Path(folder))
        for strategy in STRATEGIES:
            files = list(ld.open(folder).scan(strategy=strategy, **knobs).files())
            assert_same_files(files, truth, history)


@settings(max_examples=examples(15))
@given(histories(), strategies, st.data())
def test_any_version_that_the_log_still_reaches_is_read_as_it_was(
    history: History, strategy: str, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        build(history, Path(folder))
        floor = max((axes["version"] for axes in history.checkpoints), default=0) if history.clean_up else 0
        version = data.draw(st.integers(floor, len(history.commits) - 1), label="version")
        truth = replay(Path(folder), version=version)
        files = list(ld.open(folder, version=version).scan(strategy=strategy).files())
        assert_same_files(files, truth, history)


@settings(max_examples=examples(15))
@given(histories(for_delta_rs=True), strategies)
def test_delta_rs_sees_the_same_files(history: History, strategy: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        build(history, Path(folder))
        ours = sorted(file.path for file in ld.open(folder).scan(strategy=strategy).files())
        assert ours == delta_rs_paths(Path(folder))


@settings(max_examples=examples(15))
@given(histories(), strategies, st.integers(0, 12), knobs)
def test_a_limit_gives_that_many_live_files_and_none_twice(
    history: History, strategy: str, limit: int, knobs: dict[str, Any]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        build(history, Path(folder))
        truth = replay(Path(folder))
        found = keys(ld.open(folder).scan(limit=limit, strategy=strategy, **knobs).files())
        assert len(found) == min(limit, len(truth.live))
        assert len(set(found)) == len(found)
        assert set(found) <= set(truth.live)


@settings(max_examples=examples(15))
@given(histories(), table_predicates(), strategies, knobs)
def test_a_predicate_never_drops_a_file_with_a_matching_row(
    history: History, predicate: Predicate, strategy: str, knobs: dict[str, Any]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        build(history, Path(folder))
        truth = replay(Path(folder))
        scan = ld.open(folder).scan(where=to_sql(predicate), strategy=strategy, **knobs)
        found = keys(scan.files())
        assert len(set(found)) == len(found)
        assert set(found) <= set(truth.live)
        must_stay = {
            key
            for key, action in truth.live.items()
            if may_hold_a_match(action, predicate, history.column_mapping)
        }
        assert must_stay <= set(found)


@settings(max_examples=examples(15))
@given(histories(), table_predicates(), knobs)
def test_every_strategy_keeps_the_same_files_for_a_predicate(
    history: History, predicate: Predicate, knobs: dict[str, Any]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        build(history, Path(folder))
        kept = [
            set(keys(ld.open(folder).scan(where=to_sql(predicate), strategy=strategy, **knobs).files()))
            for strategy in STRATEGIES
        ]
        assert kept[0] == kept[1] == kept[2]


@settings(max_examples=examples(15))
@given(histories(), st.integers(0, 5), strategies, knobs)
def test_a_scan_abandoned_half_way_leaves_the_next_one_whole(
    history: History, taken: int, strategy: str, knobs: dict[str, Any]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        build(history, Path(folder))
        truth = replay(Path(folder))
        table = ld.open(folder)
        files = table.scan(strategy=strategy, **knobs).files()
        head = keys(file for _, file in zip(range(taken), files, strict=False))
        files.close()
        assert set(head) <= set(truth.live)
        with pytest.raises(StopIteration):
            next(files)
        assert set(keys(table.scan(strategy=strategy, **knobs).files())) == set(truth.live)


@settings(max_examples=examples(15))
@given(histories(), strategies)
def test_strict_scans_fall_back_and_give_the_same_files(history: History, strategy: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        build(history, Path(folder))
        files = list(ld.open(folder).scan(strategy=strategy, strict=True).files())
        assert_same_files(files, replay(Path(folder)), history)


@settings(max_examples=examples(15))
@given(histories(), strategies, st.sampled_from([1, 3, 8192]))
def test_batches_hold_the_same_files_as_objects_do(history: History, strategy: str, batch_size: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        build(history, Path(folder))
        scan = ld.open(folder).scan(strategy=strategy, batch_size=batch_size)
        rows = [row for batch in scan.file_batches(columns=["path", "size"]) for row in batch.to_pylist()]
        truth = replay(Path(folder))
        assert sorted((row["path"], row["size"]) for row in rows) == sorted(
            (path, action["size"]) for (path, _), action in truth.live.items()
        )


def assert_same_files(files: list[Any], truth: TableState, history: History) -> None:
    """The same keys, each once, with the newest add's own words about them."""
    assert sorted(keys(files), key=repr) == sorted(truth.live, key=repr)
    for file in files:
        action = truth.live[file.path, file.dv_id]
        assert file.size == action["size"]
        assert file.modification_time == action["modificationTime"]
        assert file.partition_values == logical_partition(action, history.column_mapping)
        vector = action.get("deletionVector")
        assert (file.deletion_vector is None) == (vector is None)
        if vector is not None:
            assert file.deletion_vector.cardinality == vector["cardinality"]
            assert file.deletion_vector.offset == vector.get("offset")
