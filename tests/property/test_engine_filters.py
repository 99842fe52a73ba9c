"""Filters of pyarrow and Polars, told to a scan: no row that the engine keeps may be lost on the way."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given, reject
from hypothesis import strategies as st

from lazydelta.engines.arrow_expression import fields_of, read_expression
from lazydelta.engines.arrow_filter import Pushed, pushed_filter, pushed_tree
from lazydelta.engines.polars_expression import read_polars
from lazydelta.predicate import bind, matches
from lazydelta.protocol.schema import Field, PrimitiveType, StructType, arrow_schema

TYPES = {
    "i": "integer",
    "l": "long",
    "f": "float",
    "d": "double",
    "s": "string",
    "b": "boolean",
    "day": "date",
    "at": "timestamp",
    "ntz": "timestamp_ntz",
    "dec": "decimal(10,2)",
    "bin": "binary",
}
SCHEMA = StructType(
    (
        *(Field(name, PrimitiveType(kind), True, {}) for name, kind in TYPES.items()),
        Field("st", StructType((Field("k", PrimitiveType("long"), True, {}),)), True, {}),
    )
)
FIRST = dt.datetime(2026, 2, 10)  # noqa: DTZ001  # placed where a zone is meant
VALUES: dict[str, list[Any]] = {
    "i": [0, 1, -1, 2, 2**31 - 1],
    "l": [0, 1, 2**53, 2**53 + 1, -(2**63)],
    "f": [0.0, -0.0, 1.5, math.nan, math.inf, 16777216.0],
    "d": [0.0, -0.0, 1.5, math.nan, -math.inf, 0.1, 9007199254740992.0],
    "s": ["", "a", "ab", "a%", "a_b", "ä\\", "b"],
    "b": [True, False],
    "day": [dt.date(2026, 2, 10), dt.date(2026, 2, 11), dt.date(1, 1, 1)],
    "at": [FIRST.replace(tzinfo=dt.UTC), FIRST.replace(microsecond=1, tzinfo=dt.UTC)],
    "ntz": [FIRST, FIRST.replace(microsecond=999_999)],
    "dec": [Decimal("0.00"), Decimal("1.50"), Decimal("-99999999.99")],
    "bin": [b"", b"a", b"\xff"],
}
NAMES = sorted(VALUES)
RELATIONS = ["==", "!=", "<", "<=", ">", ">="]
ROWS = st.lists(
    st.fixed_dictionaries(
        {name: st.sampled_from([None, *values]) for name, values in VALUES.items()}
        | {"st": st.sampled_from([None, {"k": None}, {"k": 1}, {"k": 7}])}
    ),
    min_size=1,
    max_size=12,
)
# Comparisons across types: whatever the engine makes of them, no row may be lost.
CROSSED = [
    ("l", 0.5),
    ("l", 9007199254740992.0),
    ("i", 1.0),
    ("f", 0.1),
    ("f", 2),
    ("d", 3),
    ("dec", 1),
    ("dec", 1.5),
]


def related(left: Any, relation: str, right: Any) -> Any:
    """`left relation right`, for expressions of either engine."""
    return {
        "==": left == right,
        "!=": left != right,
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
    }[relation]


@st.composite
def arrow_leaves(draw: st.DrawFn) -> pc.Expression:
    name = draw(st.sampled_from(NAMES))
    field, value = pc.field(name), draw(st.sampled_from(VALUES[name]))
    typed = pa.scalar(value, arrow_schema(SCHEMA).field(name).type)
    relation = draw(st.sampled_from(RELATIONS))
    many = draw(st.lists(st.sampled_from([None, *VALUES[name]]), max_size=3))
    valid = pc.field(name).is_valid()
    is_in = pc.field(name).isin(pa.array(many, typed.type))
    crossed_name, crossed_value = draw(st.sampled_from(CROSSED))
    return draw(
        st.sampled_from(
            [
                related(field, relation, typed) if name != "b" else related(field, "==", typed),
                related(pc.scalar(typed), relation, field) if name != "b" else field,
                related(pc.field(crossed_name), relation, crossed_value),
                related(pc.field("st", "k"), relation, 1),
                field.is_null(),
                field.is_null(nan_is_null=True),
                valid,
                is_in,
                pc.if_else(valid, is_in, pa.scalar(None, pa.bool_())),
                pc.starts_with(pc.field("s"), draw(st.sampled_from(VALUES["s"]))),
                pc.starts_with(pc.field("s"), "A", ignore_case=True),
                related(pc.field("l"), relation, pa.scalar(None, pa.int64())),
                pc.field("b"),
                pc.scalar(True),
                pc.scalar(False),
                pc.field("i").cast("int64") + 1 > 1,
            ]
        )
    )


def arrow_filters() -> st.SearchStrategy[pc.Expression]:
    return st.recursive(
        arrow_leaves(),
        lambda inner: st.one_of(
            inner.map(lambda part: ~part),
            st.tuples(inner, inner).map(lambda parts: parts[0] & parts[1]),
            st.tuples(inner, inner).map(lambda parts: parts[0] | parts[1]),
        ),
        max_leaves=5,
    )


@st.composite
def polars_leaves(draw: st.DrawFn) -> pl.Expr:
    name = draw(st.sampled_from(NAMES))
    column, value = pl.col(name), draw(st.sampled_from(VALUES[name]))
    relation = draw(st.sampled_from(RELATIONS))
    many = draw(st.lists(st.sampled_from([None, *VALUES[name]]), max_size=3))
    typed = pl.Series(many, dtype=polars_schema()[name])
    crossed_name, crossed_value = draw(st.sampled_from(CROSSED))
    return draw(
        st.sampled_from(
            [
                related(column, relation, pl.lit(value, dtype=polars_schema()[name])),
                related(pl.col(crossed_name), relation, crossed_value),
                related(pl.col("st").struct.field("k"), relation, 1),
                column.is_null(),
                column.is_not_null(),
                column.is_in(typed.implode(), nulls_equal=draw(st.booleans())),
                pl.col("i").is_between(0, 1, closed=draw(st.sampled_from(["both", "left", "right", "none"]))),
                pl.col("d").is_between(-1.0, 1.5),
                pl.col("s").str.starts_with(draw(st.sampled_from(VALUES["s"]))),
                pl.col("b"),
                pl.col("i") % 2 == 0,
                pl.col("l").eq_missing(pl.lit(None)),
            ]
        )
    )


def polars_filters() -> st.SearchStrategy[pl.Expr]:
    return st.recursive(
        polars_leaves(),
        lambda inner: st.one_of(
            inner.map(lambda part: ~part),
            st.tuples(inner, inner).map(lambda parts: parts[0] & parts[1]),
            st.tuples(inner, inner).map(lambda parts: parts[0] | parts[1]),
        ),
        max_leaves=5,
    )


def polars_schema() -> pl.Schema:
    frame = pl.from_arrow(arrow_schema(SCHEMA).empty_table())
    assert isinstance(frame, pl.DataFrame)
    return frame.schema


def batch_of(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    schema = arrow_schema(SCHEMA).append(pa.field("at_row", pa.int64()))
    numbered = [row | {"at_row": at} for at, row in enumerate(rows)]
    return pa.RecordBatch.from_pylist(numbered, schema)


def told(pushed: Pushed, batch: pa.RecordBatch) -> set[int]:
    """The rows that a scan with the condition gives."""
    if pushed.condition is None:
        return set(range(batch.num_rows))
    bound = bind(pushed.condition, SCHEMA, (), where="the test")
    return set(batch.filter(matches(bound, batch)).column("at_row").to_pylist())


@given(arrow_filters(), ROWS)
def test_what_a_pyarrow_filter_tells_a_scan_loses_no_row(
    expression: pc.Expression, rows: list[dict[str, Any]]
) -> None:
    batch = batch_of(rows)
    try:
        kept = set(batch.filter(expression).column("at_row").to_pylist())
    except pa.ArrowInvalid:  # a large integer beside a floating literal: Arrow refuses to round it
        reject()
    pushed = pushed_filter(expression, SCHEMA)
    found = told(pushed, batch)
    assert kept <= found
    if pushed.is_exact:
        assert kept == found


@given(polars_filters(), ROWS)
def test_what_a_polars_filter_tells_a_scan_loses_no_row(
    expression: pl.Expr, rows: list[dict[str, Any]]
) -> None:
    batch = batch_of(rows)
    frame = pl.from_arrow(pa.Table.from_batches([batch]))
    assert isinstance(frame, pl.DataFrame)
    kept = set(frame.filter(expression)["at_row"].to_list())
    node = read_polars(expression)
    assert node is not None
    assert kept <= told(pushed_tree(node, SCHEMA), batch)


@given(st.lists(st.text(), min_size=1, max_size=3), st.text())
def test_names_and_texts_of_an_expression_are_read_as_they_are(path: list[str], text: str) -> None:
    node = read_expression(pc.field(*path) == text)
    assert node is not None
    assert list(fields_of(node)) == [tuple(path)]
    assert node.arguments[1].value.as_py() == text  # type: ignore[union-attr]  # it is a call


@given(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(width=32, allow_nan=False, allow_infinity=False),
)
def test_floats_of_a_polars_filter_are_read_as_they_are(double: float, single: float) -> None:
    column = pl.col("d")
    spelled = [
        (pl.lit(double), double),
        (pl.lit(double, dtype=pl.Float64), double),
        (pl.lit(single, dtype=pl.Float32), single),
    ]
    for literal, number in spelled:
        node = read_polars(column == literal)
        assert node is not None
        assert node.arguments[1].value.as_py() == number  # type: ignore[union-attr]  # it is a call
    node = read_polars(column.is_in([double]))
    assert node is not None
    assert node.options["value_set"].as_py() == [double]  # type: ignore[index, union-attr]  # it is a call
