"""Rows of the log as rows of a part: typed right, for every type, by property and by example."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given

from lazydelta.log import rows_from_adds
from lazydelta.protocol.actions import Add
from lazydelta.sidecar import BUILD_COLUMNS, SidecarLayout, typed_rows
from tests.support import actions
from tests.support.actions import Action
from tests.unit.sidecar.adds import PARTITIONS, adds_of
from tests.unit.sidecar.dumb_rows import dumb_rows
from tests.unit.sidecar.samples import EVERY_TYPE, ROOT, layout_for, rows_of

COLUMNS = {**EVERY_TYPE, **PARTITIONS}
LAYOUT = layout_for(COLUMNS, partition_columns=list(PARTITIONS))


def first_row(add: Action, layout: SidecarLayout = LAYOUT) -> dict[str, Any]:
    return dict(rows_of([add], layout).to_pylist()[0])


def bounds(column: str, low: str, high: str) -> dict[str, Any]:
    """The row of an add whose statistics hold these two, as they stand in JSON."""
    stats = f'{{"numRecords":5,"minValues":{{"{column}":{low}}},"maxValues":{{"{column}":{high}}}}}'
    return first_row(actions.add("f", stats=stats, partition={}))


@given(adds_of(EVERY_TYPE))
def test_typed_rows_agree_with_reading_one_value_after_the_other(adds: list[Action]) -> None:
    rows = rows_of(adds, LAYOUT)
    assert rows.schema.equals(LAYOUT.schema, check_metadata=True)
    expected = dumb_rows(adds, LAYOUT)
    assert comparable(rows.to_pylist()) == comparable(expected)


def comparable(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """NaN equals itself, for once."""
    return [
        {k: "NaN" if isinstance(v, float) and math.isnan(v) else v for k, v in row.items()} for row in rows
    ]


def test_longs_past_the_doubles_precision_stay_exact() -> None:
    row = bounds("big", str((1 << 53) + 1), str((1 << 63) - 1))
    assert row["min.big"] == (1 << 53) + 1
    assert row["max.big"] == (1 << 63) - 1


def test_decimals_are_read_by_their_digits() -> None:
    row = bounds("fine", "-12345678901234567890.123456789012345678", "0.000000000000000001")
    assert row["min.fine"] == Decimal("-12345678901234567890.123456789012345678")
    assert row["max.fine"] == Decimal("0.000000000000000001")


def test_a_floats_digits_name_a_float() -> None:
    row = bounds("ratio", "0.1", '"NaN"')
    assert row["min.ratio"] == pa.scalar(0.1, pa.float32()).as_py()
    assert math.isnan(row["max.ratio"])
    assert bounds("real", "0.1", '"-Infinity"')["max.real"] == -math.inf


def test_times_keep_the_milliseconds_that_writers_leave() -> None:
    row = bounds("moment", '"2026-02-01T10:00:00.123Z"', '"2026-02-01T12:00:00.999+02:00"')
    assert row["min.moment"] == datetime(2026, 2, 1, 10, 0, 0, 123_000, UTC)
    assert row["max.moment"] == datetime(2026, 2, 1, 10, 0, 0, 999_000, UTC)
    row = bounds("clock", '"2026-02-01T10:00:00.123"', '"2026-02-01"')
    assert row["min.clock"] == datetime(2026, 2, 1, 10, 0, 0, 123_000)  # noqa: DTZ001
    assert row["max.clock"] == datetime(2026, 2, 1)  # noqa: DTZ001
    assert bounds("day", '"2026-02-01"', '"9999-12-31"')["max.day"] == date(9999, 12, 31)


def test_a_string_that_a_writer_cut_stays_as_it_cut_it() -> None:
    cut = "x" * 32 + "\U0010ffff"
    assert bounds("text", '""', json.dumps(cut))["max.text"] == cut


def test_nested_bounds_are_found_by_their_path() -> None:
    stats = {"minValues": {"place": {"city": "Bern", "point": {"x": 1.5, "a.b": 7}}}}
    row = first_row(actions.add("f", stats=stats, partition={}))
    assert (row["min.place.city"], row["min.place.point.x"]) == ("Bern", 1.5)
    assert row["min.place.point.a\\.b"] == 7
    assert row["max.place.city"] is None


@pytest.mark.parametrize("stats", ["", "{", "null", "[1]", '{"numRecords":"many"}'])
def test_statistics_that_do_not_decode_say_nothing_and_cost_their_neighbours_nothing(stats: str) -> None:
    good = actions.add("b", stats=actions.stats(3, low={"big": 1}), partition={})
    rows = rows_of([actions.add("a", stats=stats, partition={}), good], LAYOUT).to_pylist()
    assert [row["num_records"] for row in rows] == [None, 3]
    assert [row["min.big"] for row in rows] == [None, 1]


def test_partition_values_are_typed_and_kept_as_written() -> None:
    given = {"_event_hour": "2026020110", "part_day": "2026-02-01", "part_no": "007"}
    row = first_row(actions.add("f", partition=given))
    assert row["_event_hour"] == "2026020110"
    assert (row["part_day"], row["raw.part_day"]) == (date(2026, 2, 1), "2026-02-01")
    assert (row["part_no"], row["raw.part_no"]) == (7, "007")
    row = first_row(actions.add("f", partition={"_event_hour": "", "part_day": "", "part_no": None}))
    assert (row["_event_hour"], row["part_day"], row["raw.part_day"]) == ("", None, "")
    assert row["raw.part_no"] is None


def test_a_path_stays_as_the_log_spells_it() -> None:
    assert first_row(actions.add("file:///tables/t/a%20b"))["path"] == "file:///tables/t/a%20b"


def test_a_batch_without_vectors_or_statistics_is_fine() -> None:
    bare = rows_from_adds([msgspec.convert(actions.add("f"), Add)], ("raw_path", "size"), ROOT)
    row = typed_rows(bare, LAYOUT).to_pylist()[0]
    assert (row["path"], row["size"], row["num_records"], row["dv.offset"]) == ("f", 1000, None, None)


def test_an_empty_batch_has_the_layout() -> None:
    assert rows_of([], LAYOUT).schema.equals(LAYOUT.schema, check_metadata=True)


# --- typed statistics of a checkpoint --------------------------------------------

SIMPLE = layout_for({"v": "long", "s": {"t": "string"}})
PARSED = pa.struct(
    {
        "numRecords": pa.int64(),
        "minValues": pa.struct({"v": pa.int32(), "s": pa.struct({"t": pa.string()})}),
        "nullCount": pa.struct({"v": pa.int64()}),
    }
)


def with_forms(stats: list[str | None] | None, parsed: list[Any] | None) -> pa.RecordBatch:
    count = len(stats or parsed or [])
    columns: dict[str, pa.Array] = {"raw_path": pa.array([f"f{n}" for n in range(count)])}
    if stats is not None:
        columns["stats"] = pa.array(stats, pa.string())
    if parsed is not None:
        columns["stats_parsed"] = pa.array(parsed, PARSED)
    return typed_rows(pa.RecordBatch.from_pydict(columns), SIMPLE)


def test_typed_statistics_are_read_where_there_is_no_json() -> None:
    parsed = {"numRecords": 3, "minValues": {"v": 1, "s": {"t": "a"}}, "nullCount": {"v": 0}}
    for rows in (with_forms(None, [parsed, None]), with_forms([None, None], [parsed, None])):
        assert rows.column("num_records").to_pylist() == [3, None]
        assert rows.column("min.v").to_pylist() == [1, None]
        assert rows.column("min.s.t").to_pylist() == ["a", None]
        assert rows.column("max.v").to_pylist() == [None, None]
        assert rows.column("null_count.v").to_pylist() == [0, None]


def test_a_row_without_json_takes_the_typed_form() -> None:
    json_text = '{"numRecords":9,"minValues":{"v":9},"maxValues":{"v":99}}'
    rows = with_forms([json_text, None], [{"numRecords": 3}, {"numRecords": 4, "minValues": {"v": 1}}])
    assert rows.column("num_records").to_pylist() == [9, 4]
    assert rows.column("min.v").to_pylist() == [9, 1]
    assert rows.column("max.v").to_pylist() == [99, None]


def test_what_to_ask_the_log_for_leaves_the_form_of_statistics_to_the_log() -> None:
    assert "stats" not in BUILD_COLUMNS
    assert "raw_path" in BUILD_COLUMNS
