"""The benchmark of builds by Spark: how its promises are judged, and what its page tells."""

from __future__ import annotations

import msgspec

from bench.spark_build import Taken, judge, page, table_of

FULL = Taken(
    name="full", seconds=100, cpu_seconds=150, parts=20, written_bytes=400_000_000, all_bytes=6_000_000_000
)
RESUMED = msgspec.structs.replace(FULL, name="resumed", seconds=60, taken_over=10)


def test_memory_and_parts_taken_over_are_judged() -> None:
    assert [check.passed for check in judge([FULL, RESUMED])] == [True, True]
    large = msgspec.structs.replace(FULL, all_bytes=8_100_000_000)
    assert [check.passed for check in judge([large, RESUMED])] == [False, True]
    anew = msgspec.structs.replace(RESUMED, taken_over=9)
    assert [check.passed for check in judge([FULL, anew])] == [True, False]


def test_the_page_has_a_column_for_each_build() -> None:
    lines = table_of([FULL, RESUMED]).splitlines()
    assert lines[0] == "| what | full | resumed |"
    assert "| parts, of those taken over | 20, 0 | 20, 10 |" in lines
    told = page(
        [FULL, RESUMED],
        judge([FULL, RESUMED]),
        files=123_456,
        checkpoint_bytes=1_000_000,
        driver_memory="4g",
    )
    assert "123,456 files in 1 MB" in told
    assert "10 of 20 parts, in 0.60 of the time" in told
