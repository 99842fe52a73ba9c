"""Through the cache or not: a table that grows, read at every step, gives the same files in one order."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import lazydelta as ld
from lazydelta.settings import Settings
from lazydelta.sidecar import SidecarConfig
from lazydelta.storage import open_storage
from lazydelta.upkeep.build import build_sidecar
from tests.support.cached import UNCACHED, Asked
from tests.support.eager_twin import replay
from tests.support.growing_table import GrowingTable
from tests.support.hypothesis_profile import examples
from tests.support.reading import STRATEGIES

SMALL = SidecarConfig(row_group_rows=4, row_groups_max=2, delta_commits_min=2)
WHERE = (
    None,
    "_event_hour >= '2026021005'",
    "_event_hour < '2026021003' or value > 3",
    "device_id = 'd3' and count <= 2",
    "not (value < 1) and _event_hour <> '2026021001'",
    "count is null or value is null",
    "_event_hour is null",
)

queries = st.fixed_dictionaries(
    {
        "where": st.sampled_from(WHERE),
        "limit": st.sampled_from([None, None, 1, 7]),
        "strategy": st.sampled_from(STRATEGIES),
        "batch_size": st.sampled_from([1, 3, 8192]),
    }
)
steps = st.lists(
    st.tuples(
        st.integers(0, 4),  # commits
        st.sampled_from(["nothing", "nothing", "checkpoint", "sidecar"]),
        st.lists(st.tuples(queries, st.booleans(), st.booleans()), max_size=2),
    ),
    min_size=2,
    max_size=4,
)
budgets = st.sampled_from([1, 3_000, 30_000, 200_000, 64 << 20])


@settings(max_examples=examples(12))
@given(st.randoms(use_true_random=False), steps, budgets)
def test_every_query_on_a_growing_table_is_the_same_with_the_cache(
    dice: random.Random, steps: list[Any], budget: int
) -> None:
    ld.cache.clear()
    options = {"delta.cache.bytes": str(budget)}
    with tempfile.TemporaryDirectory() as folder:
        growing = GrowingTable(Path(folder), dice)
        for commits, then, asked in steps:
            growing.grow(commits)
            if then != "nothing":
                growing.checkpoint()
            if then == "sidecar":
                build_sidecar(open_storage(folder, Settings()), config=SMALL)
            for query, is_old, with_stats in asked:
                version = dice.randint(0, growing.version) if is_old else None
                how = {**query, "version": version, "with_stats": with_stats}
                cached = Asked(folder, options=options, **how)
                plain = Asked(folder, options=UNCACHED, **how)
                assert cached.table.version == plain.table.version
                assert cached.files == plain.files
                if query["limit"] is None:  # a tail that is known is counted whole, even if a limit ends it
                    assert cached.report.files_skipped == plain.report.files_skipped
                assert ld.cache.stats().bytes <= budget
            everything = Asked(folder, options=options)
            assert (everything.table.version, everything.live) == (
                growing.version,
                set(replay(growing.path).live),
            )
