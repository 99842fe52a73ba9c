"""Bounds of a double that was a float are read alike, whichever digits the writer chose."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazydelta.protocol.float_readings import outer_reading, widened_floats
from lazydelta.protocol.schema import PrimitiveType
from lazydelta.protocol.statistics import StatsColumn, statistics_from_json, statistics_from_struct

ONCE_FLOAT = StatsColumn(("c",), PrimitiveType("double"), was_float=True)
EXACT = 0.10000000149011612  # of the float that 0.1 names


def doubles(*values: float | None) -> pa.Array:
    return pa.array(values, pa.float64())


@given(st.floats(width=32, allow_nan=False), st.booleans())
def test_both_readings_of_a_float_become_the_outer_one(value: float, is_min: bool) -> None:
    floats = pa.array([value], pa.float32())
    [digits] = floats.cast(pa.string()).cast(pa.float64()).to_pylist()
    outer = min(value, digits) if is_min else max(value, digits)
    assert widened_floats(floats, is_min=is_min).to_pylist() == [outer]
    for reading in (value, digits, outer):
        assert outer_reading(doubles(reading), is_min=is_min).to_pylist() == [outer]


@given(st.floats(allow_nan=False), st.booleans())
def test_no_bound_moves_inwards_and_twice_is_once(value: float, is_min: bool) -> None:
    once = outer_reading(doubles(value), is_min=is_min)
    [found] = once.to_pylist()
    assert found <= value if is_min else found >= value
    assert outer_reading(once, is_min=is_min).to_pylist() == [found]


def test_what_was_written_as_a_double_stays() -> None:
    values = [0.123456789012, None, math.inf, -math.inf, 1e300, 7.0]
    assert outer_reading(doubles(*values), is_min=True).to_pylist() == values
    [nan] = outer_reading(doubles(math.nan), is_min=False).to_pylist()
    assert math.isnan(nan)


@pytest.mark.parametrize("text", ["0.1", "0.10000000149011612"])
def test_the_text_and_the_typed_form_of_a_checkpoint_say_the_same(text: str) -> None:
    document = f'{{"minValues":{{"c":{text}}},"maxValues":{{"c":{text}}}}}'
    told = [statistics_from_json(pa.array([document]), [ONCE_FLOAT])]
    for type_ in (pa.float32(), pa.float64()):
        bounds = pa.struct([("c", type_)])
        rows = [{"minValues": {"c": float(text)}, "maxValues": {"c": float(text)}}]
        parsed = pa.array(rows, pa.struct([("minValues", bounds), ("maxValues", bounds)]))
        told.append(statistics_from_struct(parsed, [ONCE_FLOAT]))
    for statistics in told:
        column = statistics.columns["c",]
        assert column.min is not None
        assert column.max is not None
        assert (column.min.to_pylist(), column.max.to_pylist()) == ([0.1], [EXACT])
