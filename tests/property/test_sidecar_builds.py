"""Building from what changed gives what building from the whole checkpoint gives: what the log says."""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from lazydelta.settings import build_settings
from lazydelta.sidecar import SidecarConfig
from lazydelta.storage import Storage, open_storage
from lazydelta.upkeep.build import BuildReport, build_sidecar
from tests.support.eager_twin import replay
from tests.support.growing_table import GrowingTable
from tests.support.histories import History, build, histories
from tests.support.hypothesis_profile import examples
from tests.support.sidecar_twin import comparable, expected_rows, manifest_of, sidecar_rows
from tests.support.table_builder import TableBuilder

_FULL = "_delta_log/_lazy_full"
configs = st.builds(
    SidecarConfig,
    row_group_rows=st.sampled_from([1, 2, 3, 7]),
    row_groups_max=st.sampled_from([1, 2, 4]),
    level_ratio=st.sampled_from([2, 4, 16]),
    sort_memory_bytes=st.sampled_from([1, 2000, 1 << 20]),
    footer_bytes_max=st.sampled_from([128 << 10, 128 << 10, 6000]),  # the last splits parts in two
)


@settings(max_examples=examples(10))
@given(histories(commits_max=10), configs)
def test_for_any_history_incremental_full_and_eager_rows_are_the_same(
    history: History, config: SidecarConfig
) -> None:
    kept = [axes | {"stats": axes["stats"].replace("none", "json")} for axes in history.checkpoints]
    history = msgspec.structs.replace(history, checkpoints=tuple(kept))
    with tempfile.TemporaryDirectory() as folder:
        table = build(history, Path(folder))
        for version in sorted(axes["version"] for axes in kept):
            check_both_builds(table, version, config)


@settings(max_examples=examples(3))
@given(st.randoms(use_true_random=False), configs)
def test_a_growing_table_keeps_an_exact_sidecar_through_every_kind_of_commit(
    dice: Random, config: SidecarConfig
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        growing = GrowingTable(Path(folder), dice)
        kinds = []
        for _ in range(7):
            growing.grow(commits=dice.randint(1, 4))
            growing.checkpoint()
            kinds.append(check_both_builds(growing.table, growing.version, config).kind)
        assert kinds[0] == "full"
        assert set(kinds[1:]) == {"incremental"}


def check_both_builds(table: TableBuilder, version: int, config: SidecarConfig) -> BuildReport:
    """Build both ways and compare everything with everything."""
    storage = open_table(table.path)
    report = build_sidecar(storage, config=config, version=version)
    full = build_sidecar(
        storage, config=msgspec.structs.replace(config, folder=_FULL), version=version, full=True
    )
    assert full.kind == "full"
    ours, whole = (comparable(sidecar_rows(table.path, version, folder)) for folder in (config.folder, _FULL))
    assert ours == whole
    truth = comparable(expected_rows(table.states[version]))
    assert set(truth) == set(replay(table.path, version=version).live)
    assert {key: _known(row, truth.get(key, {})) for key, row in ours.items()} == truth
    assert report.parts_total <= 2 * max(full.parts_total, 1)
    assert report.num_files == len(truth)
    assert len(manifest_of(table.path, version)["parts"]) == report.parts_total
    return report


def open_table(table: Path) -> Storage:
    return open_storage(str(table), build_settings({}, environment={}))


def _known(row: dict[str, Any], expected: dict[str, Any]) -> dict[str, Any]:
    """The columns that the twin speaks of, and every statistic."""
    statistics = ("min.", "max.", "null_count.", "num_records", "dv.")
    return {name: value for name, value in row.items() if name in expected or name.startswith(statistics)}
