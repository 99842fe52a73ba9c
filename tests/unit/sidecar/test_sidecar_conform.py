"""Rows of an older part in the layout of today."""

from __future__ import annotations

import json
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazydelta.sidecar import conform
from tests.support import actions
from tests.support.actions import Action
from tests.unit.sidecar.adds import adds_of
from tests.unit.sidecar.samples import layout_for, rows_of

BEFORE: dict[str, Any] = {
    "_event_hour": "string",
    "part_day": "string",
    "part_no": "byte",
    "tiny": "byte",
    "small": "byte",
    "ratio": "float",
    "day": "date",
    "money": "decimal(10,2)",
    "count": "integer",
    "dropped": "long",
    "kept": "string",
}
# What type widening allows, one column each; and partition columns whose texts stay what they were.
AFTER: dict[str, Any] = {
    "_event_hour": "string",
    "part_day": "date",
    "part_no": "integer",
    "tiny": "long",
    "small": "double",
    "ratio": "double",
    "day": "timestamp_ntz",
    "money": "decimal(16,4)",
    "count": "decimal(20,3)",
    "kept": "string",
}
PARTITIONS = ["_event_hour", "part_day", "part_no"]
OLD = layout_for(BEFORE, partition_columns=PARTITIONS)
NEW = layout_for(AFTER, partition_columns=PARTITIONS, once_float=["ratio"])


@given(adds_of(BEFORE))
def test_widened_rows_are_what_the_log_would_be_read_as_now(adds: list[Action]) -> None:
    conformed = conform(rows_of(adds, OLD), NEW)
    assert conformed.schema.equals(NEW.schema, check_metadata=True)
    expected = rows_of(adds, NEW)
    for name, array, wanted in zip(NEW.schema.names, conformed.columns, expected.columns, strict=True):
        assert _same(array, wanted), name


def _same(left: pa.Array, right: pa.Array) -> bool:
    return repr(left.to_pylist()) == repr(right.to_pylist())  # NaN equals itself this way


def one(columns: dict[str, Any], stats: dict[str, Any], **more: Any) -> pa.RecordBatch:
    return rows_of([actions.add("f", stats=json.dumps(stats), partition={})], layout_for(columns, **more))


def test_a_column_that_the_part_lacks_is_null() -> None:
    rows = conform(one({"a": "long"}, {"minValues": {"a": 1}}), layout_for({"a": "long", "b": "date"}))
    assert rows.column("min.a").to_pylist() == [1]
    assert rows.column("min.b").to_pylist() == [None]
    assert rows.column("null_count.b").to_pylist() == [None]


@pytest.mark.parametrize(
    ("before", "value", "after"),
    [
        ("integer", 5, "string"),
        ("long", 5, "integer"),
        ("long", 5, "double"),
        ("double", 1.5, "float"),
        ("string", "5", "long"),
        ("string", "2026-02-01", "date"),
        ("timestamp", "2026-02-01T00:00:00Z", "timestamp_ntz"),
        ("date", "2026-02-01", "timestamp"),
        ("decimal(10,2)", 1.25, "decimal(10,1)"),
        ("decimal(10,2)", 1.25, "decimal(9,2)"),
    ],
)
def test_bounds_of_a_type_that_does_not_widen_say_nothing(before: str, value: Any, after: str) -> None:
    rows = one({"a": before}, {"numRecords": 3, "minValues": {"a": value}, "nullCount": {"a": 1}})
    assert rows.column("min.a").null_count == 0
    conformed = conform(rows, layout_for({"a": after}))
    assert conformed.column("min.a").to_pylist() == [None]
    assert conformed.column("null_count.a").to_pylist() == [1]
    assert conformed.column("num_records").to_pylist() == [3]


@pytest.mark.parametrize(
    ("before", "value", "after", "expected"),
    [
        ("byte", 5, "short", 5),
        ("integer", 5, "decimal(12,2)", Decimal("5.00")),
        ("float", 1.1, "double", 1.1),
        ("date", "2026-02-01", "timestamp_ntz", datetime(2026, 2, 1)),  # noqa: DTZ001
    ],
)
def test_a_narrower_type_is_widened(before: str, value: Any, after: str, expected: Any) -> None:
    rows = conform(one({"a": before}, {"minValues": {"a": value}}), layout_for({"a": after}))
    assert rows.column("min.a").to_pylist() == [expected]


@pytest.mark.parametrize("text", ["0.1", "0.10000000149011612"])
def test_a_float_that_became_a_double_is_read_alike_however_the_writer_spelled_it(text: str) -> None:
    stats = f'{{"minValues":{{"a":{text}}},"maxValues":{{"a":{text}}}}}'
    adds = [actions.add("f", stats=stats, partition={})]
    today = layout_for({"a": "double"}, once_float=["a"])
    for rows in (rows_of(adds, today), conform(rows_of(adds, layout_for({"a": "float"})), today)):
        assert rows.column("min.a").to_pylist() == [0.1]
        assert rows.column("max.a").to_pylist() == [0.10000000149011612]


def test_columns_are_found_by_their_path_whatever_their_name() -> None:
    taken = {"min.a": "string", "a": "long"}
    rows = rows_of(
        [actions.add("f", stats={"minValues": {"a": 4}}, partition={"min.a": "p"})],
        layout_for(taken, partition_columns=["min.a"]),
    )
    assert rows.column("stats.min.a").to_pylist() == [4]
    conformed = conform(rows, layout_for({"a": "long"}))
    assert conformed.column("min.a").to_pylist() == [4]


@pytest.mark.parametrize(
    ("before", "text", "after", "expected"),
    [
        ("string", "2026-02-01", "date", date(2026, 2, 1)),
        ("date", "2026-02-01", "string", "2026-02-01"),
        ("integer", "007", "string", "007"),
        ("integer", "x", "long", None),
        ("string", "x", "long", None),
    ],
)
def test_partition_values_are_read_again_from_what_was_written(
    before: str, text: str, after: str, expected: Any
) -> None:
    rows = rows_of(
        [actions.add("f", partition={"p": text})], layout_for({"p": before}, partition_columns=["p"])
    )
    conformed = conform(rows, layout_for({"p": after}, partition_columns=["p"]))
    assert conformed.column("p").to_pylist() == [expected]
    if after != "string":
        assert conformed.column("raw.p").to_pylist() == [text]


@given(st.integers(0, 3))
def test_rows_of_the_same_layout_pass_as_they_are(count: int) -> None:
    rows = rows_of([actions.add(f"f{n}", partition={}) for n in range(count)], NEW)
    assert conform(rows, NEW) is rows
