"""Zone maps: bounds that hold for every row, and the rows that have none counted."""

from __future__ import annotations

import json
import math
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazydelta.protocol.value_text import values_from_text
from lazydelta.sidecar import WrittenPart, ZoneBounds
from tests.support import actions
from tests.support.actions import Action
from tests.unit.sidecar.adds import PARTITIONS, adds_of
from tests.unit.sidecar.samples import EVERY_TYPE, layout_for, rows_of, sorted_rows, written

LAYOUT = layout_for({**EVERY_TYPE, **PARTITIONS}, partition_columns=list(PARTITIONS))


def zone(part: WrittenPart, *path: str) -> ZoneBounds:
    return next(bounds for bounds in part.part.bounds if bounds.path == path)


def part_of(columns: dict[str, Any], adds: list[Action], *, group: int = 2, **more: Any) -> WrittenPart:
    layout = layout_for(columns, **more)
    return written(sorted_rows(rows_of(adds, layout), layout), layout, row_group_rows=group)


def value_adds(*bounds: Any) -> list[Action]:
    """One file per pair (or single value) of bounds of `v`, as they stand in JSON."""
    pairs = [bound if isinstance(bound, tuple) else (bound, bound) for bound in bounds]
    return [
        actions.add(f"f{at}", stats={"minValues": {"v": low}, "maxValues": {"v": high}}, partition={})
        for at, (low, high) in enumerate(pairs)
    ]


@given(adds=adds_of(EVERY_TYPE, max_size=20), group=st.integers(1, 7))
def test_no_row_lies_outside_the_bounds_and_every_row_without_one_is_counted(
    adds: list[Action], group: int
) -> None:
    rows = sorted_rows(rows_of(adds or [actions.add("only", partition={})], LAYOUT), LAYOUT)
    part = written(rows, LAYOUT, row_group_rows=group)
    told = {bounds.path: bounds for bounds in part.part.bounds}
    assert [*told] == [column.path for column in LAYOUT.zone_columns]
    for column in LAYOUT.zone_columns:
        bounds = told[column.path]
        low, high = (
            values_from_text(pa.array([text], pa.string()), column.type_name)[0].as_py()
            for text in (bounds.min, bounds.max)
        )
        raw = rows.column(column.raw_column).to_pylist() if column.raw_column else None
        check_side(rows.column(column.min_column).to_pylist(), raw, min, low, bounds.rows_without_min)
        check_side(rows.column(column.max_column).to_pylist(), raw, max, high, bounds.rows_without_max)


def check_side(values: list[Any], raw: list[Any] | None, extreme: Any, told: Any, without: int) -> None:
    known = [v for v in values if v is not None and not (isinstance(v, float) and math.isnan(v))]
    assert told == (extreme(known) if known else None)
    unbounded = len(values) - len(known)
    if raw is not None:  # an empty text may be meant as null
        unbounded += sum(text == "" and value is not None for text, value in zip(raw, values, strict=True))
    assert without == (unbounded if known else len(values))


def test_nan_is_no_bound_and_is_counted_per_row_group() -> None:
    part = part_of({"v": "double"}, value_adds(1.5, ("NaN", 2.5), "NaN", "NaN", 0.5))
    assert zone(part, "v") == ZoneBounds(
        path=("v",), type="double", min="0.5", max="2.5", rows_without_min=3, rows_without_max=2
    )
    keys = pq.read_metadata(pa.BufferReader(part.body)).metadata
    assert json.loads(keys[b"lazydelta.nan_counts"]) == {"min.v": [1, 2, 0], "max.v": [0, 2, 0]}


def test_parquets_own_statistics_pass_over_nan_so_the_count_must_tell() -> None:
    part = part_of({"v": "double"}, value_adds(1.5, "NaN"))
    group = pq.read_metadata(pa.BufferReader(part.body)).row_group(0)
    at = group.column([group.column(i).path_in_schema for i in range(group.num_columns)].index("max.v"))
    assert at.statistics.max == 1.5
    assert at.statistics.null_count == 0


def test_all_nan_or_all_null_has_no_bounds_at_all() -> None:
    for value in ("NaN", None):
        found = zone(part_of({"v": "float"}, value_adds(value, value)), "v")
        assert (found.min, found.max, found.rows_without_min, found.rows_without_max) == (None, None, 2, 2)


def test_infinity_is_a_bound() -> None:
    found = zone(part_of({"v": "double"}, value_adds(("-Infinity", "Infinity"), 0)), "v")
    assert (found.min, found.max, found.rows_without_min) == ("-Infinity", "Infinity", 0)


def test_a_bound_too_long_to_tell_bounds_no_row() -> None:
    found = zone(part_of({"v": "string"}, value_adds(("a", "z" * 300), "b")), "v")
    assert (found.min, found.rows_without_min) == ("a", 0)
    assert (found.max, found.rows_without_max) == (None, 2)


def partitioned(type_name: str, *values: str | None) -> ZoneBounds:
    adds = [actions.add(f"f{at}", partition={"p": value}) for at, value in enumerate(values)]
    return zone(part_of({"p": type_name}, adds, partition_columns=["p"]), "p")


def test_partition_rows_without_a_bound_are_nulls() -> None:
    found = partitioned("date", "2026-02-01", None, "2026-01-01")
    assert (found.min, found.max) == ("2026-01-01", "2026-02-01")
    assert (found.rows_without_min, found.rows_without_max, found.is_partition) == (1, 1, True)


@pytest.mark.parametrize(
    ("type_name", "odd"), [("date", "soon"), ("date", ""), ("string", ""), ("double", "NaN")]
)
def test_partition_rows_that_may_be_null_or_not_are_unknown(type_name: str, odd: str) -> None:
    good = {"date": "2026-02-01", "string": "x", "double": "1.0"}[type_name]
    found = partitioned(type_name, good, None, odd)
    assert found.rows_without_min == found.rows_without_max == 2
    assert not found.is_partition


# --- the order column --------------------------------------------------------------


def test_row_groups_and_part_tell_the_range_of_the_order_column() -> None:
    adds = [
        actions.add(f"f{at}", partition={"_event_hour": hour}, size=at + 1)
        for at, hour in enumerate(["2026020112", None, "2026020110", "2026020111", None])
    ]
    part = part_of({"_event_hour": "string"}, adds, partition_columns=["_event_hour"])
    ranges = [(g.event_hour_min, g.event_hour_max, g.event_hour_nulls) for g in part.row_groups]
    assert ranges == [(None, None, 2), ("2026020110", "2026020111", 0), ("2026020112", "2026020112", 0)]
    assert (part.part.order_min, part.part.order_max) == ("2026020110", "2026020112")
    assert part.part.order_nulls == 2
    assert part.part.total_bytes == 15


def test_a_clustering_columns_range_reaches_from_the_least_minimum_to_the_greatest_maximum() -> None:
    part = part_of({"v": "long"}, value_adds((1, 90), (2, 3), (5, None), (6, 7)), time_column="v")
    ranges = [(g.event_hour_min, g.event_hour_max, g.event_hour_nulls) for g in part.row_groups]
    assert ranges == [("1", "90", 0), ("5", "7", 1)]
    assert (part.part.order_min, part.part.order_max, part.part.order_nulls) == ("1", "90", 1)


def test_without_an_order_column_there_are_no_ranges() -> None:
    part = part_of({"v": "long"}, value_adds(1, 2, 3))
    assert {(g.event_hour_min, g.event_hour_max, g.event_hour_nulls) for g in part.row_groups} == {
        (None, None, 0)
    }
    assert part.part.order_min is None
