"""Levels: every row once, few parts, and work that follows the change. A simulation, no files."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazydelta import limits
from lazydelta.upkeep.levels import Group, LevelPlan, PartSize, balanced, full_part_count, plan_levels


def _whole(rows: int) -> PartSize:
    return PartSize(num_rows=rows, num_live=rows)


def _apply(parts: Sequence[PartSize], plan: LevelPlan, full_rows: int) -> list[PartSize]:
    written = [
        _whole(rows)
        for group in plan.groups
        for rows in balanced(group.num_rows, group.part_count(full_rows))
    ]
    return [parts[at] for at in plan.kept] + written


_SIZES = st.builds(
    lambda rows, share, ranges: PartSize(
        num_rows=rows, num_live=int(rows * share), removed_ranges=ranges if share < 1 else 0
    ),
    st.integers(1, 2000),
    st.sampled_from([0.0, 0.01, 0.5, 0.9, 1.0, 1.0]),
    st.integers(1, 1000),
)


@given(st.lists(_SIZES, max_size=30), st.integers(0, 5000), st.integers(1, 1000), st.integers(2, 16))
def test_every_live_row_is_in_one_part_and_parts_are_few(
    parts: list[PartSize], new_rows: int, full_rows: int, ratio: int
) -> None:
    plan = plan_levels(parts, new_rows, full_rows=full_rows, ratio=ratio)
    used = [*plan.kept, *(at for group in plan.groups for at in group.parts)]
    assert sorted(used) == [at for at, part in enumerate(parts) if part.num_live]
    assert sum(group.has_new_rows for group in plan.groups) == (new_rows > 0)
    for group in plan.groups:
        own = new_rows if group.has_new_rows else 0
        assert group.num_rows == own + sum(parts[at].num_live for at in group.parts)
    live = new_rows + sum(part.num_live for part in parts)
    assert len(_apply(parts, plan, full_rows)) <= 2 * full_part_count(live, full_rows)
    assert not any(parts[at].is_worn for at in plan.kept)


def test_new_rows_enter_at_the_smallest_level_that_holds_them() -> None:
    plan = plan_levels([_whole(16_000), _whole(14_000)], 50, full_rows=16_000, ratio=16)
    assert plan.kept == (0, 1)
    assert plan.groups == (Group(parts=(), has_new_rows=True, num_rows=50),)


def test_a_level_that_overflows_is_carried_up() -> None:
    parts = [_whole(16_000), _whole(990), _whole(60)]
    plan = plan_levels(parts, 50, full_rows=16_000, ratio=16)
    assert plan.groups == (Group(parts=(1, 2), has_new_rows=True, num_rows=1100),)
    assert plan.kept == (0,)


def test_a_carry_joins_the_newest_part_that_has_room() -> None:
    parts = [_whole(8_000), _whole(9_000), _whole(15_900), _whole(995)]
    plan = plan_levels(parts, 70, full_rows=16_000, ratio=16)
    assert plan.groups == (Group(parts=(1, 3), has_new_rows=True, num_rows=10_065),)


def test_a_worn_part_is_written_anew_and_takes_the_carry_along() -> None:
    worn = PartSize(num_rows=10_000, num_live=5_000, removed_ranges=1)
    plan = plan_levels([worn, _whole(9_000)], 2_000, full_rows=16_000, ratio=16)
    assert plan.groups == (Group(parts=(0,), has_new_rows=True, num_rows=7_000),)
    assert plan.kept == (1,)


@pytest.mark.parametrize(
    ("removed", "ranges", "is_worn"),
    [
        (0, 0, False),
        (250, 1, False),
        (251, 1, True),
        (250, limits.SIDECAR_REMOVED_RANGES_MAX, False),
        (250, limits.SIDECAR_REMOVED_RANGES_MAX + 1, True),
    ],
)
def test_a_part_is_worn_by_its_share_or_by_its_ranges(removed: int, ranges: int, *, is_worn: bool) -> None:
    part = PartSize(num_rows=1000, num_live=1000 - removed, removed_ranges=ranges)
    assert part.is_worn is is_worn


def test_rows_past_a_full_part_make_balanced_parts() -> None:
    plan = plan_levels([], 2_500, full_rows=1_000, ratio=16)
    assert plan.groups[0].part_count(1_000) == 3
    assert balanced(2_500, 3) == [833, 833, 834]


@pytest.mark.parametrize("seed", range(6))
def test_over_thousands_of_builds_the_work_follows_the_change(seed: int) -> None:
    """Rows written per row changed stay under the levels' bound, however large the table is."""
    dice = random.Random(seed)
    full_rows, ratio = 64_000, 16
    table = dice.choice([0, 30_000, 100_000, 1_000_000])
    parts = [_whole(rows) for rows in balanced(table, full_part_count(table, full_rows))] if table else []
    written = changed = 0
    for _ in range(3_000):
        new_rows = dice.choice([0, 1, 20, 200, 200, 2_000])
        parts, removed = _with_removals(parts, dice)
        plan = plan_levels(parts, new_rows, full_rows=full_rows, ratio=ratio)
        parts = _apply(parts, plan, full_rows)
        written += plan.rows_written
        changed += new_rows + removed
        live = sum(part.num_live for part in parts)
        assert len(parts) <= 2 * full_part_count(live, full_rows)
    level_count = 4  # 64,000, 4,000, 250, 15
    assert written < changed * ratio * level_count
    assert (
        written / changed < 2.5 * ratio
    )  # what is seen, with room; a full build each time is a hundred fold


def test_a_hundred_checkpoints_write_a_tenth_of_what_full_builds_write() -> None:
    full_rows, live = 640_000, 1_000_000
    parts = [_whole(500_000), _whole(500_000)]
    written = full = 0
    for _ in range(100):
        plan = plan_levels(parts, 2_000, full_rows=full_rows, ratio=16)
        parts = _apply(parts, plan, full_rows)
        live += 2_000
        written += plan.rows_written
        full += live
        assert len(parts) <= 2 * full_part_count(live, full_rows)
    assert written * 20 < full


def _with_removals(parts: list[PartSize], dice: random.Random) -> tuple[list[PartSize], int]:
    """A few rows gone here and there, and now and then an OPTIMIZE that empties a stretch of one part."""
    if not parts or dice.random() < 0.5:
        return parts, 0
    at = dice.randrange(len(parts))
    part = parts[at]
    share = 0.8 if dice.random() < 0.01 else 0.002
    removed = min(part.num_live, max(1, int(part.num_rows * share)))
    changed = PartSize(
        num_rows=part.num_rows,
        num_live=part.num_live - removed,
        removed_ranges=part.removed_ranges + dice.choice([1, 5]),
    )
    return [*parts[:at], changed, *parts[at + 1 :]], removed
