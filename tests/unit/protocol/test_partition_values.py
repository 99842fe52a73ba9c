"""Partition values: out of the map, and as typed values."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lazydelta.protocol.partition_values import parse_partition_column, raw_partition_column
from lazydelta.protocol.schema import PrimitiveType

MAPS = pa.array(
    [[("p", "1"), ("q", "x")], None, [("q", None)], [("p", "")], [], [("q", "y"), ("p", "2")]],
    pa.map_(pa.string(), pa.string()),
)


def test_a_column_is_null_where_its_key_is_absent_or_null() -> None:
    assert raw_partition_column(MAPS, "p").to_pylist() == ["1", None, None, "", None, "2"]
    assert raw_partition_column(MAPS, "q").to_pylist() == ["x", None, None, None, None, "y"]
    assert raw_partition_column(MAPS, "r").to_pylist() == [None] * 6


@pytest.mark.parametrize("offset", range(7))
def test_slices_of_a_map_keep_their_rows(offset: int) -> None:
    for length in range(7 - offset):
        expected = ["1", None, None, "", None, "2"][offset : offset + length]
        assert raw_partition_column(MAPS.slice(offset, length), "p").to_pylist() == expected


def test_other_string_layouts_are_read_too() -> None:
    maps = MAPS.cast(pa.map_(pa.string(), pa.large_string()))
    assert raw_partition_column(maps, "p").type == pa.string()


@pytest.mark.parametrize(
    ("type_name", "texts", "values"),
    [
        ("string", ["a", "", None], ["a", "", None]),
        ("binary", ["\x01\x02", "", "é"], [b"\x01\x02", b"", None]),
        ("boolean", ["true", "FALSE", "1", ""], [True, False, None, None]),
        ("long", ["-5", "9223372036854775807"], [-5, 2**63 - 1]),
        ("long", ["9223372036854775808", "0x1F", "1.0", ""], [None] * 4),
        ("byte", ["127", "128"], [127, None]),
        ("decimal(5,2)", ["1.5", "-1", "1e2"], [Decimal("1.50"), Decimal(-1), Decimal(100)]),
        ("decimal(5,2)", ["1.555", "1000", "ten"], [None] * 3),
        ("double", ["1.5", "1E10", "-Infinity", "five"], [1.5, 1e10, float("-inf"), None]),
        ("double", ["inf", "-inf", "INF", "infinit"], [float("inf"), float("-inf"), float("inf"), None]),
        ("float", ["0.1"], [0.10000000149011612]),
        ("date", ["2026-02-08", "2026-02-30", "2026-2-8"], [date(2026, 2, 8), None, None]),
        ("timestamp_ntz", ["2026-02-08 01:02:03.5", "x"], [datetime(2026, 2, 8, 1, 2, 3, 500_000), None]),  # noqa: DTZ001
    ],
)  # fmt: skip
def test_texts_are_parsed_exactly_or_not_at_all(type_name: str, texts: list[Any], values: list[Any]) -> None:
    parsed = parse_partition_column(pa.array(texts, pa.string()), PrimitiveType(type_name))
    assert parsed.to_pylist() == values


def test_timestamps_are_read_with_and_without_a_zone() -> None:
    texts = pa.array(
        ["2026-02-08 10:00:00", "2026-02-08T10:00:00.000001Z", "2026-02-08T10:00:00+02:00", "noon", None]
    )
    parsed = parse_partition_column(texts, PrimitiveType("timestamp"), time_zone="Asia/Tokyo")
    assert parsed.type == pa.timestamp("us", tz="UTC")
    assert parsed.to_pylist() == [
        datetime(2026, 2, 8, 1, tzinfo=UTC),
        datetime(2026, 2, 8, 10, 0, 0, 1, tzinfo=UTC),
        datetime(2026, 2, 8, 8, tzinfo=UTC),
        None,
        None,
    ]


def test_an_hour_shown_twice_or_never_does_not_fail() -> None:
    texts = pa.array(["2025-10-26 02:30:00", "2025-03-30 02:30:00"])
    early, late = (
        parse_partition_column(
            texts, PrimitiveType("timestamp"), time_zone="Europe/Berlin", prefer_latest=latest
        ).to_pylist()
        for latest in (False, True)
    )
    assert (late[0] - early[0]).total_seconds() == 3600
    assert early[1] <= late[1]
