"""A filter printed as SQL parses back to the same filter, whatever its names and values."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

from hypothesis import example, given, settings
from hypothesis import strategies as st
from sqlglot.tokens import Tokenizer

from lazydelta.predicate import Column, Constant, Expression, Like, Not, all_of, any_of, parse_where
from tests.support.hypothesis_profile import examples

NAMES = st.one_of(
    st.sampled_from(
        ["a", "date", "_event_hour", "group", "x.y", 'q"uote', "back`tick", "ü", "two words", "1st"]
    ),
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=4),
)
PATHS = st.lists(NAMES, min_size=1, max_size=6).map(tuple)
OFFSETS = st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=30)), timezone(timedelta(seconds=-3208))])
VALUES = st.one_of(
    st.booleans(),
    st.integers(),
    st.decimals(allow_nan=False, allow_infinity=False),
    st.floats(),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    st.binary(max_size=3),
    st.dates(),
    st.datetimes(),
    # Not at the ends of the calendar, which have no time in other zones.
    st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1), timezones=OFFSETS),  # noqa: DTZ001  # zones are drawn
)
LEAVES = st.one_of(
    st.builds(lambda path, value: Column(path) <= value, PATHS, VALUES),
    st.builds(lambda path, value: Column(path) != value, PATHS, VALUES),
    st.builds(
        lambda path, values: Column(path).is_in(values), PATHS, st.lists(VALUES | st.none(), max_size=3)
    ),
    st.builds(Like, PATHS, st.text("ab%_\\'", max_size=5)),
    st.builds(lambda path: Column(path).is_null(), PATHS),
    st.builds(Constant, st.sampled_from([True, False, None])),
)
EXPRESSIONS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        inner.map(Not),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: all_of(*parts)),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: any_of(*parts)),
    ),
    max_leaves=6,
)


@settings(max_examples=examples(400))
@example(Column(("x",)) == -0.0)
@example(Column(("x",)).is_in([math.nan, math.inf]))
@example(Column(("x",)) == Decimal("1e400"))
@given(EXPRESSIONS)
def test_a_filter_printed_as_sql_parses_back_to_the_same_filter(expression: Expression) -> None:
    parsed = parse_where(str(expression))
    assert parsed == expression
    assert hash(parsed) == hash(expression)
    assert str(parsed) == str(expression)


def test_every_word_of_sql_can_be_a_column_name() -> None:
    for word in sorted({word.lower() for word in Tokenizer.KEYWORDS if word.isidentifier()}):
        for expression in (
            Column((word,)) > 1,
            Column((word, word)).is_null(),
            Column(("a", word)).like("x%"),
        ):
            assert parse_where(str(expression)) == expression, word
