"""The ground of the other property tests: builder, eager twin and delta-rs agree with one another."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings

from tests.support.eager_twin import replay
from tests.support.histories import History, build, histories
from tests.support.hypothesis_profile import examples
from tests.support.peers import delta_rs_paths


@settings(max_examples=examples(15))
@given(histories())
def test_the_eager_twin_finds_on_disk_what_the_builder_meant(history: History) -> None:
    with tempfile.TemporaryDirectory() as folder:
        table = build(history, Path(folder))
        state = replay(table.path)
        assert set(state.live) == table.live()
        assert state.protocol == table.states[-1].protocol
        assert (state.metadata or {})["schemaString"] == table.metadata["schemaString"]


@settings(max_examples=examples(15))
@given(histories())
def test_a_checkpoint_of_any_kind_holds_the_same_table_as_the_commits_before_it(history: History) -> None:
    with tempfile.TemporaryDirectory() as folder:
        table = build(history, Path(folder))
        assert set(replay(table.path, from_checkpoint=True).live) == table.live()


@settings(max_examples=examples(15))
@given(histories(for_delta_rs=True))
def test_delta_rs_reads_the_histories_as_the_eager_twin_does(history: History) -> None:
    with tempfile.TemporaryDirectory() as folder:
        table = build(history, Path(folder))
        assert delta_rs_paths(table.path) == sorted(path for path, _ in replay(table.path).live)
