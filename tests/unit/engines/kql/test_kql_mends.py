"""What is added to the translation library or mended in it: answers that it lacks or gives otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from bench.peers.measure import status_kb
from lazydelta.engines.kql.errors import UnsupportedKqlError
from lazydelta.engines.kql.library import extended
from lazydelta.engines.kql.run import run_kql
from lazydelta.errors import LazyDeltaError
from tests.support.kql_cases import answer
from tests.support.kql_session import KqlSession, kql_session

ROWS = pa.table(
    {
        "k": pa.array(["a", "b", None, "a"]),
        "n": pa.array([1, 2, None, 4], pa.int64()),
        "r": pa.array([1.0, -1.0, 0.0, None], pa.float64()),
        "z": pa.array([0.0, 0.0, 0.0, 0.0], pa.float64()),
        "words": pa.array(["error in disk-7", "all well", "", "Errors: none"]),
    }
)


@pytest.fixture(scope="module")
def session() -> Iterator[KqlSession]:
    with kql_session() as made:
        made.give({"T": ROWS, "Empty": ROWS.slice(0, 0)})
        yield made


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("T | project q = r / z", [("Infinity",), ("-Infinity",), ("NaN",), (None,)]),
        ("T | project q = n / 0", [(None,)] * 4),
        ("T | summarize make_list(n, 2)", [("[1,2]",)]),
        ("T | summarize make_set(k, 1)", [('["a"]',)]),
        ("T | summarize l = make_list(n) by k | where k == ''", [("", "[]")]),
        (
            "Empty | summarize max(k), min(n), make_list(n), avg(r), sum(n), count()",
            [("", None, "[]", "NaN", 0, 0)],
        ),
        ("T | where k == 'none' | summarize take_any(k), take_any(n)", [("", None)]),
        ("T | summarize take_any(*) by k | where k == 'b' | project n, words", [(2, "all well")]),
        ("T | where words has 'disk' | project n", [(1,)]),
        ("T | search 'error' | project n", [(1,)]),
        ("T | search 'error*' | project n | sort by n asc", [(1,), (4,)]),
        ("T | search '*ell' and k:'b' | project ['$table'], n", [("T", 2)]),
        ("T | search kind=case_sensitive 'Errors' | project n", [(4,)]),
        ("T | search 'dis*7' | project n", [(1,)]),
        ("T | search * | count", [(4,)]),
        ("search in (T) 'well' | project n", [(2,)]),
        ("let f = (a:long, b:long = 10) { a - b }; print f(b = 1, a = 3), f(5), f(7, b = 2)", [(2, -5, 5)]),
        ("let f = (m:long) { T | where n > m | project n }; f(1) | sort by n asc", [(2,), (4,)]),
        ("let V = view () { T | count }; V", [(4,)]),
        ("print bin(time(00:00:01.234), 100ms) == time(00:00:01.2)", [(True,)]),
        (
            "print bin(datetime(2026-01-01 00:00:00.123456), 10ms) == datetime(2026-01-01 00:00:00.12)",
            [(True,)],
        ),
        ("print bin(datetime(2007-01-10), 7d) == datetime(2007-01-08), bin(10h, 7h) == 7h", [(True, True)]),
        ("print bin(datetime(0001-01-09), 7d) == datetime(0001-01-08)", [(True,)]),
        (
            "print t = datetime(2007-01-10) | make-series count() on t step 7d | project tostring(t[0])",
            [("2007-01-08T00:00:00.0000000Z",)],
        ),
        ("print 1h / 2 == 30m, 1h / 2.5 == 24m, 90m / 1h", [(True, True, 1.5)]),
        (r"print 'caf\u00e9', strlen('\u00e9')", [("café", 1)]),
        ("print array_sort_asc(dynamic([10, 9, null, 100]))", [("[9,10,100,null]",)]),
        ("print log(-1), sqrt(-1), log(0)", [(None, None, "-Infinity")]),
        ("let c = 2; T | top c by n | project n", [(4,), (2,)]),
        ("let c = 2; T | take c | count", [(2,)]),
        ("T | where n > 1 | serialize | extend r = row_number() | project r", [(1,), (2,)]),
        ("let S = T | serialize; S | where row_number() == 1 | project n", [(1,)]),
        ("T | project-away w* | project-keep k, n | project-reorder n | take 0", []),
        ("T | summarize percentilew(n, n, 50)", [(4,)]),
        ("T | where n > 1 | as Q | summarize m = max(n) | extend c = toscalar(Q | count)", [(4, 2)]),
        ("T | where n == 1 | as Q | union Q | count", [(2,)]),
        ("union ((T | where n > 1) | where n < 3) | project n", [(2,)]),
        ("((T | where n > 1) | where n < 3) | project n", [(2,)]),
        ("let name = 'T'; table(name) | count", [(4,)]),
        ("declare query_parameters(name:string = 'T'); table(name) | count", [(4,)]),
        ("T | project ['by'] = n | where ['by'] == 4", [(4,)]),
        ("T | project x = tolower(n), y = substring(n, 0) | where x == '4'", [("4", "4")]),
        ("print base64_encode_tostring('é'), base64_decode_tostring('w6k=')", [("w6k=", "é")]),
        ("print toupper('straße x'), toupper('')", [("STRAßE X", "")]),
        (
            "print array_sum(dynamic([1, 'a'])), array_sum(dynamic([1, 2.5])), array_sum(dynamic([1, null]))",
            [(None, 3.5, 1.0)],
        ),
        (
            "print binary_shift_left(1, 64), binary_shift_left(3, 63), binary_shift_left(1, -1)",
            [(1, -(2**63), None)],
        ),
        (
            "print binary_shift_right(-8, 1), binary_shift_right(8, 65), binary_shift_right(8, -1)",
            [(-4, 4, None)],
        ),
        (
            "print bin_at(5, -1, 0), bin_at(5.0, -1.0, 0.0), bin_at(5, 0, 0), bin_at(1h, -1m, 0h)",
            [(None,) * 4],
        ),
        ("print a = 1, b = 2 | project-rename b = a, a = b", [(1, 2)]),
        (
            "datatable(t:long, k:string)[1, 'a', 3, 'a', 5, 'b'] | make-series c = count() on t step 1 by k "
            "| sort by k asc",
            [("a", "[1,0,1]", "[1,2,3]"), ("b", "[1]", "[5]")],
        ),
        ("datatable(description:long)[1, 3, 2] | sort by description asc", [(1,), (2,), (3,)]),
        ("datatable(cascade:long)[1, 3, 2] | sort by cascade", [(3,), (2,), (1,)]),
        ("datatable(cascade:long)[1, 3, 2] | top 1 by cascade", [(3,)]),
        ("datatable(nullsfirst:long)[1, long(null)] | sort by nullsfirst", [(1,), (None,)]),
        (
            "datatable(x:string)['a', 'b'] | sort by iff(x == 'desc', 1, 2) asc, x asc nulls last | take 1",
            [("a",)],
        ),
        ("T | join kind=inner (T) on n and k | where n != n1 or k != k1 | count", [(0,)]),
        ("T | project ['a b'] = n | join kind=inner (T) on $left.['a b'] == $right.n | count", [(4,)]),
        ("T | join kind=inner (T) on $left.n == $right.n and $left.k == $right.k | count", [(4,)]),
        (
            "datatable(s:timespan, k:string)[timespan(null), 'a', 1m, 'b', 4m, 'b'] "
            "| summarize avg(s) / 1m, avgif(s, s > 2m) / 1m, sum(s) / 1m by k | sort by k asc",
            [("a", None, None, 0.0), ("b", 2.5, 4.0, 5.0)],
        ),
        ("datatable(s:timespan)[] | summarize isnull(avg(s)), isnull(avgif(s, s > 1m))", [(True, True)]),
        ("datatable(t:datetime)[] | summarize isnull(avg(t)), isnull(avgif(t, true))", [(True, True)]),
        (
            "datatable(s:timespan)[0.000001s, 0.000002s, 20000000s] | summarize avg(s) / 1s",
            [(6666666.666667,)],
        ),
        (
            "print trim('-', '--a--'), trim('-+', '--a--'), trim_start('-', '--a'), trim('--', '--a--')",
            [("-a-", "a", "-a", "a")],
        ),
    ],
)
def test_answers(session: KqlSession, text: str, rows: list[tuple[Any, ...]]) -> None:
    assert [tuple(map(_shown, row)) for row in session.kql(text)] == rows


@pytest.mark.parametrize(
    ("text", "name", "place"),
    [
        ("T | extend x = hash(k)", "hash", (1, 16)),
        ("print a = 1, a = 2", "print", (1, 1)),
        ("T | extend r = row_number()", "row_number", (1, 16)),
        ("T | sort by n | summarize c = count() by k | extend r = prev(c)", "prev", (1, 57)),
        ("T | summarize (x, y) = percentiles(n, 5, 95)", "(names) = expression", (1, 15)),
        ("T\n| mv-apply x = words on (take 1)", "mv-apply", (2, 3)),
        ("T | top-nested 2 of k by sum(n)", "top-nested", (1, 5)),
        ("T | evaluate bag_unpack(k)", "evaluate", (1, 5)),
        ("T | scan with (step s: true;)", "scan", (1, 5)),
        ("T | reduce by k", "reduce", (1, 5)),
        ("T | join (T | as X | take 1) on k | join (X) on k", "as", (1, 15)),
        ("T | extend x = datetime_part('nanosecond', now())", "datetime_part", (1, 16)),
        ("let f = (a:long) { a }; print f(b = 1)", "f", (1, 31)),
        ("T | extend x = strlen(a = k)", "strlen", (1, 16)),
        ("T | extend x = row_window_session(n, 1, 1)", "row_window_session", (1, 16)),
        ("T | project-rename k = n", "project-rename", (1, 5)),
        ("T | project-rename x = n, x = k", "project-rename", (1, 5)),
        ("let f = (A:(n:long)) { A | count }; f(T)", "f", (1, 10)),
        ("let f = (A:(*)) { A | count }; T | invoke f()", "f", (1, 10)),
        ("T | take -1", "take", (1, 10)),
        ("T | limit 'a'", "limit", (1, 11)),
        ("T | take 1.5", "take", (1, 10)),
        ("print 1.5ms", "1.5ms", (1, 7)),
        ("T | parse words with v '=' w", "parse", (1, 22)),
        ("T | make-series sum(n) on n in range(1, 5, 1)", "make-series … in range(…)", (1, 5)),
        ("T | summarize count(n)", "count", (1, 15)),
        ("T | join (T) on n == k", "join key", (1, 17)),
        ("T | join (T) on $left.n == $right.n or $left.k == $right.k", "join key", (1, 17)),
    ],
)
def test_refusals_name_what_and_where(
    session: KqlSession, text: str, name: str, place: tuple[int, int]
) -> None:
    with pytest.raises(UnsupportedKqlError) as caught:
        session.kql(text)
    assert name in caught.value.operator
    assert (caught.value.line, caught.value.column) == place


def test_percentiles_with_fractions_have_their_documented_names(session: KqlSession) -> None:
    query = "T | summarize percentile(n, 99.9), percentiles(n, 0.5, 50), p = percentile(n, 2.5)"
    names = [column.name for column in session.columns(query)]
    assert names == ["percentile_n_99_9", "percentile_n_0_5", "percentile_n_50", "p"]


@pytest.mark.parametrize("step", ["0s", "-1s", "timespan(null)"])
def test_a_series_without_steps_forwards_is_an_error_and_not_empty(step: str) -> None:
    with pytest.raises(LazyDeltaError, match="step is not greater than 0"):
        list(run_kql(f"print t = datetime(2026-01-01) | make-series count() on t step {step}", {}))


def test_a_series_of_too_many_steps_is_an_error_and_not_cut() -> None:
    text = "print t = datetime(2026-01-01) | make-series count() on t from {} to {} step 1s"
    long = text.format("datetime(2026-01-01)", "datetime(2026-02-01)")
    with pytest.raises(LazyDeltaError, match="more than 1048576 steps"):
        list(run_kql(long, {}))
    before_mb = status_kb("VmHWM") / 1024
    with pytest.raises(LazyDeltaError, match="more than 1048576 steps"):
        list(run_kql(text.format("datetime(1900-01-01)", "datetime(2026-02-01)"), {}))
    assert status_kb("VmHWM") / 1024 - before_mb < 300, "so many steps are not made to be counted"
    result = run_kql(text.format("datetime(2026-01-01)", "datetime(2026-01-01 00:00:03)"), {})
    assert answer(result)[1][0][0] == [1, 0, 0]


def test_the_library_is_as_it_was_after_a_translation() -> None:
    from duckdb_kql import KqlUnsupportedError, lower, to_sql
    from duckdb_kql.translate.functions import SCALAR_FUNCTIONS

    before = (lower._lower_operator, dict(SCALAR_FUNCTIONS))
    with extended():
        assert "set_union" in SCALAR_FUNCTIONS
        assert lower._lower_operator is not before[0]
    assert (lower._lower_operator, dict(SCALAR_FUNCTIONS)) == before
    with pytest.raises(KqlUnsupportedError):
        to_sql("print set_union(dynamic([1]), dynamic([2]))")


def _shown(value: Any) -> Any:  # Any: a value
    return {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}.get(str(value), value)


def test_the_deprecated_lists_are_short_unless_they_are_told_a_size(session: KqlSession) -> None:
    lists = "makelist(x), makeset(x), makelist(x, 200), make_list(x), make_set(x)"
    lengths = lists.replace("mak", "array_length(mak").replace(")", "))")
    query = f"range x from 1 to 300 step 1 | summarize {lengths}"
    assert session.kql(query) == [(128, 128, 200, 300, 300)]
