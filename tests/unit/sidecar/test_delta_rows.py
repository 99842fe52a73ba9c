"""A delta file is read backwards: newest version first, each version's lines in their order."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from lazydelta.sidecar.read.delta_rows import Step, VersionRange, steps_of

files = st.builds(
    lambda counts, group_rows: _cut([v for v, n in enumerate(counts, 1) for _ in range(n)], group_rows),
    st.lists(st.integers(0, 7), min_size=1, max_size=12),
    st.integers(1, 6),
)


def _cut(versions: Sequence[int], group_rows: int) -> list[list[int]]:
    """The versions of the rows of each row group."""
    return [list(versions[at : at + group_rows]) for at in range(0, len(versions), group_rows)]


def ranges(groups: list[list[int]]) -> list[VersionRange]:
    return [VersionRange(group[0], group[-1]) for group in groups]


def test_versions_that_fit_a_row_group_come_together() -> None:
    assert steps_of([VersionRange(1, 4), VersionRange(5, 9)], newest=9) == [Step(1, 5, 9), Step(0, 1, 4)]


def test_a_version_in_several_row_groups_comes_whole_and_in_order_before_older_ones() -> None:
    told = [VersionRange(1, 5), VersionRange(5, 5), VersionRange(5, 9)]
    assert steps_of(told, newest=9) == [
        Step(2, 6, 9),
        Step(0, 5, 5, is_first=True, is_last=False),
        Step(1, 5, 5, is_first=False, is_last=False),
        Step(2, 5, 5, is_first=False, is_last=True),
        Step(0, 1, 4),
    ]


def test_a_file_without_rows_has_no_steps() -> None:
    assert steps_of([], newest=9) == []


@given(files, st.integers(0, 13))
def test_every_row_up_to_the_newest_version_comes_once_newest_version_first(
    groups: list[list[int]], newest: int
) -> None:
    steps = steps_of(ranges(groups), newest)
    came = [
        (version, group, row)
        for group, low, high in ((step.row_group, step.low, step.high) for step in steps)
        for row, version in enumerate(groups[group])
        if low <= version <= high
    ]
    rows = [(v, g, r) for g, group in enumerate(groups) for r, v in enumerate(group) if v <= newest]
    assert sorted(came) == sorted(rows)
    spans = [(step.high, step.low) for step in steps]
    assert all(before[1] >= after[0] for before, after in itertools.pairwise(spans))
    for version in {v for v, _, _ in rows}:
        own = [step for step in steps if step.low <= version <= step.high]
        assert [step.row_group for step in own] == sorted({g for v, g, _ in rows if v == version})
        assert [step.is_first for step in own] == [True] + [False] * (len(own) - 1)
        assert [step.is_last for step in own] == [False] * (len(own) - 1) + [True]
        assert len(own) == 1 or all(step.low == step.high for step in own)
