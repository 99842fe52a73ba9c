"""One range for many files keeps whatever one of the files keeps.

The range is made as a part's footer makes it: least minimum, greatest maximum, least maximum. Files are
judged one by one by the same predicate.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lazydelta.predicate import BoundPredicate, Expression, FileFacts, Not, bind, col
from lazydelta.protocol.schema import Field, PrimitiveType, StructType, arrow_type
from lazydelta.protocol.statistics import ColumnBounds, FileStatistics
from lazydelta.sidecar.read.range_facts import named_columns, possible_ranges, range_bounds
from tests.support.hypothesis_profile import examples

_WIDENED = {"delta.typeChanges": [{"toType": "double", "fromType": "float", "tableVersion": 1}]}
_EPOCH = datetime.fromisoformat("1970-01-01")
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "string": st.text("ab\ufffd\U0001f600", max_size=3),
    "long": st.integers(-3, 3),
    "double": st.sampled_from([-1.5, -0.0, 0.0, 0.1, 1e300, float("inf")]),
    "decimal(6,2)": st.integers(-300, 300).map(lambda cents: Decimal(cents) / 100),
    "decimal(38,10)": st.integers(-9, 9).map(lambda units: Decimal(12345678901234567890) + units),
    "decimal(38,0)": st.sampled_from([-(10**37), -(2**63) - 1, -(2**63), 0, 2**63 - 1, 2**63, 10**37]).map(
        Decimal
    ),
    "date": st.integers(-2, 2).map(lambda days: date(1970, 1, 1) + timedelta(days)),
    "timestamp_ntz": st.integers(-1500, 1500).map(lambda us: _EPOCH + timedelta(microseconds=us)),
    "boolean": st.booleans(),
}
OPERATORS = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")


@st.composite
def expressions(draw: st.DrawFn, type_name: str) -> Expression:
    values = VALUES[type_name]
    literal = draw(values)
    kinds = [*OPERATORS, "is_in", *(["starts_with", "like"] if type_name == "string" else [])]
    kind = draw(st.sampled_from(kinds))
    if kind == "is_in":
        found = col("x").is_in(draw(st.lists(values, min_size=1, max_size=3)))
    elif kind == "like":
        found = col("x").like(literal + "%" + draw(values))
    else:
        found = getattr(col("x"), kind)(literal)
    return Not(found) if draw(st.booleans()) else found


def bound(expression: Expression, type_name: str, *, is_partition: bool) -> BoundPredicate:
    metadata = _WIDENED if type_name == "double" else {}
    schema = StructType((Field("x", PrimitiveType(type_name), True, metadata),))
    return bind(expression, schema, ["x"] if is_partition else [], where="memory")


@pytest.mark.parametrize("type_name", sorted(VALUES))
@settings(max_examples=examples(50))
@given(data=st.data())
def test_a_range_keeps_what_one_of_its_files_keeps(type_name: str, data: st.DataObject) -> None:
    pairs = st.lists(VALUES[type_name], min_size=2, max_size=2).map(sorted)
    files = data.draw(st.lists(pairs, min_size=1, max_size=4))
    predicate = bound(data.draw(expressions(type_name)), type_name, is_partition=False)
    low, high = (
        pa.array([pair[side] for pair in files], arrow_type(PrimitiveType(type_name))) for side in (0, 1)
    )
    statistics = FileStatistics(len(files), None, None, {("x",): ColumnBounds(low, high)})
    kept = predicate.might_match(FileFacts(len(files), statistics=statistics))
    for least_high in (_extreme(high, "min"), None):  # a footer tells it, a manifest does not
        assert judged(predicate, low, high, least_high) or not kept.any(), str(predicate.expression)


@settings(max_examples=examples(50))
@given(data=st.data())
def test_a_range_of_partition_values_keeps_what_one_of_them_keeps(data: st.DataObject) -> None:
    type_name = data.draw(st.sampled_from(["string", "long", "date"]))
    texts = data.draw(st.lists(VALUES[type_name].map(str), min_size=1, max_size=4))
    predicate = bound(data.draw(expressions(type_name)), type_name, is_partition=True)
    raw = pa.array(texts, pa.string())
    kept = predicate.might_match(FileFacts(len(texts), {"x": raw}))
    values = raw.cast(arrow_type(PrimitiveType(type_name)))
    assert judged(predicate, values, values, None) or not kept.any(), str(predicate.expression)


@pytest.mark.parametrize("type_name", ["string", "long", "date"])
def test_a_range_of_one_value_is_as_sharp_as_the_value(type_name: str) -> None:
    value = {"string": "b", "long": 1, "date": date(1970, 1, 2)}[type_name]
    values = pa.array([value, value], arrow_type(PrimitiveType(type_name)))
    for is_partition in (False, True):
        for expression in (col("x") < value, Not(col("x") <= value) if is_partition else col("x") < value):
            predicate = bound(expression, type_name, is_partition=is_partition)
            assert not judged(predicate, values, values, _extreme(values, "min")), str(expression)


def judged(predicate: BoundPredicate, low: pa.Array, high: pa.Array, least_high: pa.Array | None) -> bool:
    (column,) = named_columns(predicate)
    bounds = range_bounds(column, low=_extreme(low, "min"), high=_extreme(high, "max"), least_high=least_high)
    return bool(possible_ranges(predicate, 1, columns={("x",): bounds}, periods={})[0])


def _extreme(values: pa.Array, side: str) -> pa.Array:
    return pa.array([pc.min_max(values)[side].as_py()], values.type)
