"""KQL gives what SQL that was written by hand gives: over random rows, with nulls, and over none."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.hypothesis_profile import examples
from tests.support.kql_session import KqlSession, kql_session

SCHEMA = pa.schema(
    [
        ("k", pa.string()),
        ("n", pa.int64()),
        ("g", pa.int32()),
        ("r", pa.float64()),
        ("t", pa.timestamp("us", "UTC")),
        ("b", pa.bool_()),
    ]
)
YEAR_ONE = 62_135_596_800_000_000  # microseconds before 1970, from which Kusto counts bins
# KQL, and SQL for the same rows; a text that is null in a table is empty in KQL.
T = "(SELECT coalesce(k, '') AS k, n, g, r, t::TIMESTAMP AS t, b FROM T)"
U = "(SELECT coalesce(k, '') AS k, n, g, r, t::TIMESTAMP AS t, b FROM U)"
SHOWN = "k, n, g, r, t AT TIME ZONE 'UTC', b"
LEFT, RIGHT = "l.k, l.n", "r.k, r.n"
PAIRS = {
    "T": f"SELECT {SHOWN} FROM {T}",
    "T | where n > 1": f"SELECT {SHOWN} FROM {T} WHERE n > 1",
    "T | where k == 'a'": f"SELECT {SHOWN} FROM {T} WHERE k = 'a'",
    "T | where k != 'a'": f"SELECT {SHOWN} FROM {T} WHERE k <> 'a'",
    "T | where k =~ 'A'": f"SELECT {SHOWN} FROM {T} WHERE lower(k) = 'a'",
    "T | where k in ('a', 'b')": f"SELECT {SHOWN} FROM {T} WHERE k IN ('a', 'b')",
    "T | where k !in ('a', 'b')": f"SELECT {SHOWN} FROM {T} WHERE k NOT IN ('a', 'b')",
    "T | where n != 1": f"SELECT {SHOWN} FROM {T} WHERE n IS DISTINCT FROM 1",
    "T | where isnull(n)": f"SELECT {SHOWN} FROM {T} WHERE n IS NULL",
    "T | where isempty(k) or isnotnull(r)": f"SELECT {SHOWN} FROM {T} WHERE k = '' OR r IS NOT NULL",
    "T | where n between (0 .. 2)": f"SELECT {SHOWN} FROM {T} WHERE n BETWEEN 0 AND 2",
    "T | where not(b)": f"SELECT {SHOWN} FROM {T} WHERE NOT b",
    "T | where b and n > 0": f"SELECT {SHOWN} FROM {T} WHERE b AND n > 0",
    "T | where t >= datetime(2026-01-02)": f"SELECT {SHOWN} FROM {T} WHERE t >= TIMESTAMP '2026-01-02'",
    "T | project n, x = n + g, y = r * 2": f"SELECT n, n + g, r * 2 FROM {T}",
    "T | project s = g + g, p = g * g, m = -g": f"SELECT g + g, g * g, -g FROM {T}",
    "T | project q = n / 2, m = n % 2": f"SELECT n // 2, ((n % 2) + 2) % 2 FROM {T}",
    "T | project z = n / 0": f"SELECT NULL::BIGINT FROM {T}",
    "T | extend n = coalesce(n, 7) | project n": f"SELECT coalesce(n, 7) FROM {T}",
    "T | extend c = case(n > 1, 'high', n < 1, 'low', 'one') | project c": (
        f"SELECT CASE WHEN n > 1 THEN 'high' WHEN n < 1 THEN 'low' ELSE 'one' END FROM {T}"
    ),
    "T | extend c = iff(b, n, long(null)) | project c": f"SELECT CASE WHEN b THEN n END FROM {T}",
    "T | project bin(n, 2)": f"SELECT CAST(floor(n / 2.0) AS BIGINT) * 2 FROM {T}",
    "T | project bin(t, 1h)": f"SELECT date_trunc('hour', t) AT TIME ZONE 'UTC' FROM {T}",
    "T | project bin(t, 7ms)": (
        f"SELECT make_timestamp((epoch_us(t) + {YEAR_ONE}) // 7000 * 7000 - {YEAR_ONE}) "
        f"AT TIME ZONE 'UTC' FROM {T}"
    ),
    "T | project startofday(t)": f"SELECT date_trunc('day', t) AT TIME ZONE 'UTC' FROM {T}",
    "T | project d = datetime_diff('hour', t, datetime(2026-01-01))": (
        f"SELECT date_diff('hour', TIMESTAMP '2026-01-01', t) FROM {T}"
    ),
    "T | count": f"SELECT count(*) FROM {T}",
    "T | summarize count(), sum(n), max(r), min(g) by k": (
        f"SELECT k, count(*), coalesce(sum(n), 0), max(r), min(g) FROM {T} GROUP BY k"
    ),
    "T | summarize avg(n), dcount(k), countif(b)": (
        f"SELECT coalesce(avg(n), 'NaN'::DOUBLE), count(DISTINCT k), count(*) FILTER (b) FROM {T}"
    ),
    "T | summarize sumif(n, b), avgif(r, b), minif(n, b), maxif(n, b), dcountif(k, b)": (
        "SELECT coalesce(sum(n) FILTER (b), 0), coalesce(avg(r) FILTER (b), 'NaN'::DOUBLE), "
        f"min(n) FILTER (b), max(n) FILTER (b), count(DISTINCT k) FILTER (b) FROM {T}"
    ),
    "T | summarize max(k), min(k)": f"SELECT coalesce(max(k), ''), coalesce(min(k), '') FROM {T}",
    "T | summarize percentile(n, 50), percentiles(r, 25, 75)": (
        f"SELECT quantile_disc(n, 0.5), quantile_disc(r, 0.25), quantile_disc(r, 0.75) FROM {T}"
    ),
    "T | summarize stdev(n), variance(n), stdevp(n), variancep(n)": (
        "SELECT coalesce(stddev_samp(n), 0), coalesce(var_samp(n), 0), coalesce(stddev_pop(n), 0), "
        f"coalesce(var_pop(n), 0) FROM {T}"
    ),
    "T | summarize c = count() by bin(t, 1d), b": (
        f"SELECT date_trunc('day', t) AT TIME ZONE 'UTC', b, count(*) FROM {T} GROUP BY ALL"
    ),
    "T | distinct k, b": f"SELECT DISTINCT k, b FROM {T}",
    "T | distinct *": f"SELECT DISTINCT {SHOWN} FROM {T}",
    "T | union U | project k, n": f"SELECT k, n FROM {T} UNION ALL SELECT k, n FROM {U}",
    "T | project k | union (U | project n)": (
        f"SELECT k, NULL::BIGINT FROM {T} UNION ALL SELECT '', n FROM {U}"
    ),
    **{
        f"T | project k, n | join kind={kind} (U | project k, n) on k": sql
        for kind, sql in {
            "inner": f"SELECT {LEFT}, {RIGHT} FROM {T} l JOIN {U} r ON l.k = r.k",
            "leftouter": f"SELECT {LEFT}, coalesce(r.k, ''), r.n FROM {T} l LEFT JOIN {U} r ON l.k = r.k",
            "rightouter": f"SELECT coalesce(l.k, ''), l.n, {RIGHT} FROM {T} l RIGHT JOIN {U} r ON l.k = r.k",
            "fullouter": (
                "SELECT coalesce(l.k, ''), l.n, coalesce(r.k, ''), r.n "
                f"FROM {T} l FULL JOIN {U} r ON l.k = r.k"
            ),
            "leftsemi": f"SELECT k, n FROM {T} WHERE k IN (SELECT k FROM {U})",
            "leftanti": f"SELECT k, n FROM {T} WHERE k NOT IN (SELECT k FROM {U})",
            "rightsemi": f"SELECT k, n FROM {U} WHERE k IN (SELECT k FROM {T})",
            "rightanti": f"SELECT k, n FROM {U} WHERE k NOT IN (SELECT k FROM {T})",
        }.items()
    },
    "T | project k | join (U | project k, n) on k | project k1, n": (
        f"SELECT k, n FROM {U} WHERE k IN (SELECT k FROM {T})"
    ),
    "T | project n, b | join kind=inner (U | project n, g) on n": (
        f"SELECT l.n, l.b, r.n, r.g FROM {T} l JOIN {U} r ON l.n IS NOT DISTINCT FROM r.n"
    ),
    "T | project k, n | lookup (U | project k, g) on k": (
        f"SELECT l.k, l.n, r.g FROM {T} l LEFT JOIN {U} r ON l.k = r.k"
    ),
    "T | where k in (U | project k) | project k": f"SELECT k FROM {T} WHERE k IN (SELECT k FROM {U})",
    "T | where n > toscalar(U | summarize max(n)) | project n": (
        f"SELECT n FROM {T} WHERE n > (SELECT max(n) FROM {U})"
    ),
    "let X = T | where b; X | union (X | take 0) | project n": f"SELECT n FROM {T} WHERE b",
    "T | extend l = pack_array(n, g) | mv-expand l to typeof(long) | project l": (
        f"SELECT unnest([n, g::BIGINT]) FROM {T}"
    ),
    "T | project strcat(k, '-', n)": f"SELECT k || '-' || coalesce(n::VARCHAR, '') FROM {T}",
    "T | project tostring(b), tolong(r), toreal(n)": (
        "SELECT CASE b WHEN true THEN 'True' WHEN false THEN 'False' ELSE '' END, "
        "trunc(r)::BIGINT, n::DOUBLE "
        f"FROM {T}"
    ),
    "T | where k has 'a' or k contains 'B' or k startswith 'c'": (
        f"SELECT {SHOWN} FROM {T} WHERE lower(k) = 'a' OR lower(k) LIKE '%b%' OR lower(k) LIKE 'c%'"
    ),
    "T | project strlen(k), toupper(k), substring(k, 1)": (
        f"SELECT length(k), upper(k), substring(k, 2) FROM {T}"
    ),
    "T | project-away t, r, b | project-rename m = n": f"SELECT k, n, g FROM {T}",
    "T | project-keep n, k": f"SELECT k, n FROM {T}",
    "T | project-reorder n, k": f"SELECT n, k, g, r, t AT TIME ZONE 'UTC', b FROM {T}",
}
ORDERED = {
    "T | sort by n asc, g desc, r asc, k asc, t asc, b asc": (
        f"SELECT {SHOWN} FROM {T} ORDER BY n ASC NULLS FIRST, g DESC NULLS LAST, r ASC NULLS FIRST, k ASC, "
        "t ASC NULLS FIRST, b ASC NULLS FIRST"
    ),
    "T | top 3 by n | project n": f"SELECT n FROM {T} ORDER BY n DESC NULLS LAST LIMIT 3",
    "T | top 3 by n asc nulls last | project n": f"SELECT n FROM {T} ORDER BY n ASC NULLS LAST LIMIT 3",
    "T | project n | sort by n asc "
    "| extend i = row_number(), p = prev(n), q = next(n, 1, 9), s = row_cumsum(n)": (
        "SELECT n, row_number() OVER w, lag(n) OVER w, lead(n, 1, 9) OVER w, sum(n) OVER w "
        f"FROM (SELECT n, row_number() OVER (ORDER BY n ASC NULLS FIRST) AS i FROM {T}) "
        "WINDOW w AS (ORDER BY i) ORDER BY i"
    ),
    "T | project g | sort by g asc | extend d = row_rank_dense(g), m = row_rank_min(g)": (
        "SELECT g, dense_rank() OVER (ORDER BY g NULLS FIRST), rank() OVER (ORDER BY g NULLS FIRST) "
        f"FROM {T} ORDER BY g NULLS FIRST"
    ),
    "T | project k, n | sort by k asc, n asc | extend i = row_number(1, prev(k) != k)": (
        "SELECT k, n, row_number() OVER (PARTITION BY k ORDER BY n NULLS FIRST) "
        f"FROM {T} ORDER BY k, n NULLS FIRST"
    ),
}
_MOMENT = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
_ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "k": st.sampled_from(["a", "b", "A", "", "cab", "b c", None]),
            "n": st.sampled_from([-3, -1, 0, 1, 2, 3, 2**40, None]),
            "g": st.sampled_from([0, 1, 2, None]),
            "r": st.sampled_from([-1.5, 0.0, 0.5, 2.25, None]),
            "t": st.integers(0, 3 * 86_400_000_000).map(lambda us: _MOMENT + dt.timedelta(microseconds=us))
            | st.none(),
            "b": st.sampled_from([True, False, None]),
        }
    ),
    max_size=9,
)


@pytest.fixture(scope="module")
def session() -> Iterator[KqlSession]:
    with kql_session() as made:
        yield made


@settings(max_examples=examples(4))  # each runs every pair
@given(left=_ROWS, right=_ROWS)
def test_kql_gives_what_sql_gives(
    session: KqlSession, left: list[dict[str, Any]], right: list[dict[str, Any]]
) -> None:
    _compare(session, left, right)


def test_kql_gives_what_sql_gives_over_no_rows(session: KqlSession) -> None:
    _compare(session, [], [])


def test_the_rows_of_a_large_table_are_numbered_in_its_order(session: KqlSession) -> None:
    count = 400_000
    rows = {name: [None] * count for name in SCHEMA.names}
    rows["n"] = [(number * 7919) % count for number in range(count)]
    session.give({"T": pa.table(rows, schema=SCHEMA), "U": SCHEMA.empty_table()})
    text = (
        "T | sort by n desc | extend i = row_number(), p = prev(n) "
        "| where i + n != 400000 or p != n + 1 and i > 1 | count"
    )
    assert session.kql(text) == [(0,)]


def test_a_list_of_sorted_rows_is_sorted_in_each_group(session: KqlSession) -> None:
    count = 300_000
    rows = {name: [None] * count for name in SCHEMA.names}
    rows["n"] = [(number * 7919) % count for number in range(count)]
    rows["g"] = [number % 7 for number in range(count)]
    session.give({"T": pa.table(rows, schema=SCHEMA), "U": SCHEMA.empty_table()})
    for order, is_reversed in (("asc", False), ("desc", True)):
        for (made,) in session.kql(f"T | sort by n {order} | summarize l = make_list(n) by g | project l"):
            numbers = json.loads(made)
            assert numbers == sorted(numbers, reverse=is_reversed)


def _compare(session: KqlSession, left: list[dict[str, Any]], right: list[dict[str, Any]]) -> None:
    session.give(
        {"T": pa.Table.from_pylist(left, schema=SCHEMA), "U": pa.Table.from_pylist(right, schema=SCHEMA)}
    )
    for text, sql in PAIRS.items():
        assert _sorted(session.kql(text)) == _sorted(session.sql(sql)), text
    for text, sql in ORDERED.items():
        assert _plain(session.kql(text)) == _plain(session.sql(sql)), text


def _plain(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [
        tuple("nan" if isinstance(value, float) and math.isnan(value) else value for value in row)
        for row in rows
    ]


def _sorted(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(_plain(rows), key=repr)
