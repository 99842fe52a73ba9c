"""Leaf columns of files in the types of the table."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lazydelta.errors import CorruptDataError
from tests.support.data_files import DataFolder, field

UTC = dt.UTC
D = Decimal


def read(tmp_path: Path, stored: pa.Array, wanted: str, **options: Any) -> list[Any]:
    folder = DataFolder(tmp_path, field("c", wanted))
    file = folder.write(pa.table({"c": stored}), **options)
    column: list[Any] = folder.read(file).column("c").to_pylist()
    return column


@pytest.mark.parametrize(
    ("stored", "wanted", "values"),
    [
        (pa.array([-128, None], pa.int8()), "short", [-128, None]),
        (pa.array([-128], pa.int8()), "long", [-128]),
        (pa.array([-32768], pa.int16()), "integer", [-32768]),
        (pa.array([2**31 - 1], pa.int32()), "long", [2**31 - 1]),
        (pa.array([1.5, None], pa.float32()), "double", [1.5, None]),
        (pa.array([7], pa.int8()), "double", [7.0]),
        (pa.array([2**31 - 1], pa.int32()), "double", [float(2**31 - 1)]),
        (pa.array([7], pa.int8()), "decimal(10,0)", [D(7)]),
        (pa.array([-(2**31)], pa.int32()), "decimal(12,2)", [D(-(2**31))]),
        (pa.array([2**63 - 1], pa.int64()), "decimal(20,0)", [D(2**63 - 1)]),
        (pa.array([D("1.50")], pa.decimal128(5, 2)), "decimal(7,2)", [D("1.50")]),
        (pa.array([D("1.50")], pa.decimal128(5, 2)), "decimal(38,10)", [D("1.5000000000")]),
        (pa.array([dt.date(1582, 10, 1)]), "timestamp_ntz", [dt.datetime(1582, 10, 1)]),  # noqa: DTZ001
    ],
)
def test_every_widening_of_delta_keeps_the_value(
    tmp_path: Path, stored: pa.Array, wanted: str, values: list[Any]
) -> None:
    assert read(tmp_path, stored, wanted) == values


@pytest.mark.parametrize("as_integer", [True, False])
@pytest.mark.parametrize("precision", [1, 9, 10, 18, 19, 38])
def test_decimals_are_read_from_every_physical_form(tmp_path: Path, precision: int, as_integer: bool) -> None:
    digits = "9" * (precision - 1)
    values = [D(f"{digits}.9"), D(f"-{digits}.9"), None, D("0.0"), D("-0.1")]
    stored = pa.array(values, pa.decimal128(precision, 1))
    assert read(tmp_path, stored, f"decimal({precision},1)", store_decimal_as_integer=as_integer) == values
    if precision < 38:
        assert (
            read(tmp_path, stored, f"decimal({precision + 1},1)", store_decimal_as_integer=as_integer)
            == values
        )


def test_timestamps_of_every_unit_and_int96_are_microseconds(tmp_path: Path) -> None:
    moment = dt.datetime(1969, 12, 31, 23, 59, 59, 999_000, UTC)
    for unit in ("ms", "us", "ns"):
        stored = pa.array([moment, None], pa.timestamp(unit, "Europe/Berlin"))
        assert read(tmp_path, stored, "timestamp") == [moment, None]
        assert read(tmp_path, stored, "timestamp_ntz") == [moment.replace(tzinfo=None), None]
        naive = pa.array([moment.replace(tzinfo=None)], pa.timestamp(unit))
        assert read(tmp_path, naive, "timestamp_ntz") == [moment.replace(tzinfo=None)]
        assert read(tmp_path, naive, "timestamp") == [moment]
    far = pa.array([dt.datetime(9999, 12, 31, 23, 59, 59), dt.datetime(1, 1, 1)], pa.timestamp("us"))  # noqa: DTZ001
    assert read(tmp_path, far, "timestamp", use_deprecated_int96_timestamps=True) == [
        dt.datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC),
        dt.datetime(1, 1, 1, tzinfo=UTC),
    ]


def test_nanoseconds_are_cut_towards_the_past(tmp_path: Path) -> None:
    stored = pa.array([-1, -1000, -1001, 0, 999, 1000, None], pa.int64()).view(pa.timestamp("ns", "UTC"))
    folder = DataFolder(tmp_path, field("c", "timestamp"))
    column = folder.read(folder.write(pa.table({"c": stored}))).column("c")
    assert column.cast(pa.int64()).to_pylist() == [-1, -1, -2, 0, 0, 1, None]


@pytest.mark.parametrize(
    "kind", [pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string()), pa.binary()]
)
def test_text_is_text_however_its_writer_held_it(tmp_path: Path, kind: pa.DataType) -> None:
    values = ["", "ü", None, "x" * 1000]
    stored = (
        pa.array(values).cast(kind) if kind != pa.binary() else pa.array([v and v.encode() for v in values])
    )
    assert read(tmp_path, stored, "string") == ([None if v is None else v for v in values])


def test_binary_is_read_from_fixed_width_and_text(tmp_path: Path) -> None:
    assert read(tmp_path, pa.array([b"ab", None], pa.binary(2)), "binary") == [b"ab", None]
    assert read(tmp_path, pa.array(["ab"]), "binary") == [b"ab"]


def test_bytes_that_are_no_text_are_an_error_that_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(CorruptDataError, match="'c'"):
        read(tmp_path, pa.array([b"\xff"]), "string")


def test_a_value_too_large_for_the_tables_type_is_an_error_not_another_value(tmp_path: Path) -> None:
    with pytest.raises(CorruptDataError, match="'c'"):
        read(tmp_path, pa.array([300], pa.int32()), "byte")
    with pytest.raises(CorruptDataError, match="'c'"):
        read(tmp_path, pa.array([D("123.45")], pa.decimal128(5, 2)), "decimal(4,2)")


def test_a_column_of_nulls_without_a_type_is_null_in_any(tmp_path: Path) -> None:
    for wanted in ("long", "string", "decimal(5,2)", "timestamp"):
        assert read(tmp_path, pa.nulls(2), wanted) == [None, None]


def test_floats_keep_nan_infinity_and_negative_zero(tmp_path: Path) -> None:
    values = [float("nan"), float("inf"), -0.0, None]
    column = read(tmp_path, pa.array(values, pa.float32()), "double")
    assert np.isnan(column[0]) and column[1] == float("inf") and np.signbit(column[2]) and column[3] is None
