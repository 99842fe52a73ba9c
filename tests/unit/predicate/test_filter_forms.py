"""One filter, four forms: SQL text, JSON, lists, Python."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from lazydelta.errors import InvalidRequestError
from lazydelta.predicate import Column, Constant, IsNull, Like, Not, col, parse_where


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        (
            "date = '2026-02-08' and value between 1 and 9",
            "date = '2026-02-08' AND value >= 1 AND value <= 9",
        ),
        ("a = 1 or b = 2 and c = 3", "a = 1 OR (b = 2 AND c = 3)"),
        ("(a = 1 or b = 2) and not c = 3", "(a = 1 OR b = 2) AND NOT (c = 3)"),
        ("5 < x and 'a' <> y", "x > 5 AND y <> 'a'"),
        ("x in (1, -2, 3.5, null)", "x IN (1, -2, 3.5, NULL)"),
        ("x not in ('it''s')", "NOT (x IN ('it''s'))"),
        ("x like 'a%' and y not like '_b'", "x LIKE 'a%' AND NOT (y LIKE '_b')"),
        (r"x like '10!%%' escape '!'", r"x LIKE '10\%%'"),
        ("x is null and y is not null", "x IS NULL AND y IS NOT NULL"),
        ("x not between 1 and 2", "NOT (x >= 1 AND x <= 2)"),
        ("x == 1 and y != 2", "x = 1 AND y <> 2"),
        ("flag and not other", "flag = TRUE AND NOT (other = TRUE)"),
        ("x = true or x = null", "x = TRUE OR x = NULL"),
        ("ts >= timestamp '2026-02-08 10:00:00+01:00'", "ts >= TIMESTAMP '2026-02-08T10:00:00+01:00'"),
        ("ts >= cast('2026-02-08' as timestamp)", "ts >= TIMESTAMP '2026-02-08T00:00:00'"),
        ("d < date '2026-02-08'", "d < DATE '2026-02-08'"),
        ("d < '2026-02-08'::date", "d < DATE '2026-02-08'"),
        ("`x.y`.z = 1", '"x.y".z = 1'),
        ('"two words" = 1', '"two words" = 1'),
        ("a.b.c.d.e.f = 1", "a.b.c.d.e.f = 1"),
        ("x = X'00ff'", "x = X'00ff'"),
        ("1 = 1 and x = 2", "TRUE AND x = 2"),
        ("x = 'back\\slash'", "x = 'back\\slash'"),
    ],
)
def test_sql_text_is_read(text: str, printed: str) -> None:
    assert str(parse_where(text)) == printed


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("upper(x) = 'A'", "UPPER(x)"),
        ("x + 1 = 2", "x + 1"),
        ("a = b", "b is a column"),
        ('x = "text"', '"text" is a column'),
        ("x in (select y from t)", "SELECT"),
        ("x ilike 'a%'", "ILIKE"),
        ("cast(x as date) = '2026-02-08'", "CAST(x AS DATE)"),
        ("x = now()", "NOW()"),
        ("x is true", "IS TRUE"),
        ("x = ?", "?"),
        ("x like 5", "LIKE"),
        ("ts >= timestamp '2026-02-30'", "2026-02-30"),
        ("case when x then y end", "CASE"),
        ("x = 1 limit 5", "at 'limit'"),
        ("x = ", "does not parse"),
        ("x = 'open", "does not parse"),
        ("", "does not parse"),
    ],
)
def test_what_the_language_cannot_express_is_an_error_that_shows_it(text: str, shown: str) -> None:
    with pytest.raises(InvalidRequestError) as raised:
        parse_where(text)
    assert shown in raised.value.what
    assert text in raised.value.where


@pytest.mark.parametrize(
    ("where", "same_as"),
    [
        ({"date": "2026-02-08"}, "date = '2026-02-08'"),
        ('{"date": "2026-02-08"}', "date = '2026-02-08'"),
        ({"v": {"gte": 1, "lt": 2.5}, "w": None}, "v >= 1 and v < 2.5 and w is null"),
        ({"v": {"gt": 1, "lte": 3, "ne": 2, "eq": 3}}, "v > 1 and v <= 3 and v <> 2 and v = 3"),
        ({"v": {"in": [1, 2], "like": "a%"}}, "v in (1, 2) and v like 'a%'"),
        ({"v": {"is_null": True}, "w": {"is_null": False}}, "v is null and w is not null"),
        ({"v": [1, 2]}, "v in (1, 2)"),
        ({"a.b": 1, "`a.b`": 2}, "a.b = 1 and `a.b` = 2"),
        ([("x", ">=", 1), ("y", "!=", "a")], "x >= 1 and y <> 'a'"),
        ([[("x", "=", 1), ("y", "==", 2)], [("x", "<>", 3)]], "(x = 1 and y = 2) or x <> 3"),
        ([("x", "in", {5}), ("y", "not in", [2])], "x in (5) and y not in (2)"),
        ([("x", "is", None), ("y", "is not", None)], "x is null and y is not null"),
        ([("x", "like", "a%"), ("y", "NOT  LIKE", "b%")], "x like 'a%' and y not like 'b%'"),
        (("x", "<", 5), "x < 5"),
        ('[["x", "<", 5]]', "x < 5"),
        ([], "true"),
        ({}, "true"),
    ],
)
def test_json_and_lists_say_the_same_as_sql(where: Any, same_as: str) -> None:
    assert parse_where(where) == parse_where(same_as)


@pytest.mark.parametrize(
    "where",
    [
        {"x": {"foo": 1}},
        {"x": {}},
        {"x": {"gte": None}},
        {"x": {"in": 5}},
        {5: 1},
        "{not json",
        [("x", "=", None)],
        [("x", "=", [1])],
        [("x", "~", 1)],
        [("x", "=")],
        [("x", "in", 5)],
        [5],
        5,
        b"x = 1",
        {"x": object()},
        {"": 1},
    ],
)
def test_a_form_that_is_off_is_an_error(where: Any) -> None:
    with pytest.raises(InvalidRequestError):
        parse_where(where)


@pytest.mark.parametrize(
    ("built", "same_as"),
    [
        (col("value") > 3, "value > 3"),
        (col("value") == 3, "value = 3"),
        (col("value") != Decimal("1.50"), "value <> 1.50"),
        (col("value") <= np.int64(3), "value <= 3"),
        (col("value") >= 0.1, "value >= 0.1"),
        (col("value") > 3, "value > 3"),
        (col("a.b") < 1, "a.b < 1"),
        (col("a", "b.c") < 1, 'a."b.c" < 1'),
        (col("`a.b`") < 1, '"a.b" < 1'),
        (col("x").between(1, 2) & col("y").is_null(), "x between 1 and 2 and y is null"),
        ((col("x") == 1) | ~(col("y") == 2), "x = 1 or not (y = 2)"),
        (col("x").is_in([1, 2]), "x in (1, 2)"),
        (col("x").is_not_null(), "x is not null"),
        (col("x").starts_with("a"), "x like 'a%'"),
        (col("x").starts_with("5%_\\"), r"x like '5\%\_\\%'"),
        (col("flag") & (col("x") > 1), "flag and x > 1"),
        ((col("x") > 1) | col("flag"), "x > 1 or flag"),
        (~col("flag"), "not flag"),
        (col("d") == date(2026, 2, 8), "d = date '2026-02-08'"),
        (col("t") == datetime(2026, 2, 8, tzinfo=UTC), "t = timestamp '2026-02-08T00:00:00Z'"),
        (col("t") == np.datetime64("2026-02-08T01:02:03"), "t = timestamp '2026-02-08T01:02:03'"),
        (col("b") == b"\x01", "b = X'01'"),
    ],
)
def test_python_operators_build_the_same_filters(built: Any, same_as: str) -> None:
    assert parse_where(built) == parse_where(same_as)


def test_a_bare_column_means_is_true() -> None:
    assert parse_where(col("flag")) == parse_where("flag")


def test_conjunctions_are_flat() -> None:
    a, b, c = (col(name) == 1 for name in "abc")
    assert (a & b) & c == a & (b & c) == parse_where("a = 1 and b = 1 and c = 1")
    assert (a | b) | c == a | (b | c)


def test_a_filter_is_neither_true_nor_false_by_itself() -> None:
    with pytest.raises(TypeError, match="instead of and, or and not"):
        bool(col("x") > 1)
    with pytest.raises(TypeError, match="is_in"):
        bool(col("x"))
    with pytest.raises(TypeError, match="parentheses"):
        (col("x") > 1) & 5  # type: ignore[operator]  # the mistake under test


def test_comparing_with_none_in_python_is_an_error() -> None:
    with pytest.raises(InvalidRequestError, match="is_null"):
        col("x") == None  # noqa: B015, E711  # the mistake under test


@pytest.mark.parametrize("name", ["", "a.", ".a", "a..b", "`a", "a`b`"])
def test_a_name_that_is_no_column_is_an_error(name: str) -> None:
    with pytest.raises(InvalidRequestError):
        col(name)


def test_a_column_needs_a_name() -> None:
    with pytest.raises(InvalidRequestError):
        col()


def test_filters_compare_by_content_and_true_is_not_one() -> None:
    assert (col("x") == 1) != (col("x") == True)  # noqa: E712  # filters, not a test
    assert len({col("x") == 1, col("x") == 1, col("x") == True}) == 2  # noqa: E712  # a filter, not a test
    assert Constant(None) != Constant(False)
    assert Not(IsNull(("x",))) == col("x").is_not_null()
    assert Like(("x",), "a%") == Column(("x",)).like("a%")
    assert repr(col("a.b")) == "col('a', 'b')"


@pytest.mark.parametrize("value", [Decimal("sNaN"), Decimal("-sNaN123")])
def test_a_signalling_nan_is_refused(value: Decimal) -> None:
    for where in ({"x": value}, [("x", "<", value)], {"x": [1, value]}):
        with pytest.raises(InvalidRequestError, match="signalling NaN"):
            parse_where(where)
    with pytest.raises(InvalidRequestError, match="signalling NaN"):
        _ = col("x") > value


@pytest.mark.parametrize(
    "text",
    [
        '{"value": {"gte": 1}, "value": {"lt": 9}}',
        '{"value": 1, "other": 2, "value": 1}',
        '{"value": {"gte": 1, "gte": 5}}',
        '{"value": 1, "\\u0076alue": 2}',
        '[["a", "=", 1], {"value": {"lt": 1, "lt": 2}}]',
    ],
)
def test_json_that_says_something_twice_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequestError, match=r"'(value|gte|lt)' stands twice") as told:
        parse_where(text)
    assert text in told.value.where


def test_json_keeps_numbers_as_they_are_written() -> None:
    big = 10**30
    assert parse_where(f'{{"x": {big}}}') == parse_where({"x": big})
    assert parse_where('{"x": {"gte": 1, "lt": 0.1}, "y": {"gte": 1}}') == parse_where(
        {"x": {"gte": 1, "lt": 0.1}, "y": {"gte": 1}}
    )
