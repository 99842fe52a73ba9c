"""A filter on the event time is judged by the periods that were made from it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lazydelta.predicate import (
    BoundPredicate,
    FileFacts,
    bind,
    event_time_of,
    parse_where,
    partition_lower_bounds,
    period_format,
    period_starts,
    source_bounds,
)
from lazydelta.protocol.schema import Field, PrimitiveType, StructType
from lazydelta.protocol.statistics import ColumnBounds, statistics_from_json

PROPERTIES = {
    "lazydelta.time.source": "ts",
    "lazydelta.time.column": "_event_hour",
    "lazydelta.time.format": "yyyyMMddHH",
    "lazydelta.time.zone": "UTC",
}


def schema_of(type_name: str = "timestamp", **physical: str) -> StructType:
    def field(name: str, of: str) -> Field:
        renamed = {"delta.columnMapping.physicalName": physical[name]} if name in physical else {}
        return Field(name, PrimitiveType(of), True, renamed)

    inner = StructType((field("at", type_name),))
    return StructType(
        (
            field("ts", type_name),
            field("value", "double"),
            field("_event_hour", "string"),
            Field("event", inner, True, {}),
        )
    )


def bound(where: str, *, type_name: str = "timestamp", **changes: Any) -> BoundPredicate:
    properties = {name: value for name, value in (PROPERTIES | changes).items() if value is not None}
    return bind(
        parse_where(where),
        schema_of(type_name),
        ["_event_hour"],
        where="memory",
        configuration=properties,
    )


def might(predicate: BoundPredicate, *texts: str | None) -> list[bool]:
    facts = FileFacts(len(texts), {"_event_hour": pa.array(texts, pa.string())})
    return predicate.might_match_partitions(facts).tolist()


def changed(**changes: str | None) -> dict[str, Any]:
    return {f"lazydelta.time.{name}": value for name, value in changes.items()}


# --- the rule ------------------------------------------------------------------


def test_a_filter_on_the_event_time_drops_other_hours_to_the_microsecond() -> None:
    hours = ("2026021013", "2026021014", "2026021015")
    assert might(bound("ts >= '2026-02-10T14:00:00Z'"), *hours) == [False, True, True]
    assert might(bound("ts < '2026-02-10T14:00:00Z'"), *hours) == [True, False, False]
    assert might(bound("ts <= '2026-02-10T14:00:00Z'"), *hours) == [True, True, False]
    assert might(bound("ts > '2026-02-10T14:59:59.999998Z'"), *hours) == [False, True, True]
    assert might(bound("ts > '2026-02-10T14:59:59.999999Z'"), *hours) == [False, False, True]
    assert might(bound("ts in ('2026-02-10T13:30:00Z', '2026-02-10T15:30:00Z')"), *hours) == [
        True,
        False,
        True,
    ]
    assert might(bound("not (ts < '2026-02-10T14:00:00Z')"), *hours) == [False, True, True]


def test_a_null_time_is_possible_in_every_hour() -> None:
    assert might(bound("ts is null"), "2026021013") == [True]
    assert might(bound("ts is null or ts > '2027-01-01T00:00:00Z'"), "2026021013") == [True]


@pytest.mark.parametrize(
    "text",
    [None, "", "oops", "2026021", "20260210", "202602101", "2026021024", "2026023014", "2026001014",
     "2026130114", "0000010100", "\uff12026021014", "2026-02-10", " 2026021014", "2026021014\n",
     "+026021014"],
)  # fmt: skip
def test_a_period_that_is_null_or_odd_drops_nothing(text: str | None) -> None:
    assert might(bound("ts > '2030-01-01T00:00:00Z'"), text) == [True]


def test_every_granularity_has_its_own_length() -> None:
    later = "ts >= '2026-03-01T00:00:00Z'"
    assert might(bound(later, **changed(format="yyyyMM")), "202602", "202603") == [False, True]
    assert might(bound(later, **changed(format="yyyyMMdd")), "20260228", "20260301") == [False, True]
    assert might(bound(later, **changed(format="yyyyMMddHHmm")), "202602282359", "202603010000") == [
        False,
        True,
    ]
    seconds = ("20260228235959", "20260301000000")
    assert might(bound(later, **changed(format="yyyyMMddHHmmss")), *seconds) == [False, True]
    assert might(bound("ts >= '2028-02-29T00:00:00Z'", **changed(format="yyyyMM")), "202802") == [True]


def test_dates_and_clock_times_know_no_zone() -> None:
    far = changed(zone="Pacific/Kiritimati")
    clock = bound("ts >= '2026-02-10T14:00:00'", type_name="timestamp_ntz", **far)
    assert might(clock, "2026021013", "2026021014") == [False, True]
    day = bound("ts > '2026-02-10'", type_name="date", **far)
    assert might(day, "2026021000", "2026021100") == [False, True]
    month = bound("ts = '2026-02-28'", type_name="date", **changed(format="yyyyMM"))
    assert might(month, "202601", "202602", "202603") == [False, True, False]


def test_the_years_one_and_9999_are_within_reach() -> None:
    edges = bound("ts > '2026-01-01T00:00:00Z'")
    assert might(edges, "0001010100", "9999123123") == [False, True]
    berlin = bound("ts > '2026-01-01T00:00:00Z'", **changed(zone="Europe/Berlin"))
    assert might(berlin, "0001010100", "9999123123") == [False, True]


# --- zones ---------------------------------------------------------------------


def bounds_in(zone: str, text: str, format_: str = "yyyyMMddHH") -> tuple[datetime, datetime]:
    texts = pa.array([text])
    told = changed(format=format_, zone=zone)
    event_time = event_time_of(PROPERTIES | told, schema_of(), ["_event_hour"])
    assert event_time is not None
    found = source_bounds(event_time.period, "timestamp", texts, texts)
    assert found is not None
    assert found.min is not None
    assert found.max is not None
    return found.min[0].as_py(), found.max[0].as_py()


HOUR, LAST = timedelta(hours=1), timedelta(microseconds=1)


def test_an_hour_that_the_clock_shows_twice_is_two_hours_long() -> None:
    # 2026-10-25: at 03:00 summer time clocks in Berlin go back to 02:00.
    low, high = bounds_in("Europe/Berlin", "2026102502")
    assert low == datetime(2026, 10, 25, 0, tzinfo=UTC) - HOUR
    assert high == datetime(2026, 10, 25, 2, tzinfo=UTC) - LAST + HOUR


def test_an_hour_that_the_clock_skips_holds_nothing_but_is_no_error() -> None:
    low, high = bounds_in("Europe/Berlin", "2026032902")
    change = datetime(2026, 3, 29, 1, tzinfo=UTC)
    assert low <= change <= high
    assert high - low <= 2 * HOUR + LAST


def test_half_hours_of_lord_howe_are_covered() -> None:
    # 2026-04-05: at 02:00 clocks go back to 01:30, so 01:30 to 02:00 comes twice.
    low, high = bounds_in("Australia/Lord_Howe", "2026040501")
    assert low == datetime(2026, 4, 4, 14, tzinfo=UTC) - HOUR
    assert high == datetime(2026, 4, 4, 15, 30, tzinfo=UTC) - LAST + HOUR


def test_zones_of_a_fixed_offset_are_exact() -> None:
    for zone in ("+02:00", "Etc/GMT-2"):
        assert bounds_in(zone, "2026021014") == (
            datetime(2026, 2, 10, 12, tzinfo=UTC),
            datetime(2026, 2, 10, 13, tzinfo=UTC) - LAST,
        )


def test_far_from_today_a_day_is_left_for_rules_that_nobody_knows() -> None:
    for text in ("1965070112", "2060070112"):
        low, high = bounds_in("America/New_York", text)
        assert high - low > timedelta(days=2)


# --- what the properties must say ----------------------------------------------


@pytest.mark.parametrize("name", ["source", "column", "format", "zone"])
def test_without_one_of_the_properties_there_is_no_bound(name: str) -> None:
    assert might(bound("ts > '2030-01-01T00:00:00Z'", **changed(**{name: None}))) == []
    facts = FileFacts(1, {"_event_hour": pa.array(["2026021014"])})
    assert bound("ts > '2030-01-01T00:00:00Z'", **changed(**{name: None})).might_match(facts).tolist() == [
        True
    ]


@pytest.mark.parametrize(
    "told",
    [
        {"format": "yyyy"},
        {"format": "yyyyMMddhh"},
        {"zone": "Nowhere/Land"},
        {"source": "gone"},
        {"source": "value"},
        {"source": "_event_hour"},
        {"source": "event"},
        {"column": "gone"},
        {"column": "value"},
    ],
    ids=str,
)
def test_properties_that_make_no_sense_give_no_bound(told: dict[str, str]) -> None:
    predicate = bound("ts > '2030-01-01T00:00:00Z' and value > 0 and _event_hour < '3'", **changed(**told))
    assert might(predicate, "2026021014") == [True]


def test_a_generated_column_that_is_no_partition_column_gives_no_bound() -> None:
    assert event_time_of(PROPERTIES, schema_of(), []) is None
    assert event_time_of(PROPERTIES, schema_of(), ["_event_hour"]) is not None


def test_the_source_may_lie_inside_a_struct_and_names_may_be_mapped() -> None:
    schema = schema_of(event="col-1", at="col-2", _event_hour="col-3")
    properties = PROPERTIES | {"lazydelta.time.source": "Event.At"}
    predicate = bind(
        parse_where("event.at >= '2026-02-10T14:00:00Z'"),
        schema,
        ["_event_hour"],
        where="memory",
        configuration=properties,
    )
    assert predicate.partition_columns == ("col-3",)
    facts = FileFacts(2, {"col-3": pa.array(["2026021013", "2026021014"])})
    assert predicate.might_match_partitions(facts).tolist() == [False, True]


# --- together with statistics and ranges ---------------------------------------


def test_statistics_and_periods_bound_the_time_together() -> None:
    predicate = bound("ts >= '2026-02-10T14:30:00Z'")
    stats = [
        '{"numRecords":1,"minValues":{"ts":"2026-02-10T14:00:00Z"},"maxValues":{"ts":"2026-02-10T14:10:00Z"}}',
        '{"numRecords":1,"minValues":{"ts":"2026-02-10T14:00:00Z"},"maxValues":{"ts":"2026-02-10T14:40:00Z"}}',
        '{"numRecords":1}',
        None,
    ]
    statistics = statistics_from_json(pa.array(stats, pa.string()), predicate.stats_columns)
    hours = pa.array(["2026021014"] * 4)
    facts = FileFacts(4, {"_event_hour": hours}, statistics)
    assert predicate.might_match(facts).tolist() == [False, True, True, True]


def test_a_filter_on_both_columns_asks_for_the_period_once() -> None:
    predicate = bound("ts >= '2026-02-10T14:00:00Z' and _event_hour >= '2026021014'")
    assert predicate.partition_columns == ("_event_hour",)
    assert predicate.columns == (("ts",), ("_event_hour",))
    assert not bound("ts >= '2026-02-10T14:00:00Z'").decided_by_partitions
    assert bound("value > 1").partition_columns == ()


def test_a_range_of_periods_bounds_the_time_from_its_first_to_its_last() -> None:
    predicate = bound("ts >= '2026-02-10T14:00:00Z' and ts < '2026-02-10T15:00:00Z'")
    texts = ColumnBounds(
        min=pa.array(["2026021010", "2026021012", "2026021015", None, "2026021010", ""]),
        max=pa.array(["2026021013", "2026021014", "2026021020", "2026021013", "x", "2026021013"]),
    )
    facts = FileFacts(6, period_ranges={"_event_hour": texts})
    assert predicate.might_match(facts).tolist() == [False, True, False, True, True, True]


def test_the_hint_of_how_recent_files_are_reads_the_event_time_too() -> None:
    values = list(partition_lower_bounds(bound("ts >= '2026-02-10T14:00:00Z' and value > 3")))
    assert values == [datetime(2026, 2, 10, 14, tzinfo=UTC)]


# --- texts ---------------------------------------------------------------------


def test_texts_are_one_format_only_if_all_are_periods_of_it() -> None:
    assert period_format(pa.array(["2026021014", None, "2026021015"])) == "yyyyMMddHH"
    assert period_format(pa.array(["202602"])) == "yyyyMM"
    for odd in (
        ["2026021014", "20260210"],
        ["2026021014", "2026021025"],
        ["x"],
        [""],
        [None],
        [],
        ["202602101"],
    ):
        assert period_format(pa.array(odd, pa.string())) is None, odd


def test_slices_and_repeated_texts_are_read_at_their_place() -> None:
    texts = pa.array(["x", "2026021014", None, "2026021014", "2026021015"])
    found = period_starts(texts.slice(1), "yyyyMMddHH")
    hour = np.datetime64("2026-02-10T14", "us")
    assert found[0] == found[2] == hour
    assert np.isnat(found[1])
    assert found[3] == hour + np.timedelta64(1, "h")
