"""Rule 9 of the design, clause by clause: skipping is one-sided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from lazydelta.predicate import BoundPredicate, FileFacts, bind, col, parse_where
from lazydelta.protocol.schema import ArrayType, Field, PrimitiveType, StructType
from lazydelta.protocol.statistics import ColumnBounds, FileStatistics, statistics_from_json

WIDENED = {"delta.typeChanges": [{"toType": "double", "fromType": "float", "tableVersion": 3}]}


def bound(where: Any, type_name: str, *, partitions: Sequence[str] = (), **metadata: Any) -> BoundPredicate:
    """The filter on a table with one column `x` of that type."""
    schema = StructType((Field("x", PrimitiveType(type_name), True, metadata.pop("metadata", {})),))
    return bind(parse_where(where), schema, partitions, where="memory", **metadata)


def facts(
    predicate: BoundPredicate, *stats: Mapping[str, Any] | None, deleted: Sequence[int] | None = None
) -> FileFacts:
    """Files with these statistics, as JSON."""
    texts = pa.array(
        [None if one is None else msgspec.json.encode(one).decode() for one in stats], pa.string()
    )
    statistics = statistics_from_json(texts, predicate.stats_columns)
    return FileFacts(len(stats), {}, statistics, None if deleted is None else pa.array(deleted, pa.int64()))


def between(low: Any, high: Any, **more: Any) -> dict[str, Any]:
    return {
        "numRecords": 10,
        "minValues": {"x": low},
        "maxValues": {"x": high},
        "nullCount": {"x": 0},
        **more,
    }


def might(
    where: str, type_name: str, *stats: Mapping[str, Any] | None, deleted: Any = None, **how: Any
) -> list[bool]:
    predicate = bound(where, type_name, **how)
    return predicate.might_match(facts(predicate, *stats, deleted=deleted)).tolist()


def must(
    where: str, type_name: str, *stats: Mapping[str, Any] | None, deleted: Any = None, **how: Any
) -> list[bool]:
    predicate = bound(where, type_name, **how)
    return predicate.must_match(facts(predicate, *stats, deleted=deleted)).tolist()


def in_partition(where: str, type_name: str, *raw: str | None, **how: Any) -> tuple[list[bool], list[bool]]:
    """Might and must, by partition values."""
    predicate = bound(where, type_name, partitions=["x"], **how)
    known = FileFacts(len(raw), {"x": pa.array(raw, pa.string())})
    return predicate.might_match(known).tolist(), predicate.must_match(known).tolist()


# --- a file is dropped only when proven ----------------------------------------


def test_a_file_is_dropped_only_when_its_bounds_exclude_every_row() -> None:
    files = (between(1, 4), between(5, 9), between(10, 12))
    assert might("x >= 5 and x < 10", "long", *files) == [False, True, False]
    assert might("x = 9", "long", *files) == [False, True, False]
    assert might("x < 1 or x > 12", "long", *files) == [False, False, False]


def test_not_and_unequal_and_in_follow_three_valued_logic() -> None:
    files = (between(7, 7), between(7, 8))
    assert might("x <> 7", "long", *files) == [False, True]
    assert might("not (x = 7)", "long", *files) == [False, True]
    assert might("x not in (7, 9)", "long", *files) == [False, True]
    assert might("x in (1, 8)", "long", *files) == [False, True]
    assert might("x not in (7, null)", "long", *files) == [False, False]
    assert might("x = null or x <> null", "long", *files) == [False, False]
    assert must("x in (7, null)", "long", *files) == [True, False]


def test_is_null_is_decided_by_the_null_count() -> None:
    none, some, all_null = ({"numRecords": 10, "nullCount": {"x": count}} for count in (0, 3, 10))
    assert might("x is null", "long", none, some, all_null) == [False, True, True]
    assert might("x is not null", "long", none, some, all_null) == [True, True, False]
    assert must("x is null", "long", none, some, all_null) == [False, False, True]
    assert might("x > 1", "long", none, some, all_null) == [True, True, False]
    assert might("not (x > 1)", "long", none, some, all_null) == [True, True, False]


def test_a_null_row_keeps_a_comparison_from_holding_for_every_row() -> None:
    assert must("x > 0", "long", between(1, 4), between(1, 4, nullCount={"x": 1})) == [True, False]
    assert must("x > 0 or x is null", "long", between(1, 4, nullCount={"x": 1})) == [False]


def test_columns_are_looked_up_by_physical_names() -> None:
    inner = StructType((Field("b", PrimitiveType("long"), True, {"delta.columnMapping.physicalName": "c2"}),))
    schema = StructType(
        (
            Field("a", inner, True, {"delta.columnMapping.physicalName": "c1"}),
            Field("p", PrimitiveType("long"), True, {"delta.columnMapping.physicalName": "c3"}),
        )
    )
    predicate = bind(parse_where("a.b = 5 and p = 1"), schema, ["p"], where="memory")
    assert predicate.partition_columns == ("c3",)
    assert [column.path for column in predicate.stats_columns] == [("c1", "c2")]
    texts = pa.array(
        ['{"minValues":{"c1":{"c2":6}}}', '{"minValues":{"c1":{"c2":5}}}', '{"minValues":{"a":{"b":6}}}']
    )
    statistics = statistics_from_json(texts, predicate.stats_columns)
    known = FileFacts(3, {"c3": pa.array(["1", "1", "1"])}, statistics)
    assert predicate.might_match(known).tolist() == [False, True, True]


# --- missing, unparseable, wide --------------------------------------------------


def test_missing_or_unparseable_statistics_say_nothing() -> None:
    odd = {"numRecords": 10, "minValues": {"x": "seven"}, "maxValues": {"x": [1]}}
    files = (None, {}, odd, {"minValues": {"x": 9}}, {"maxValues": {"x": 3}})
    assert might("x = 5", "long", *files) == [True, True, True, False, False]
    assert must("x = 5", "long", *files) == [False] * 5
    predicate = bound("x = 5", "long")
    assert predicate.might_match(FileFacts(2)).tolist() == [True, True]


def test_wide_bounds_still_bound() -> None:
    wide = between(1, 4, tightBounds=False)
    assert might("x > 4", "long", wide) == [False]
    assert must("x < 5", "long", wide) == [True]


def test_a_wide_null_count_speaks_only_at_zero_or_at_num_records() -> None:
    counts = [{"numRecords": 10, "nullCount": {"x": count}, "tightBounds": False} for count in (0, 6, 10)]
    assert might("x is null", "long", *counts, deleted=[4, 4, 4]) == [False, True, True]
    # Six nulls before four rows were deleted: the six valid rows need not be the null ones.
    assert might("x is not null", "long", *counts, deleted=[4, 4, 4]) == [True, True, False]


def test_tight_and_all_null_means_num_records_less_the_cardinality() -> None:
    six = {"numRecords": 10, "nullCount": {"x": 6}}
    assert might("x is not null", "long", six, six, deleted=[4, 0]) == [False, True]
    assert must("x is null", "long", six, six, deleted=[4, 0]) == [True, False]


def test_an_unknown_number_of_records_is_never_all_null() -> None:
    assert might("x > 1", "long", {"nullCount": {"x": 10}}) == [True]
    assert might("x is null", "long", {"nullCount": {"x": 0}}) == [False]


# --- truncation -----------------------------------------------------------------


@pytest.mark.parametrize("type_name", ["timestamp", "timestamp_ntz"])
def test_a_timestamp_max_is_raised_by_999_microseconds(type_name: str) -> None:
    zone = "Z" if type_name == "timestamp" else ""
    cut = between(f"2026-02-10T22:00:00.000{zone}", f"2026-02-10T22:00:00.123{zone}")
    assert might("x = '2026-02-10T22:00:00.123999'", type_name, cut) == [True]
    assert might("x >= '2026-02-10T22:00:00.124'", type_name, cut) == [False]
    assert must("x <= '2026-02-10T22:00:00.123'", type_name, cut) == [False]
    assert must("x < '2026-02-10T22:00:00.124'", type_name, cut) == [True]
    assert might("x < '2026-02-10T22:00:00'", type_name, cut) == [False]


def test_a_string_max_excludes_only_what_is_greater_and_does_not_start_with_it() -> None:
    cut = between("a", "abc")
    assert might("x = 'abcd'", "string", cut) == [True]
    assert might("x > 'abc'", "string", cut) == [True]
    assert might("x = 'abd'", "string", cut) == [False]
    assert might("x >= 'abd'", "string", cut) == [False]
    assert might("x like 'abcd%'", "string", cut) == [True]
    assert might("x like 'abd%'", "string", cut) == [False]
    assert might("x in ('abcx', 'b')", "string", cut) == [True]
    assert might("x in ('abx', 'b')", "string", cut) == [False]
    assert might("x <> 'abc'", "string", between("abc", "abc")) == [True]
    assert must("x <= 'abc'", "string", cut) == [False]
    assert must("x in ('abc')", "string", between("abc", "abc")) == [False]
    assert must("x like 'ab%'", "string", between("ab", "abz"), cut) == [True, False]


def test_strings_compare_in_utf8_byte_order() -> None:
    # In UTF-16, as some languages compare, U+1F600 sorts below U+FF01.
    assert might("x > '\uff01'", "string", between("a", "\U0001f600")) == [True]
    assert might("x = '\U0001f600'", "string", between("a", "\uff01")) == [False]


def test_a_max_that_ends_in_the_old_tie_breaker_is_taken_as_a_prefix() -> None:
    assert might("x = 'ab\U0001f600'", "string", between("a", "ab\ufffd")) == [True]


def test_collated_columns_keep_the_file() -> None:
    collated = {"metadata": {"__COLLATIONS": {"x": "icu.en_US"}}}
    assert might("x = 'B'", "string", between("a", "c"), **collated) == [True]
    assert must("x >= 'a'", "string", between("a", "c"), **collated) == [False]
    assert might("x is null", "string", between("a", "c"), **collated) == [False]
    assert in_partition("x = 'B'", "string", "a", **collated) == ([True], [False])


# --- numbers --------------------------------------------------------------------


def test_decimals_are_decoded_from_their_digits() -> None:
    predicate = bound("x > 1234567.89", "decimal(15,2)")
    texts = pa.array(
        ['{"minValues":{"x":1234567.88},"maxValues":{"x":1234567.89}}', '{"maxValues":{"x":1234567.90}}']
    )
    known = FileFacts(2, {}, statistics_from_json(texts, predicate.stats_columns))
    assert predicate.might_match(known).tolist() == [False, True]


def test_a_decimal_that_went_through_f64_is_widened() -> None:
    true_max = Decimal("12345678901234567.89")
    through_f64 = float(true_max)
    assert Decimal(through_f64) != true_max
    for where in (f"x = {true_max}", f"x >= {true_max}"):
        assert might(where, "decimal(19,2)", between(0, through_f64)) == [True]
    assert might("x > 12345678901234600", "decimal(19,2)", between(0, through_f64)) == [False]
    assert must(f"x <= {Decimal(through_f64)}", "decimal(19,2)", between(0, through_f64)) == [False]


def test_a_decimal_that_a_64_bit_integer_stands_for_may_lie_beyond_it() -> None:
    last, first, near, far = 2**63 - 1, -(2**63), 9 * 10**18, 99 * 10**17
    for type_name in ("decimal(38,0)", "decimal(19,0)", "decimal(38,10)"):
        assert might(f"x > {far}", type_name, between(0, last), between(0, last - 1)) == [True, False]
        assert might(f"x < -{far}", type_name, between(first, 0), between(first + 1, 0)) == [True, False]
        assert might(f"x = {far}", type_name, between(last, last)) == [True]
        assert must(f"x < {far}", type_name, between(0, last)) == [False]
        assert might(f"x < {near}", type_name, between(last, last)) == [False]
        assert might(f"x > -{near}", type_name, between(first, first)) == [False]


def test_a_small_value_of_a_long_decimal_stays_exact() -> None:
    assert might("x <> 5", "decimal(19,2)", between(5, 5)) == [False]
    assert might("x = 5.01", "decimal(19,2)", between(0, 5)) == [False]


def test_digits_past_the_scale_are_rounded_outwards() -> None:
    low, high = 0.5700000000000001, 0.5799999999999999
    assert might("x = 0.57", "decimal(6,2)", between(low, high)) == [True]
    assert might("x = 0.58", "decimal(6,2)", between(low, high)) == [True]
    assert might("x = 0.56", "decimal(6,2)", between(low, high)) == [False]
    assert might("x = 0.59", "decimal(6,2)", between(low, high)) == [False]


def test_floats_are_read_as_float32() -> None:
    tenth = between(0.1, 0.1)
    assert might("x = 0.1", "float", tenth) == [True]
    assert might("x < 0.1", "float", tenth) == [True]  # 0.1 as a double lies below 0.1 as a float
    assert might("x > 0.2", "float", between(0.1, 0.15)) == [True]  # NaN
    assert might("x < 0.05", "float", tenth) == [False]


def test_a_rounded_literal_is_never_certain() -> None:
    # Some readers compare floats with the float 0.1, some with the double.
    for where in ("x in (0.1)", "x = 0.1", "x <> 0.1", "x not in (0.1)"):
        assert in_partition(where, "float", "0.1") == ([True], [False]), where


def test_after_float_to_double_widening_the_outer_reading_is_taken() -> None:
    as_written = between(0.1, 0.1)
    single = Decimal(float(np.float32(0.1)))
    assert might(f"x = {single}", "double", as_written, metadata=WIDENED) == [True]
    assert might("x = 0.1", "double", as_written, metadata=WIDENED) == [True]
    assert might(f"x = {single}", "double", as_written) == [False]


def test_minus_zero_equals_zero() -> None:
    for low, high in ((0.0, 0.0), (-0.0, -0.0)):
        assert might("x = -0.0", "double", between(low, high)) == [True]
        assert might("x = 0.0", "double", between(low, high)) == [True]
        assert might("x < 0", "double", between(low, high)) == [False]
        assert might("x in (0, 5)", "double", between(low, high)) == [True]
    assert in_partition("x in (0.0)", "double", "-0.0", "0.0") == ([True, True], [True, True])


def test_nan_is_greatest_so_a_float_max_never_excludes_greater_or_unequal() -> None:
    five = between(1.0, 5.0)
    for where in ("x > 9", "x >= 9", "x <> 9", "not (x < 9)", "x = 'NaN'"):
        assert might(where, "double", five) == [True], where
    assert might("x = 9", "double", five) == [False]
    assert might("x < 1", "double", five) == [False]
    assert must("x < 9", "double", five) == [False]
    assert must("x >= 1", "double", five) == [True]


def test_a_bound_that_is_nan_says_nothing() -> None:
    assert might("x = 3", "double", between("NaN", "NaN"), between(1, "NaN"), between(4, "NaN")) == [
        True,
        True,
        False,
    ]
    assert might("x < 3", "double", between("-Infinity", "Infinity")) == [True]


def test_a_literal_between_or_beyond_the_integers_is_exact() -> None:
    assert might("x > 1.5", "long", between(0, 1), between(0, 2)) == [False, True]
    assert must("x >= 1.5", "long", between(1, 3), between(2, 3)) == [False, True]
    assert might("x = 1.5", "long", between(0, 9)) == [False]
    assert might("x <> 1.5", "long", between(0, 9), {"numRecords": 1, "nullCount": {"x": 1}}) == [True, False]
    assert must("x < 128", "byte", between(-128, 127)) == [True]
    assert might("x >= 1e30", "long", between(0, 9)) == [False]
    assert might("x = 9007199254740993", "long", between(9007199254740992, 9007199254740992)) == [False]


# --- partition values -------------------------------------------------------------


def test_partition_values_decide_exactly() -> None:
    assert (
        in_partition("x = '2026-02-08'", "date", "2026-02-08", "2026-02-09", None)
        == ([True, False, False],) * 2
    )
    assert in_partition("x is null", "long", None, "", "5") == ([True, True, False],) * 2
    assert in_partition("not (x = 5)", "long", None, "", "5", "6") == ([False, False, False, True],) * 2
    assert in_partition("x > 1.5", "double", "NaN", "1.5", "2") == ([True, False, True],) * 2
    assert in_partition("x like '%b_'", "string", "abc", "ab") == ([True, False],) * 2


def test_an_empty_partition_string_keeps_both_readings() -> None:
    for type_name in ("string", "binary"):
        assert in_partition("x is null", type_name, "", "a") == ([True, False], [False, False])
        assert in_partition("x is not null", type_name, "", "a") == ([True, True], [False, True])
        assert in_partition("x = ''", type_name, "", "a") == ([True, False], [False, False])
        assert in_partition("x <> 'a'", type_name, "") == ([True], [False])


def test_an_unparseable_partition_value_says_nothing() -> None:
    for where in ("x = 5", "x <> 5", "x is null", "x is not null", "x in (1)"):
        assert in_partition(where, "long", "five") == ([True], [False]), where
        assert in_partition(where, "double", "five") == ([True], [False]), where


def test_partition_timestamps_without_a_zone_are_utc_unless_configured() -> None:
    raw = ("2026-02-10 22:00:00", "2026-02-10T22:00:00.000000Z", "2026-02-10 23:00:00+01:00")
    where = "x = '2026-02-10T22:00:00Z'"
    assert in_partition(where, "timestamp", *raw) == ([True, True, True],) * 2
    assert in_partition(where, "timestamp", *raw, time_zone="Europe/Berlin") == ([False, True, True],) * 2


def test_an_hour_that_the_clock_showed_twice_keeps_both_readings() -> None:
    raw = "2025-10-26 02:30:00"  # clocks in Berlin went back at 03:00
    for instant in ("2025-10-26T00:30:00Z", "2025-10-26T01:30:00Z"):
        judged = in_partition(f"x = '{instant}'", "timestamp", raw, time_zone="Europe/Berlin")
        assert judged == ([True], [False])


def test_a_partition_column_without_values_is_judged_by_its_bounds() -> None:
    predicate = bound("x >= date '2026-02-08'", "date", partitions=["x"])
    days = pa.array([date(2026, 2, 1), date(2026, 2, 7)]), pa.array([date(2026, 2, 8), date(2026, 2, 7)])
    statistics = FileStatistics(2, None, None, {("x",): ColumnBounds(*days)})
    envelope = FileFacts(2, {}, statistics)
    assert predicate.might_match(envelope).tolist() == [True, False]
    assert predicate.must_match(envelope).tolist() == [False, False]
    assert predicate.might_match_partitions(envelope).tolist() == [True, True]


def test_bounds_of_a_narrower_type_are_widened() -> None:
    predicate = bound("x > 5", "long")
    bounds = ColumnBounds(pa.array([1, 1], pa.int32()), pa.array([5, 6], pa.int32()))
    known = FileFacts(2, {}, FileStatistics(2, None, None, {("x",): bounds}))
    assert predicate.might_match(known).tolist() == [False, True]


# --- the rest ----------------------------------------------------------------------


def test_only_partition_columns_decide_without_statistics() -> None:
    assert bound("x = 5", "long", partitions=["x"]).decided_by_partitions
    assert not bound("x = 5", "long").decided_by_partitions
    assert bound("true", "long").decided_by_partitions


@pytest.mark.parametrize("type_name", ["long", "double", "decimal(10,0)"])
def test_a_long_list_of_values_is_judged_by_what_it_holds(type_name: str) -> None:
    wanted = list(range(0, 10_000, 2))
    predicate = bound(col("x").is_in(wanted), type_name)
    no_bounds = {"numRecords": 10}
    files = (between(4, 4), between(-9, -1), between(20_000, 30_000), no_bounds, {"minValues": {"x": 9_999}})
    judged = predicate.might_match(facts(predicate, *files))
    assert judged.tolist() == [True, False, False, True, False]


def test_a_long_list_of_texts_is_judged_by_spans() -> None:
    predicate = bound(col("x").is_in([f"k{at:04}" for at in range(0, 1000, 2)]), "string")
    files = (between("k0500", "k0500"), between("a", "b"), between("l", "m"), {"numRecords": 1})
    assert predicate.might_match(facts(predicate, *files)).tolist() == [True, False, False, True]


def test_a_column_of_lists_is_judged_by_its_null_count() -> None:
    schema = StructType((Field("x", ArrayType(PrimitiveType("long"), True), True, {}),))
    predicate = bind(parse_where("x is null"), schema, [], where="memory")
    assert predicate.stats_columns[0].null_count_only
    judged = predicate.might_match(facts(predicate, {"nullCount": {"x": 0}}, {"nullCount": {"x": 2}}))
    assert judged.tolist() == [False, True]
