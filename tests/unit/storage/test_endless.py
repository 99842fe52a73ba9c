"""Listings that would not end are noticed, and others are not disturbed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lazydelta.storage.endless import CycleWatch


@given(before=st.integers(0, 40), cycle=st.integers(1, 40), page=st.integers(1, 7))
def test_a_listing_that_comes_again_is_noticed_before_it_is_long(before: int, cycle: int, page: int) -> None:
    watch = CycleWatch()
    keys = [str(number) for number in range(before + cycle)]
    endless = [
        keys[number if number < before else before + (number - before) % cycle] for number in range(2000)
    ]
    pages = [endless[at : at + page] for at in range(0, len(endless), page)]
    seen = next(number for number, keys in enumerate(pages, start=1) if watch.has_seen(keys))
    assert seen <= 3 * (2 * (before + cycle) // page + 2)


@given(st.lists(st.text(max_size=3), unique=True), st.integers(1, 5))
def test_a_listing_in_any_order_is_read_to_its_end(keys: list[str], page: int) -> None:
    watch = CycleWatch()
    assert not any(watch.has_seen(keys[at : at + page]) for at in range(0, len(keys), page))
