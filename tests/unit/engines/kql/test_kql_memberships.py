"""`in`, `has_any` and their relatives beside dynamics: what an array holds has the value's type."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lazydelta.engines.kql.errors import KqlError
from tests.support.kql_session import KqlSession, kql_session

LETTERS = "datatable(k:string)['a', 'b', '', 'c']"
DIGITS = "datatable(k:string)['1', '2', '3']"
LONGS = "datatable(x:long)[1, 2, 3, long(null), 9007199254740993]"
REALS = "datatable(x:real)[1.0, 2.5, real(nan), real(+inf), real(null)]"
TIMES = "datatable(x:datetime)[datetime(2020-01-01), datetime(2020-01-02 03:04:05.678), datetime(null)]"
SPANS = "datatable(x:timespan)[1h, 1d, timespan(null)]"
TRUTHS = "datatable(x:bool)[true, false, bool(null)]"
IDS = "datatable(x:guid)[guid(74be27de-1e4e-49d9-b579-fe0b331d3642), guid(null)]"
# What is asked, and how many rows are found by it and by its negation.
FOUND = {
    f"{LETTERS} | where k in (dynamic(['a', ['b', ['c']]]))": 3,
    f"{LETTERS} | where k in ('a', dynamic(['b']))": 2,
    f"{LETTERS} | where k in (dynamic(['']), 'a')": 2,
    f"{LETTERS} | where k in~ (dynamic(['A']), 'B')": 2,
    f"{LETTERS} | where k in (split('a,b', ','))": 2,
    f"{LETTERS} | where k in (dynamic('a'))": 1,
    f"{LETTERS} | where k in (dynamic(null))": 0,
    f"{LETTERS} | where k in (dynamic([]))": 0,
    f"{LETTERS} | extend j = pack_array(k, 'x') | where k in (j)": 4,
    f"{LETTERS} | extend j = dynamic({{'m': ['a']}}) | where k in (j.m)": 1,
    f"{DIGITS} | extend j = dynamic(['1', '2']) | where k in (j)": 2,
    f"{DIGITS} | where k in ('1', dynamic(['2']))": 2,
    f"{LONGS} | where x in (dynamic([1, [2.0], 2.5]))": 2,
    f"{LONGS} | where x in (1, dynamic([2, 'two', null]))": 2,
    f"{LONGS} | where x in (dynamic([9007199254740992]))": 0,
    f"{LONGS} | where x in (dynamic([9007199254740993]))": 1,
    f"{LONGS} | where x in (range(1, 2))": 2,
    f"{LONGS} | extend j = dynamic([1, 3]) | where x in (j)": 2,
    f"let s = toscalar({LONGS} | summarize make_set(x)); {LONGS} | where x in (s)": 4,
    f"{REALS} | where x in (dynamic([1, 2.50]))": 2,
    f"{REALS} | where x in (real(nan), 1)": 1,
    f"{REALS} | where x in (({REALS}))": 3,
    f"let s = toscalar({REALS} | summarize make_set(x)); {REALS} | where x in (s)": 3,
    f"let s = toscalar({LONGS} | summarize make_set(x)); {REALS} | where x in (s)": 1,
    f"{TIMES} | where x in (dynamic([datetime(2020-01-01), '2020-01-02T03:04:05.678Z', 5]))": 2,
    f"let s = toscalar({TIMES} | summarize make_set(x)); {TIMES} | where x in (s)": 2,
    f"{SPANS} | where x in (dynamic(['01:00:00', time(1d)]))": 2,
    f"let s = toscalar({SPANS} | summarize make_list(x)); {SPANS} | where x in (s)": 2,
    f"{TRUTHS} | where x in (dynamic([true, 'x']))": 1,
    f"let s = toscalar({TRUTHS} | summarize make_set(x)); {TRUTHS} | where x in (s)": 2,
    f"{IDS} | where x in (dynamic(['74BE27DE-1E4E-49D9-B579-FE0B331D3642']))": 1,
    "datatable(d:dynamic)[dynamic({'n':1}), dynamic({'n':1.0}), dynamic({'n':'a'}), dynamic({})] "
    "| where d.n in (dynamic([1, 'a']))": 3,
}


@pytest.fixture(scope="module")
def session() -> Iterator[KqlSession]:
    with kql_session() as made:
        yield made


@pytest.mark.parametrize(("query", "count"), FOUND.items())
def test_an_array_is_the_list_of_what_it_holds(session: KqlSession, query: str, count: int) -> None:
    assert session.kql(f"{query} | count") == [(count,)]
    rows, is_in, members = query.rpartition(" in~ " if " in~ " in query else " in ")
    others = f"{rows} !{is_in.strip()} {members} | count"
    total = session.kql(f"{rows.rpartition(' | where')[0]} | count")[0][0]
    assert session.kql(others) == [(total - count,)]


@pytest.mark.parametrize(
    ("query", "count"),
    {
        "datatable(k:string, j:dynamic)['a b', dynamic(['B']), 'a', dynamic(['b']), 'c', dynamic('c')] "
        "| where k has_any (j)": 2,
        "datatable(k:string)['a b', 'c'] | where k has_any (split('b,x', ','))": 1,
        "datatable(k:string)['a b', 'a'] | extend j = pack_array('a', 'b') | where k has_all (j)": 1,
        "datatable(k:string)['a b', 'a'] | where k has_all ('a', array_concat(dynamic(['b'])))": 1,
    }.items(),
)
def test_words_may_come_from_any_array(session: KqlSession, query: str, count: int) -> None:
    assert session.kql(f"{query} | count") == [(count,)]


def test_a_list_is_a_truth_in_print_too(session: KqlSession) -> None:
    query = "let xs = dynamic([datetime(2020-01-01)]); print datetime(2020-01-01) in (xs), now() !in (xs)"
    assert session.kql(query) == [(True, True)]


@pytest.mark.parametrize("member", ["'1'", "true"])
def test_a_number_beside_a_text_that_reads_as_one_is_an_error(session: KqlSession, member: str) -> None:
    with pytest.raises(Exception, match="convert it with tolong"):
        session.kql(f"{LONGS} | where x in (dynamic([{member}]))")


def test_a_decimal_beside_a_dynamic_is_refused(session: KqlSession) -> None:
    with pytest.raises(KqlError, match="decimal"):
        session.kql("print x = decimal(1.50) | where x in (dynamic([1.5]))")
