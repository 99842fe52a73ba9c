"""Near ranges become one request, and every range gets its own bytes back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazydelta import limits
from lazydelta.settings import Settings
from lazydelta.storage import Storage, open_storage

UNIT = limits.RANGE_COALESCE_BYTES // 16
OBJECT = b"".join(index.to_bytes(4, "little") for index in range(200 * UNIT // 4))
pieces = st.tuples(st.integers(0, 150), st.integers(-1, 1), st.integers(0, 40))


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Storage:
    folder = tmp_path_factory.mktemp("ranges")
    (folder / "object").write_bytes(OBJECT)
    return open_storage(str(folder), Settings())


@given(drawn=st.lists(pieces, max_size=12))
def test_near_ranges_are_one_request_and_each_gets_its_bytes(
    storage: Storage, drawn: list[tuple[int, int, int]]
) -> None:
    ranges = [(max(0, start * UNIT + by), length * UNIT) for start, by, length in drawn]
    scoped = storage.scoped()
    assert scoped.get_ranges("object", ranges) == [OBJECT[at : at + length] for at, length in ranges]
    expected: list[tuple[int, int]] = []
    for start, length in sorted(one for one in ranges if one[1]):
        if expected and start - expected[-1][1] < limits.RANGE_COALESCE_BYTES:
            expected[-1] = (expected[-1][0], max(expected[-1][1], start + length))
        else:
            expected.append((start, start + length))
    counted = scoped.counters.snapshot()
    assert (counted.requests, counted.bytes_read) == (len(expected), sum(end - at for at, end in expected))


@pytest.mark.parametrize("bad", [(-1, 5), (0, -5)])
def test_a_negative_range_is_our_mistake(storage: Storage, bad: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="no such range"):
        storage.get_ranges("object", [bad])
