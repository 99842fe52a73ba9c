"""JSON that is none, JSON's null, and numbers that JSON has no word for, inside dynamics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from lazydelta.engines.kql.errors import KqlError
from lazydelta.engines.kql.run import run_kql
from lazydelta.serve.kusto.cells import cells
from tests.support.kql_cases import answer
from tests.support.kql_session import KqlSession, kql_session


@pytest.fixture(scope="module")
def session() -> Iterator[KqlSession]:
    with kql_session() as made:
        yield made


@pytest.mark.parametrize(
    "text", ["abc", "[1,2,]", '{"a":1,}', '{"a":NaN}', "NaN", "-Infinity", "[1", "[inf]"]
)
def test_text_that_is_no_json_stays_text(session: KqlSession, text: str) -> None:
    query = (
        f"print s = '{text}' | project d = parse_json(s), gettype(todynamic(s)), s == tostring(parse_json(s))"
    )
    assert answer(session.result(query))[1] == [[text, "string", True]]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"NaN":"a,]"}', {"NaN": "a,]"}),
        ('{"a":[1, {"inf":null} ]}', {"a": [1, {"inf": None}]}),
        ("12", 12),
        ("null", None),
        ("", None),
    ],
)
def test_what_is_json_is_read(session: KqlSession, text: str, value: Any) -> None:
    query = f"print s = '{text}' | project d = parse_json(s), isnull(parse_json(s))"
    assert answer(session.result(query))[1] == [[value, value is None]]


def test_a_null_of_json_is_null_everywhere(session: KqlSession) -> None:
    rows = 'datatable(x:dynamic)[dynamic({"n":null}), dynamic({"n":1}), dynamic({})]'
    query = (
        f"{rows} | extend y = x.n | project isnull(y), isnotnull(x.n), coalesce(y, dynamic(7)), gettype(y)"
    )
    assert answer(session.result(query))[1] == [
        [True, False, 7, "null"],
        [False, True, 1, "long"],
        [True, False, 7, "null"],
    ]
    query = f"{rows} | summarize make_list(x.n), make_set(x.n), countif(isnull(x['n']))"
    assert answer(session.result(query))[1] == [[[1], [1], 2]]
    query = "print x = dynamic([1, null]) | mv-expand x | summarize make_list(x), countif(isnull(x))"
    assert answer(session.result(query))[1] == [[[1], 1]]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("print pack_array(real(nan), real(+inf), real(-inf), 1)", '["NaN","Infinity","-Infinity",1]'),
        ("print bag_pack('NaN', real(nan), 'b', 'a NaN')", '{"NaN":"NaN","b":"a NaN"}'),
        ("print series_divide(dynamic([1, 0]), dynamic([0, 0]))", '["Infinity","NaN"]'),
        ("datatable(v:real)[real(nan), 1.5] | summarize make_list(v)", '["NaN",1.5]'),
    ],
)
def test_numbers_that_json_lacks_are_strings_in_an_array_that_is_one(query: str, text: str) -> None:
    result = run_kql(query, {})
    (batch,) = list(result)
    assert batch.column(0).to_pylist() == [text]
    assert cells(batch.column(0), "dynamic").texts.to_pylist() == [text]


def test_a_dynamic_is_compared_with_a_number_by_the_number_that_it_holds(session: KqlSession) -> None:
    query = (
        'datatable(x:dynamic)[dynamic({"a":1.5}), dynamic({"a":2}), dynamic({"a":"abc"}), dynamic({})] '
        "| project x.a == 2, x.a != 2, x.a >= 2, 2 > x.a, x.a in (2, 3), x.a !in (2)"
    )
    assert session.kql(query) == [
        (False, True, False, True, False, True),
        (True, False, True, False, True, False),
        (False, True, None, None, False, True),
        (False, True, None, None, False, True),
    ]
    large = (
        'print x = dynamic({"a":9007199254740993}) | project x.a == 9007199254740993, x.a == 9007199254740992'
    )
    assert session.kql(large) == [(True, False)]


@pytest.mark.parametrize("held", ["true", '"1"'])
def test_a_truth_or_a_text_is_not_compared_with_a_number(held: str) -> None:
    with pytest.raises(KqlError, match="convert it with tolong"):
        list(run_kql(f'print x = dynamic({{"a":{held}}}) | where x.a == 1', {}))


def test_gaps_in_a_series_of_reals_are_reals(session: KqlSession) -> None:
    query = (
        "datatable(t:datetime, v:long)[datetime(2024-01-01), 1, datetime(2024-01-03), 2] "
        "| make-series avg(v), a = avg(v) default = 5, sum(v) on t step 1d | project-away t"
    )
    texts = [tostring for row in session.kql(query) for tostring in row]
    assert texts == ["[1.0,0.0,2.0]", "[1.0,5.0,2.0]", "[1,0,2]"]


def test_a_dynamic_equals_a_moment_a_span_or_a_truth_that_it_holds(session: KqlSession) -> None:
    held = '"2026-01-01T00:00:00Z"', '"00:01:00"', "true", '"x"', "20260101", "null"
    rows = ", ".join(f"dynamic({value})" for value in held)
    query = f"datatable(x:dynamic)[{rows}] | project x == datetime(2026-01-01), 1m == x, x == true, x != 1m"
    assert session.kql(query) == [
        (True, False, False, True),
        (False, True, False, False),
        (False, False, True, True),
        (False, False, False, True),
        (False, False, True, True),  # a whole number is a truth, as in tobool
        (False, False, False, True),
    ]
    query = f"datatable(x:dynamic)[{rows}] | where x in (datetime(2026-01-01), datetime(2026-01-02)) | count"
    assert session.kql(query) == [(1,)]


@pytest.mark.parametrize("value", ["datetime(2026-01-01)", "1m", "true"])
def test_a_dynamic_has_no_order_beside_what_is_no_number(value: str) -> None:
    with pytest.raises(KqlError, match=r"The operator '<' is not defined .* dynamic"):
        run_kql(f"print x = dynamic([]) | where x < {value}", {})


@pytest.mark.parametrize("name", ["*", "", "a*", 'a"b', "a.b", "a[0]", "a/b", "~", "0", "$", "ü x"])
def test_a_member_is_found_by_any_name(session: KqlSession, name: str) -> None:
    spelled = name.replace('"', '\\"')
    bag = f'dynamic({{"one":[0], "{spelled}":{{"in":5}}, "last":6}})'
    query = (
        f'print x = {bag}, name = "{spelled}" '
        f'| project a = x["{spelled}"]["in"], b = x[name]["in"], c = x.one[name]'
    )
    assert session.kql(query) == [("5", "5", None)]
    query = f"print x = {bag} | mv-expand kind=array x | where x[0] == '{name}' | project a = x[1]"
    assert session.kql(query) == [('{"in":5}',)]


def test_a_member_that_a_dynamic_would_name_is_refused() -> None:
    with pytest.raises(KqlError, match=r"d\[tostring\(x\)\]"):
        run_kql("print x = dynamic({}), y = dynamic({}) | project a = x[y.a]", {})


def test_expanded_whole_numbers_keep_their_digits(session: KqlSession) -> None:
    members = '9007199254740993, 9223372036854775807, -9223372036854775808, 3.7, -3.7, 1e300, "3", true, null'
    query = f"print x = dynamic([{members}]) | mv-expand x to typeof(long)"
    expected = [9007199254740993, 2**63 - 1, -(2**63), 3, -3, None, None, None, None]
    assert session.kql(query) == [(value,) for value in expected]
    query = "print x = dynamic([2147483647, 2147483648, -3.7]) | mv-expand x to typeof(int)"
    assert session.kql(query) == [(2147483647,), (None,), (-3,)]


def test_expanded_columns_come_in_the_order_they_are_written_in(session: KqlSession) -> None:
    query = (
        "print a = dynamic([1, 2]) | mv-expand x = a to typeof(long), y = array_reverse(a), "
        "a to typeof(string)"
    )
    assert [column.name for column in session.columns(query)] == ["a", "x", "y"]
    assert session.kql(query) == [("1", 1, "2"), ("2", 2, "1")]
