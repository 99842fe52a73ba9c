"""Where the files of some commits may lie, and removed rows as ranges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazydelta.log import CommitSlice
from lazydelta.protocol.actions import Add, Metadata, Remove
from lazydelta.protocol.schema import parse_schema
from lazydelta.sidecar import layout_of
from lazydelta.upkeep.changes import Reach, TouchedOrder, removed_mask, removed_ranges
from tests.support.actions import schema_string

HOURS = "_event_hour"


def touched_by(
    *, adds: Sequence[str | None] = (), removes: Sequence[str | None] = (), kind: str = "string"
) -> TouchedOrder:
    """What was touched by files of these hours."""
    touched = touched_order(kind)
    touched.watch(
        slice_of(
            [Add(path="a", size=1, partition_values={HOURS: hour}) for hour in adds],
            [Remove(path="r", partition_values={HOURS: hour}) for hour in removes],
        )
    )
    return touched


def touched_order(kind: str, *, is_partition: bool = True) -> TouchedOrder:
    schema = parse_schema(schema_string({"value": "double", HOURS: kind}), "here")
    metadata = Metadata(id="id", partition_columns=[HOURS] if is_partition else [])
    return TouchedOrder(layout_of(metadata, schema, stats_paths=[(HOURS,)], time_column=HOURS))


def slice_of(adds: list[Add], removes: list[Remove]) -> CommitSlice:
    return CommitSlice(
        version=1,
        oldest=1,
        is_compacted=False,
        is_first=True,
        is_last=True,
        adds=adds,
        removes=removes,
        add_lines=[],
        remove_lines=[],
        others=Counter(),
    )


def test_a_range_is_touched_if_a_value_lies_in_it() -> None:
    touched = touched_by(removes=["05", "20"])
    mask = touched.may_touch(
        Reach.REMOVES, ["00", "05", "06", "10", "20"], ["04", "05", "19", "30", "20"], [0] * 5
    )
    assert mask.tolist() == [False, True, False, True, True]


def test_numbers_compare_as_numbers() -> None:
    touched = touched_by(removes=["9"], kind="integer")
    assert touched.may_touch(Reach.REMOVES, ["10", "8"], ["20", "100"], [0, 0]).tolist() == [False, True]


def test_a_null_lies_where_nulls_are() -> None:
    touched = touched_by(removes=[None])
    assert touched.may_touch(Reach.REMOVES, ["00", "00"], ["99", "99"], [0, 3]).tolist() == [False, True]


def test_a_text_that_does_not_parse_lies_where_nulls_are() -> None:
    touched = touched_by(removes=["soon"], kind="date")
    lows, highs = ["2026-01-01"] * 2, ["2026-12-31"] * 2
    assert touched.may_touch(Reach.REMOVES, lows, highs, [0, 1]).tolist() == [False, True]


def test_a_range_without_a_bound_may_hold_anything() -> None:
    touched = touched_by(removes=["05"])
    assert touched.may_touch(Reach.REMOVES, [None, "06"], ["04", None], [0, 0]).tolist() == [True, True]


def test_adds_count_only_in_the_second_reach() -> None:
    touched = touched_by(adds=["07"], removes=["05"])
    lows = highs = ["05", "07", "08"]
    assert touched.may_touch(Reach.REMOVES, lows, highs, [0] * 3).tolist() == [True, False, False]
    assert touched.may_touch(Reach.ADDS_TOO, lows, highs, [0] * 3).tolist() == [True, True, False]
    assert touched.may_touch(Reach.EVERYWHERE, lows, highs, [0] * 3).all()


def test_where_nothing_was_removed_nothing_is_searched_first() -> None:
    touched = touched_by(adds=["07"])
    assert not touched.may_touch(Reach.REMOVES, ["00", None], ["99", None], [5, 5]).any()


@pytest.mark.parametrize("values", [None, {}, {"other": "1"}])
def test_a_remove_that_does_not_say_where_it_lies_may_lie_anywhere(values: dict[str, str] | None) -> None:
    touched = touched_by(removes=["05"])
    touched.watch(slice_of([], [Remove(path="x", partition_values=values)]))
    assert touched.values(Reach.REMOVES) is None
    touched.watch(slice_of([], [Remove(path="y", partition_values={HOURS: "06"})]))
    assert touched.values(Reach.REMOVES) is None


def test_statistics_that_order_rows_tell_nothing_of_removes() -> None:
    touched = touched_order("string", is_partition=False)
    assert touched.values(Reach.REMOVES) == set()
    touched.watch(slice_of([Add(path="a", size=1)], []))
    assert touched.values(Reach.REMOVES) == set()
    assert touched.values(Reach.ADDS_TOO) is None
    touched.watch(slice_of([], [Remove(path="a", partition_values={HOURS: "05"})]))
    assert touched.values(Reach.REMOVES) is None


@given(st.lists(st.booleans(), max_size=40))
def test_removed_rows_are_the_same_as_ranges_and_as_a_mask(rows: list[bool]) -> None:
    ranges = removed_ranges(np.array(rows, np.bool_))
    assert removed_mask(ranges, len(rows)).tolist() == rows
    ends = [first + count for first, count in zip(ranges[::2], ranges[1::2], strict=True)]
    assert all(first > end for first, end in zip(ranges[2::2], ends, strict=False))
    assert all(count > 0 for count in ranges[1::2])
