"""Bounds as a Parquet footer has them, in the types of the file."""

from __future__ import annotations

import io
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lazydelta.log.footer_bounds import chunk_bounds, chunk_null_counts, leaf_positions, row_counts

CASES: list[tuple[pa.DataType, list[Any]]] = [
    (pa.string(), ["a", "ü\U0001f600"]),
    (pa.bool_(), [False, True]),
    (pa.int8(), [-128, 127]),
    (pa.int16(), [-3, 3]),
    (pa.int32(), [-(2**31), 2**31 - 1]),
    (pa.int64(), [-(2**63), 2**63 - 1]),
    (pa.float32(), [-1.5, 1.100000023841858]),
    (pa.float64(), [-1e300, 1.1]),
    (pa.date32(), [date(1, 1, 1), date(9999, 12, 31)]),
    (pa.timestamp("us", tz="UTC"), [datetime(1969, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)]),
    (
        pa.timestamp("us"),
        [datetime.fromisoformat("0001-01-01"), datetime.fromisoformat("2026-02-10T01:02:03.4")],
    ),
    (pa.timestamp("ms", tz="UTC"), [datetime(1969, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)]),
    (pa.decimal128(9, 2), [Decimal("-9999999.99"), Decimal("0.01")]),
    (pa.decimal128(18, 3), [Decimal("-0.001"), Decimal("999999999999999.999")]),
    (pa.decimal128(38, 10), [Decimal("-9999999999999999999999999999.9999999999"), Decimal("1.0000000001")]),
]


def footer_of(column: pa.Array, *, group: int = 2, **options: Any) -> pq.FileMetaData:
    sink = io.BytesIO()
    pq.write_table(pa.table({"x": column}), sink, row_group_size=group, store_schema=False, **options)
    return pq.read_metadata(sink)


@pytest.mark.parametrize(
    ("type_", "values"), CASES, ids=lambda value: str(value) if isinstance(value, pa.DataType) else ""
)
@pytest.mark.parametrize("as_integer", [False, True])
def test_bounds_come_in_the_type_of_the_column(
    type_: pa.DataType, values: list[Any], as_integer: bool
) -> None:
    column = pa.array([*values, None, None, values[1]], type_)
    footer = footer_of(column, store_decimal_as_integer=as_integer)
    low, high = chunk_bounds(footer, 0, "min"), chunk_bounds(footer, 0, "max")
    assert low.type == high.type == type_
    assert low.to_pylist() == [values[0], None, values[1]]
    assert high.to_pylist() == [values[1], None, values[1]]
    assert chunk_null_counts(footer, 0).tolist() == [0, 2, 0]
    assert row_counts(footer).tolist() == [2, 2, 1]


@pytest.mark.parametrize("ticks", [2**62, -(2**62)])
def test_moments_beyond_what_python_can_hold_are_kept(ticks: int) -> None:
    moments = pa.array([ticks], pa.int64()).cast(pa.timestamp("us", tz="UTC"))
    found = chunk_bounds(footer_of(moments), 0, "min")
    assert found.view(pa.int64()).to_pylist() == [ticks]
    days = pa.array([2**30], pa.int32()).view(pa.date32())
    assert chunk_bounds(footer_of(days), 0, "max").view(pa.int32()).to_pylist() == [2**30]


def test_what_is_not_told_is_null() -> None:
    untold = footer_of(pa.array([1, 2]), write_statistics=False)
    assert chunk_bounds(untold, 0, "min").to_pylist() == [None]
    assert chunk_null_counts(untold, 0).tolist() == [-1]


@pytest.mark.parametrize("type_", [pa.uint32(), pa.binary(), pa.time64("us"), pa.decimal256(60, 2)], ids=str)
def test_types_that_delta_has_not_say_nothing(type_: pa.DataType) -> None:
    values = {pa.binary(): [b"\xff"], pa.decimal256(60, 2): [Decimal("1.00")]}.get(type_, [1])
    footer = footer_of(pa.array(values, type_))
    assert chunk_bounds(footer, 0, "min").to_pylist() == [None]


def test_leaves_are_found_by_their_dotted_path() -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"a": pa.array([{"b": 1, "c": "x"}]), "d.e": [2]}), sink)
    assert leaf_positions(pq.read_metadata(sink)) == {"a.b": 0, "a.c": 1, "d.e": 2}
