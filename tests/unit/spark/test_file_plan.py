"""Which task gets which rows: large periods are split, small ones share, no file holds two."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lazydelta.spark.file_plan import plan_files


def test_a_period_that_fits_one_file_gets_one() -> None:
    plan = plan_files({"a": 10}, bytes_per_row=10, file_bytes=100, parallelism=1)
    assert (plan.tasks, plan.files, plan.rows_per_file) == (1, 1, 10)


def test_a_large_period_is_split_evenly() -> None:
    plan = plan_files({"a": 25}, bytes_per_row=10, file_bytes=100, parallelism=1)
    assert (plan.tasks, plan.files, plan.shares[0].pieces) == (3, 3, 3)


def test_small_periods_share_a_task() -> None:
    plan = plan_files(dict.fromkeys("abcdef", 2), bytes_per_row=10, file_bytes=100, parallelism=1)
    assert plan.tasks == 2
    assert plan.files == 6


def test_work_is_spread_over_the_cores_even_where_one_file_would_hold_it() -> None:
    plan = plan_files(dict.fromkeys("abcd", 10), bytes_per_row=1, file_bytes=10**9, parallelism=4)
    assert plan.tasks == 4


@given(
    st.dictionaries(st.text("abcdef0123", min_size=1), st.integers(1, 10_000), min_size=1, max_size=40),
    st.integers(1, 10_000),
    st.integers(1, 16),
)
def test_tasks_are_filled_without_gaps_and_large_periods_share_with_nobody(
    rows: dict[str, int], rows_per_file: int, parallelism: int
) -> None:
    plan = plan_files(rows, bytes_per_row=1, file_bytes=rows_per_file, parallelism=parallelism)
    users: dict[int, list[str]] = {}
    for share in plan.shares:
        for task in range(share.first_task, share.first_task + share.pieces):
            users.setdefault(task, []).append(share.period)
    assert sorted(users) == list(range(plan.tasks))
    assert {share.period for share in plan.shares} == set(rows)
    for share in plan.shares:
        assert share.pieces == -(-rows[share.period] // rows_per_file)
        if share.pieces > 1:
            assert all(len(users[share.first_task + piece]) == 1 for piece in range(share.pieces))
    for periods in users.values():
        if len(periods) > 1:
            assert sum(rows[period] for period in periods) <= rows_per_file
