"""Row positions from the bytes of deletion vectors: every kind of container, both forms, every damage."""

from __future__ import annotations

import struct
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazydelta.protocol.roaring import EMPTY_BITMAP_ARRAY, parse_bitmap_array
from lazydelta.protocol.z85 import decode_z85
from tests.support.deletion_vector_writer import always, bitmap_array, never

CONTAINER = 1 << 16

# Some rows of a container: few, many scattered, long runs, all of it.
MEMBERS = st.one_of(
    st.sets(st.integers(0, CONTAINER - 1), min_size=1, max_size=20),
    st.tuples(st.integers(0, 60_000), st.integers(1, 5_536)).map(lambda run: set(range(run[0], sum(run)))),
    st.sampled_from([set(range(CONTAINER)), set(range(0, CONTAINER, 3)), set(range(4096)), set(range(4097))]),
)
# Which container: near ones, and some of other buckets of 32 bits.
PLACES = st.one_of(st.integers(0, 9), st.integers(65_530, 65_540), st.just((1 << 31) * CONTAINER - 1))
NEAR_PLACES = st.one_of(
    st.integers(0, 9), st.integers(65_530, 65_540), st.integers(3 * CONTAINER, 3 * CONTAINER)
)


def rows_at(containers: dict[int, set[int]]) -> list[int]:
    return sorted(place * CONTAINER + row for place, members in containers.items() for row in members)


@given(st.dictionaries(PLACES, MEMBERS, max_size=7), st.sets(st.integers(0, 9)))
def test_the_portable_form_gives_the_rows_that_were_written(
    containers: dict[int, set[int]], runs: set[int]
) -> None:
    rows = rows_at(containers)
    found = parse_bitmap_array(bitmap_array(rows, as_runs=lambda at: at in runs))
    assert found.between().tolist() == rows
    assert found.between().dtype == np.int64
    assert found.cardinality == len(rows)
    assert found.last() == (rows[-1] if rows else None)


@given(st.dictionaries(NEAR_PLACES, MEMBERS, max_size=5), st.sets(st.integers(0, 9)))
def test_the_native_form_gives_them_too_with_empty_bitmaps_between(
    containers: dict[int, set[int]], runs: set[int]
) -> None:
    rows = rows_at(containers)
    found = parse_bitmap_array(bitmap_array(rows, as_runs=lambda at: at in runs, is_native=True))
    assert found.between().tolist() == rows


@given(
    st.dictionaries(st.integers(0, 4), MEMBERS, max_size=4),
    st.integers(0, 5 * CONTAINER),
    st.integers(0, 2 * CONTAINER),
)
def test_a_window_gives_the_rows_inside_it_and_no_others(
    containers: dict[int, set[int]], first: int, length: int
) -> None:
    rows = rows_at(containers)
    found = parse_bitmap_array(bitmap_array(rows, as_runs=lambda at: at % 2 == 0))
    assert found.between(first, first + length).tolist() == [
        row for row in rows if first <= row < first + length
    ]


@pytest.mark.parametrize(
    "text",
    [
        "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",  # of PROTOCOL.md: native, big-endian lengths
        "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",  # the same rows in the portable form
    ],
)
def test_the_example_of_the_protocol_lists_its_rows(text: str) -> None:
    data = decode_z85(text)
    assert parse_bitmap_array(data).between().tolist() == [3, 4, 7, 11, 18, 29]


def test_an_empty_set_has_no_rows_and_no_last_one() -> None:
    for data in (EMPTY_BITMAP_ARRAY, bitmap_array([], is_native=True), bitmap_array([])):
        found = parse_bitmap_array(data)
        assert found.cardinality == 0
        assert found.last() is None
        assert found.between().tolist() == []


def test_a_bitmap_of_the_cookie_with_runs_may_have_none() -> None:
    body = struct.pack("<HHBHHH", 12347, 0, 0, 0, 0, 7)
    data = struct.pack("<iqI", 1681511377, 1, 0) + body
    assert parse_bitmap_array(data).between().tolist() == [7]


def test_a_window_of_a_hundred_million_rows_takes_the_memory_of_the_window() -> None:
    count = 1526
    header = struct.pack("<HH", 12347, count - 1) + b"\xff" * 190 + b"\x3f"
    header += b"".join(struct.pack("<HH", key, 65_535) for key in range(count))
    first = len(header) + 4 * count
    header += b"".join(struct.pack("<I", first + 6 * at) for at in range(count))
    data = struct.pack("<iqI", 1681511377, 1, 0) + header + struct.pack("<HHH", 1, 0, 65_535) * count
    tracemalloc.start()
    try:
        found = parse_bitmap_array(data)
        rows = found.between(50_000_000, 50_008_192)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.cardinality == count * CONTAINER > 100_000_000
    assert rows.tolist() == list(range(50_000_000, 50_008_192))
    assert peak < 2_000_000


SAMPLES = {
    "array": bitmap_array([1, 5, 70_000]),
    "bitmap": bitmap_array(range(0, 20_000, 2)),
    "runs": bitmap_array([*range(10, 500), *range(600, 605)], as_runs=always),
    "runs with offsets": bitmap_array([*range(3), *range(70_000, 300_000)], as_runs=lambda at: at != 1),
    "two buckets": bitmap_array([1, 1 << 33]),
    "native": bitmap_array([1, 1 << 33], is_native=True),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_bytes_that_end_early_are_refused(name: str) -> None:
    data = SAMPLES[name]
    for length in [*range(min(len(data), 200)), len(data) - 1]:
        with pytest.raises(ValueError, match="it"):
            parse_bitmap_array(data[:length])


@pytest.mark.parametrize("name", SAMPLES)
def test_bytes_after_the_end_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="bytes"):
        parse_bitmap_array(SAMPLES[name] + b"\0")


@pytest.mark.parametrize("name", SAMPLES)
@given(data=st.data())
def test_changed_bytes_give_other_rows_in_order_or_an_error_and_never_more_than_they_count(
    name: str, data: st.DataObject
) -> None:
    sample = bytearray(SAMPLES[name])
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, min(len(sample), 300) - 1))
        sample[at] = data.draw(st.integers(0, 255))
    try:
        found = parse_bitmap_array(bytes(sample))
        rows = found.between()
    except ValueError:
        return
    assert len(rows) == found.cardinality
    assert (rows[1:] > rows[:-1]).all()
    assert not len(rows) or rows[0] >= 0


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (struct.pack("<iq", 1681511375, 0), "magic number"),
        (struct.pack("<iq", 1681511377, -1), "-1 bitmaps"),
        (struct.pack("<iq", 1681511377, 1 << 60), "bitmaps in 12 bytes"),
        (struct.pack("<ii", 1681511376, -1), "-1 bitmaps"),
        (struct.pack("<iqIII", 1681511377, 1, 1 << 31, 12346, 0), "the key 2147483648"),
        (struct.pack("<iqIII", 1681511377, 1, 0, 12345, 0), "no cookie"),
        (struct.pack("<iqIII", 1681511377, 1, 0, 12346, 65_537), "65537 containers"),
        (struct.pack("<iqIIIHHIHH", 1681511377, 1, 0, 12346, 1, 0, 1, 16, 5, 5), "do not ascend"),
        (struct.pack("<iqIIIHHIH", 1681511377, 1, 0, 12346, 1, 0, 0, 17, 5), "not where its header says"),
        (struct.pack("<iqIHHBHHHHHHH", 1681511377, 1, 0, 12347, 0, 1, 0, 3, 2, 5, 1, 6, 1), "overlap"),
        (struct.pack("<iqIHHBHHHHH", 1681511377, 1, 0, 12347, 0, 1, 0, 1, 1, 65_535, 1), "leave it"),
        (struct.pack("<iqIHHBHHHHH", 1681511377, 1, 0, 12347, 0, 1, 0, 1, 1, 5, 2), "of 2 rows has 3"),
        (struct.pack("<iiiII", 1681511376, 1, 9, 12346, 0), "9 bytes takes 8"),
    ],
)
def test_each_contradiction_is_told(data: bytes, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        parse_bitmap_array(data).between()


def test_a_bitmap_container_with_another_number_of_bits_is_refused() -> None:
    data = bytearray(bitmap_array(range(0, 20_000, 2), as_runs=never))
    data[-1] |= 0x80
    with pytest.raises(ValueError, match="10000 rows has 10001"):
        parse_bitmap_array(bytes(data)).between()
