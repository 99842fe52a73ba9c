"""Bounds as text: what the manifest says is read back to exactly the same value."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazydelta.protocol.schema import PrimitiveType, arrow_type
from lazydelta.protocol.value_text import values_from_text
from lazydelta.sidecar.format.bound_text import TEXT_BYTES_MAX, bound_text

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "string": st.text(max_size=40),
    "long": st.integers(-(1 << 63), (1 << 63) - 1),
    "integer": st.integers(-(1 << 31), (1 << 31) - 1),
    "short": st.integers(-(1 << 15), (1 << 15) - 1),
    "byte": st.integers(-128, 127),
    "float": st.floats(width=32, allow_nan=False),
    "double": st.floats(allow_nan=False),
    "boolean": st.booleans(),
    "date": st.dates(),
    "timestamp": st.datetimes(timezones=st.just(UTC)),
    "timestamp_ntz": st.datetimes(),
    "decimal(10,2)": st.decimals(min_value=-99999999, max_value=99999999, places=2),
    "decimal(38,18)": st.decimals(min_value=-(10**19), max_value=10**19, places=18),
    "decimal(38,0)": st.integers(-(10**37), 10**37).map(Decimal),
    "binary": st.text(st.characters(max_codepoint=127), max_size=20).map(str.encode),
}
TYPED = st.sampled_from(sorted(VALUES)).flatmap(lambda name: st.tuples(st.just(name), VALUES[name]))


@given(TYPED)
def test_a_bounds_text_is_read_back_to_the_same_value(typed: tuple[str, Any]) -> None:
    type_name, value = typed
    scalar = pa.scalar(value, arrow_type(PrimitiveType(type_name)))
    text = bound_text(scalar)
    assert text is not None
    back = values_from_text(pa.array([text]), type_name)[0]
    assert back.equals(scalar)
    if isinstance(value, float):
        assert math.copysign(1, back.as_py()) == math.copysign(1, value)


@pytest.mark.parametrize(
    "scalar",
    [
        pa.scalar(None, pa.string()),
        pa.scalar(math.nan),
        pa.scalar("x" * (TEXT_BYTES_MAX + 1)),
        pa.scalar("é" * (TEXT_BYTES_MAX // 2 + 1)),
        pa.scalar(b"\xff"),
        pa.scalar(10_000_000, pa.date32()),
        pa.scalar(1 << 62, pa.timestamp("us")),
        pa.scalar([1], pa.list_(pa.int64())),
    ],
)
def test_what_has_no_short_text_of_its_own_bounds_nothing(scalar: pa.Scalar) -> None:
    assert bound_text(scalar) is None


def test_the_forms_are_those_of_partition_values() -> None:
    assert bound_text(pa.scalar(date(2026, 2, 1))) == "2026-02-01"
    noon = datetime(2026, 2, 1, 12, tzinfo=UTC)
    assert bound_text(pa.scalar(noon, pa.timestamp("us", tz="UTC"))) == "2026-02-01T12:00:00.000000Z"
    assert bound_text(pa.scalar(Decimal("1E+3"), pa.decimal128(10, 2))) == "1000.00"
    assert bound_text(pa.scalar(-math.inf)) == "-Infinity"
    assert bound_text(pa.scalar(True)) == "true"
