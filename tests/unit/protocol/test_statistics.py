"""Statistics of files, decoded from JSON and from a checkpoint's struct."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lazydelta.protocol.schema import PrimitiveType
from lazydelta.protocol.statistics import (
    ColumnBounds,
    FileStatistics,
    StatsColumn,
    statistics_from_json,
    statistics_from_struct,
)


def column(name: str, type_name: str, **more: Any) -> StatsColumn:
    return StatsColumn((name,), PrimitiveType(type_name), **more)


def minima(type_name: str, *json_values: str) -> list[Any]:
    """The decoded minimum of each of these values, as they stand in JSON."""
    texts = pa.array([f'{{"minValues":{{"x":{value}}}}}' for value in json_values])
    low = statistics_from_json(texts, [column("x", type_name)]).columns["x",].min
    assert low is not None
    return list(low.to_pylist())


def listed(bounds: ColumnBounds) -> list[Any]:
    return [
        None if part is None else part.to_pylist() for part in (bounds.min, bounds.max, bounds.null_count)
    ]


def test_only_the_named_columns_are_decoded() -> None:
    text = (
        '{"numRecords":3,"minValues":{"a":1,"b":"x"},"maxValues":{"a":2,"b":"y"},"nullCount":{"a":0,"b":1}}'
    )
    statistics = statistics_from_json(pa.array([text]), [column("a", "long")])
    assert set(statistics.columns) == {("a",)}
    assert listed(statistics.columns["a",]) == [[1], [2], [0]]
    assert statistics.num_records is not None
    assert statistics.num_records.to_pylist() == [3]
    assert statistics.tight_bounds is not None
    assert statistics.tight_bounds.to_pylist() == [None]


@pytest.mark.parametrize("name", ['q"q', "back\\slash", "line\nbreak"])
def test_a_name_that_json_escapes_has_no_statistics_and_breaks_nothing(name: str) -> None:
    given = {"numRecords": 3, "minValues": {name: 1, "a": 5}, "nullCount": {name: 0, "a": 1}}
    texts = pa.array([json.dumps(given)])
    statistics = statistics_from_json(texts, [column(name, "long"), column("a", "long")])
    assert listed(statistics.columns[name,]) == [[None], [None], [None]]
    assert listed(statistics.columns["a",]) == [[5], [None], [1]]


def test_no_column_gives_the_counts_alone() -> None:
    statistics = statistics_from_json(pa.array(['{"numRecords":3,"tightBounds":false}', None]), [])
    assert statistics.num_records is not None
    assert statistics.num_records.to_pylist() == [3, None]
    assert statistics.tight_bounds is not None
    assert statistics.tight_bounds.to_pylist() == [False, None]


def test_an_empty_batch_has_empty_columns() -> None:
    statistics = statistics_from_json(pa.array([], pa.string()), [column("a", "date")])
    assert statistics.row_count == 0
    assert listed(statistics.columns["a",]) == [[], [], []]


def test_nested_columns_and_odd_names_are_found_by_their_path() -> None:
    columns = [
        StatsColumn(("a", "b", "c"), PrimitiveType("long")),
        StatsColumn(("a", "x y"), PrimitiveType("long")),
        StatsColumn(("col-1.2",), PrimitiveType("long")),
    ]
    text = '{"minValues":{"a":{"b":{"c":1},"x y":2},"col-1.2":3},"nullCount":{"a":{"b":{"c":4}}}}'
    statistics = statistics_from_json(pa.array([text]), columns)
    assert [listed(bounds)[0] for bounds in statistics.columns.values()] == [[1], [2], [3]]
    assert listed(statistics.columns["a", "b", "c"]) == [[1], [None], [4]]


def test_a_row_that_does_not_decode_says_nothing_and_costs_its_neighbours_nothing() -> None:
    good = '{"numRecords":1,"minValues":{"x":5}}'
    odd = [
        "garbage",
        "",
        "{",
        "[]",
        "null",
        '{"minValues":{"x":"five"}}',
        '{"minValues":{"x":1.5}}',
        "{},{}",
        "{}{}",
    ]
    rows = [good, *[row for bad in odd for row in (bad, good)], None, '{"minValues":null}', good]
    statistics = statistics_from_json(pa.array(rows), [column("x", "long")])
    expected = [5 if row == good else None for row in rows]
    assert listed(statistics.columns["x",])[0] == expected
    assert statistics.num_records is not None
    assert statistics.num_records.to_pylist() == [1 if row == good else None for row in rows]


def test_rows_that_make_sense_only_together_say_nothing() -> None:
    # Joined, the first two would read as one document, and the last as two.
    rows = ['{"minValues":', '{"x":1}}', "{}{}"]
    statistics = statistics_from_json(pa.array(rows), [column("x", "long")])
    assert listed(statistics.columns["x",])[0] == [None] * 3


def test_more_rows_than_one_slice_keep_their_order() -> None:
    rows = pa.array([f'{{"minValues":{{"x":{at}}}}}' if at % 7 else None for at in range(20_000)])
    low = statistics_from_json(rows, [column("x", "long")]).columns["x",].min
    assert low is not None
    assert low.to_pylist() == [at if at % 7 else None for at in range(20_000)]


def test_a_slice_of_an_array_is_decoded_from_where_it_begins() -> None:
    rows = pa.array([f'{{"minValues":{{"x":{at}}}}}' for at in range(10)]).slice(3, 4)
    assert listed(statistics_from_json(rows, [column("x", "long")]).columns["x",])[0] == [3, 4, 5, 6]


def test_longs_are_read_exactly_beyond_two_to_the_53() -> None:
    assert minima("long", "9007199254740993", "-9223372036854775808", "9223372036854775808") == [
        2**53 + 1,
        -(2**63),
        None,
    ]
    assert minima("integer", "2147483647", "2147483648") == [2**31 - 1, None]


def test_decimals_are_read_by_their_digits() -> None:
    digits = "1234567890123456789012345678.0123456789"
    assert minima("decimal(38,10)", digits, "0.1", "1E+3", '"2.5"') == [
        Decimal(digits),
        Decimal("0.1000000000"),
        Decimal(1000),
        Decimal("2.5"),
    ]
    assert minima("decimal(5,2)", "1.239", "99999", '"NaN"') == [Decimal("1.23"), None, None]


def test_digits_past_a_decimals_scale_round_a_max_up() -> None:
    texts = pa.array(
        ['{"maxValues":{"x":1.231}}', '{"maxValues":{"x":-1.239}}', '{"maxValues":{"x":999.999}}']
    )
    high = statistics_from_json(texts, [column("x", "decimal(5,2)")]).columns["x",].max
    assert high is not None
    assert high.to_pylist() == [Decimal("1.24"), Decimal("-1.23"), None]


def test_floats_take_words_and_keep_their_own_precision() -> None:
    words = ('"Infinity"', '"-Infinity"', '"soon"')
    assert minima("double", "1", "0.1", *words) == [1.0, 0.1, float("inf"), float("-inf"), None]
    (nan,) = minima("double", '"NaN"')
    assert nan != nan  # noqa: PLR0124  # that is what NaN is
    assert minima("float", "0.1") == [0.10000000149011612]


def test_timestamps_are_read_in_every_form_writers_use() -> None:
    ten = datetime(2026, 2, 10, 22, tzinfo=UTC)
    zoned = ['"2026-02-10T22:00:00.000Z"', '"2026-02-10T14:00:00.000-08:00"']
    forms = [*zoned, '"2026-02-10 22:00:00"', '"2026-02-10T22:00:00.000000"']
    assert minima("timestamp", *forms) == [ten] * 4
    assert minima("timestamp", *zoned) == [ten] * 2
    assert minima("timestamp", *forms, '"late"') == [ten] * 4 + [None]
    assert minima("timestamp_ntz", '"2026-02-10T22:00:00.000"', '"2026-02-10"') == [
        ten.replace(tzinfo=None),
        datetime(2026, 2, 10),  # noqa: DTZ001  # without a zone, as the type
    ]
    assert minima("date", '"2026-02-10"', '"2026-02-31"') == [date(2026, 2, 10), None]


def test_truth_and_text_are_read() -> None:
    assert minima("boolean", "true", "false") == [True, False]
    assert minima("string", '"a\\u00e9\\n"', '""') == ["aé\n", ""]


@pytest.mark.parametrize(
    ("type_name", "more"), [("binary", {}), ("variant", {}), ("void", {"null_count_only": True})]
)
def test_of_some_types_only_the_null_count_is_read(type_name: str, more: dict[str, Any]) -> None:
    text = '{"minValues":{"x":"abc"},"nullCount":{"x":2}}'
    bounds = statistics_from_json(pa.array([text]), [column("x", type_name, **more)]).columns["x",]
    assert listed(bounds) == [None, None, [2]]


def test_lean_decoding_leaves_counts_out_until_a_bound_is_missing() -> None:
    whole = '{"numRecords":3,"minValues":{"x":1},"maxValues":{"x":2},"nullCount":{"x":0},"tightBounds":false}'
    all_null = '{"numRecords":3,"nullCount":{"x":3}}'
    lean = statistics_from_json(pa.array([whole]), [column("x", "long")], lean=True)
    assert listed(lean.columns["x",]) == [[1], [2], [None]]
    mixed = statistics_from_json(pa.array([whole] * 3000 + [all_null]), [column("x", "long")], lean=True)
    assert listed(mixed.columns["x",])[2][-2:] == [0, 3]
    assert mixed.num_records is not None
    assert mixed.tight_bounds is not None
    assert mixed.num_records.to_pylist()[-2:] == [3, 3]
    assert mixed.tight_bounds.to_pylist()[-2:] == [False, None]
    assert len(mixed.num_records) == 3001


@pytest.mark.parametrize("more", [{"is_null_tested": True}, {"null_count_only": True}])
def test_lean_decoding_keeps_the_counts_that_a_null_test_needs(more: dict[str, Any]) -> None:
    text = '{"numRecords":3,"minValues":{"x":1},"maxValues":{"x":2},"nullCount":{"x":0}}'
    lean = statistics_from_json(pa.array([text]), [column("x", "long", **more)], lean=True)
    assert listed(lean.columns["x",])[2] == [0]


# --- stats_parsed ------------------------------------------------------------------


def parsed(rows: list[Any], struct_type: pa.StructType, *columns: StatsColumn) -> FileStatistics:
    return statistics_from_struct(pa.array(rows, struct_type), columns)


def test_a_struct_is_read_by_name_and_cast_to_the_columns_type() -> None:
    values = pa.struct([("x", pa.int32()), ("s", pa.large_string())])
    struct_type = pa.struct(
        [("numRecords", pa.int64()), ("minValues", values), ("nullCount", pa.struct([("x", pa.int64())]))]
    )
    rows = [
        {"numRecords": 2, "minValues": {"x": 1, "s": "a"}, "nullCount": {"x": 0}},
        None,
        {"numRecords": 3},
    ]
    statistics = parsed(rows, struct_type, column("x", "long"), column("s", "string"), column("gone", "long"))
    assert listed(statistics.columns["x",]) == [[1, None, None], None, [0, None, None]]
    assert listed(statistics.columns["s",]) == [["a", None, None], None, None]
    assert listed(statistics.columns["gone",]) == [None, None, None]
    low = statistics.columns["x",].min
    assert low is not None
    assert low.type == pa.int64()
    assert statistics.tight_bounds is None


def test_a_value_that_does_not_fit_the_type_says_nothing() -> None:
    struct_type = pa.struct([("minValues", pa.struct([("x", pa.int64()), ("y", pa.list_(pa.int64()))]))])
    rows = [{"minValues": {"x": at, "y": [1]}} for at in (1, 1000, 2, -1000, 3)]
    statistics = parsed(rows, struct_type, column("x", "byte"), column("y", "long"))
    assert listed(statistics.columns["x",])[0] == [1, None, 2, None, 3]
    assert listed(statistics.columns["y",])[0] is None


def test_a_child_under_a_null_parent_is_null() -> None:
    inner = pa.StructArray.from_arrays([pa.array([7, 8])], ["x"])
    stats = pa.StructArray.from_arrays([inner], ["minValues"], mask=pa.array([True, False]))
    statistics = statistics_from_struct(stats, [column("x", "long")])
    assert listed(statistics.columns["x",])[0] == [None, 8]


def test_a_leaf_where_a_struct_is_expected_says_nothing() -> None:
    struct_type = pa.struct([("minValues", pa.struct([("a", pa.int64())]))])
    statistics = parsed(
        [{"minValues": {"a": 1}}], struct_type, StatsColumn(("a", "b"), PrimitiveType("long"))
    )
    assert listed(statistics.columns["a", "b"])[0] is None
