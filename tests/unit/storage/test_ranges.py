"""Near ranges become one request, and every range gets its own bytes back."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazydelta.storage.ranges import coalesce, cut

ranges_lists = st.lists(st.tuples(st.integers(0, 500), st.integers(0, 60)), max_size=20)
OBJECT = bytes(index % 251 for index in range(600))


@given(ranges_lists, st.integers(0, 80))
def test_each_range_gets_its_bytes_whatever_was_merged(ranges: list[tuple[int, int]], gap: int) -> None:
    spans = coalesce(ranges, gap_bytes_max=gap)
    bodies = [OBJECT[span.start : span.end] for span in spans]
    assert cut(ranges, spans, bodies) == [OBJECT[start : start + length] for start, length in ranges]


@given(ranges_lists, st.integers(1, 80))
def test_spans_that_are_left_lie_at_least_the_gap_apart(ranges: list[tuple[int, int]], gap: int) -> None:
    spans = coalesce(ranges, gap_bytes_max=gap)
    assert all(later.start - earlier.end >= gap for earlier, later in pairwise(spans))


def test_a_single_range_is_handed_through_without_a_copy() -> None:
    body = bytes(1000)
    spans = coalesce([(5, 1000)])
    assert cut([(5, 1000)], spans, [body])[0] is body


@pytest.mark.parametrize("bad", [(-1, 5), (0, -5)])
def test_a_negative_range_is_our_mistake(bad: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="no such range"):
        coalesce([bad])
