"""Kusto's types decide: what may be compared and calculated, what NaN, decimals and timespans give."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lazydelta.engines.kql.errors import KqlError, UnsupportedKqlError
from tests.support.kql_session import KqlSession, kql_session

NAN, INF = float("nan"), float("inf")
_DAY = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
ROWS = pa.table(
    {
        "n": pa.array([1, 2, 3, 4, None], pa.int64()),
        "r": pa.array([NAN, None, -INF, 2.5, INF]),
        "s": pa.array(["x", None, "Zürich", "a", "b"]),
        "m": pa.array(
            [Decimal("1.50"), None, Decimal("2.25"), Decimal("-0.01"), Decimal(3)], pa.decimal128(20, 2)
        ),
        "t": pa.array([5_400_000_000, None, 60_000_000, -1, 0], pa.duration("us")),
        "at": pa.array([_DAY, None, _DAY + dt.timedelta(days=1), _DAY, _DAY], pa.timestamp("us", "UTC")),
        "i": pa.array([1, None, 2**31 - 1, 2, 3], pa.int32()),
        "ok": pa.array([True, None, False, True, False]),
        "d": pa.array([[1, 2], None, [3], [], [4]], pa.list_(pa.int64())),
    }
)
MISMATCHES = [
    ("T | where n", 11, "must have the type bool. It is long"),
    ("T | take 5 | where r", 20, "must have the type bool. It is real"),
    ("T | summarize x = sum(r) | where x == 'a'", 34, "Cannot compare values of types real and string"),
    ("datatable(a:long)[1] | where a == 'x'", 30, "types long and string"),
    (
        "T | extend x = d[0] + 1",
        16,
        "The operator '+' is not defined for the operand types dynamic and long.",
    ),
    ("T | where d[0] == d[1]", 11, "Cannot compare dynamic values without explicit cast"),
    ("T | extend x = s + s", 16, "operand types string and string"),
    ("T | extend x = s.x", 16, "source must be of type dynamic. Received a source of type string instead"),
    ("T | extend x = n[0]", 16, "source must be of type dynamic. Received a source of type long instead"),
    ("T | extend x = series_add(n, 2)", 16, "series_add() expects an array among its arguments"),
    ("T | extend x = max_of(n)", 16, "max_of() expects 2 arguments at least; it has 1"),
    ("T | extend x = strcat_delim(s, s)", 16, "strcat_delim() expects 3 arguments at least; it has 2"),
    ("T | make-series n on at step 1h", None, "make-series: an aggregate is expected"),
    ("T | extend x = at + 1", 16, "operand types datetime and long"),
    ("T | extend x = t + 1", 16, "operand types timespan and long"),
    ("T | extend x = ok and n", 16, "The operator 'and' is not defined for the operand types bool and long"),
    ("T | extend x = not(n)", 20, "A value of type bool expected"),
    ("T | extend x = -s", 16, "The operator '-' is not defined for the operand type string"),
    ("T | where n has 'x'", 11, "The operator 'has' is not defined for the operand types long and string"),
    ("T | where n in ('a')", 17, "types long and string"),
    ("T | where n in (T | project s)", 11, "types long and string"),
    ("T | where n between (1 .. 'a')", 11, "The operator 'between' is not defined"),
    ("T | extend x = iff(n, 1, 2)", 20, "A value of type bool expected by iff(). It is long."),
    ("T | extend x = iff(ok, 1, 'a')", 16, "No common type can be determined"),
    ("T | extend x = case(ok, n, s)", 16, "No common type can be determined"),
    ("T | extend x = bin(at, 1)", 16, "The function 'bin' is not compatible with arguments (datetime, long)"),
    ("T | extend x = startofday(s)", 27, "A value of type datetime expected by startofday()"),
    ("T | summarize sum(s)", 19, "expected by sum(). It is string"),
    ("T | summarize countif(n)", 23, "A value of type bool expected by countif()"),
    ("T | summarize max(d)", 19, "expected by max(). It is dynamic"),
    ("T | summarize count() by d", 26, "Summarize group key 'd' is of a 'dynamic' type"),
    ("T | distinct d", 14, "Distinct key 'd' is of a 'dynamic' type"),
    ("T | sort by d", 13, "the sort key is of a 'dynamic' type"),
    ("T | join kind=inner (T | project s = n) on s", 38, "types string and long don't match"),
    ("let x = 5; T\n| where s == x", 9, "types string and long"),
    ("T | extend x = substring(s, 'a')", 29, "A value of type int or long expected by substring()"),
    ("T | extend x = array_length(s)", 29, "A value of type dynamic expected by array_length()"),
    ("T | extend x = pow(s, 2)", 20, "expected by pow(). It is string"),
    ("T | mv-expand s", 15, "must have the type dynamic"),
    ("T | where d[0] > 'x'", 11, "types dynamic and string"),
    (
        "T | make-series count() on at step 5",
        28,
        "the axis is of the type datetime, its step of the type long",
    ),
    ("T | mv-expand d | where d + 1 > 2", 25, "operand types dynamic and long"),
    ("T | summarize m = max(s) | lookup (T | project m = s, n) on m | where m > 5", 71, "string and long"),
]


@pytest.fixture(scope="module")
def session() -> Iterator[KqlSession]:
    with kql_session() as made:
        made.give({"T": ROWS, "L": pa.table({"x": [1]}), "S": pa.table({"x": ["a"], "y": [2]})})
        yield made


@pytest.mark.parametrize(("text", "column", "what"), MISMATCHES, ids=[one[0] for one in MISMATCHES])
def test_types_that_do_not_go_together_are_refused_with_their_place(
    session: KqlSession, text: str, column: int | None, what: str
) -> None:
    with pytest.raises(KqlError) as wrong:
        session.kql(text)
    assert what in wrong.value.what
    assert (wrong.value.code, wrong.value.column) == ("SEM0064", column)


@pytest.mark.parametrize(
    ("order", "values"),
    [
        ("asc", [None, NAN, -INF, 2.5, INF]),
        ("desc", [INF, 2.5, -INF, NAN, None]),
        ("asc nulls last", [-INF, 2.5, INF, NAN, None]),
        ("desc nulls first", [None, NAN, INF, 2.5, -INF]),
    ],
)
def test_nan_stands_beside_null_in_an_order(
    session: KqlSession, order: str, values: list[float | None]
) -> None:
    for text in (f"T | sort by r {order} | project r", f"T | top 5 by r {order} | project r"):
        assert [_shown(value) for (value,) in session.kql(text)] == [_shown(value) for value in values]
    first = session.kql(f"T | summarize x = max(r) by n | top 2 by x {order} | project x")
    assert [_shown(value) for (value,) in first] == [_shown(value) for value in values[:2]]


@pytest.mark.parametrize(
    ("predicate", "numbers"),
    [
        ("r > 1", [4, None]),
        ("r >= r", [3, 4, None]),
        ("r == r", [3, 4, None]),
        ("r != r", [1]),
        ("r < real(nan)", []),
        ("1.0 < r", [4, None]),
        ("not(r > 1)", [1, 3]),
        ("r !between (0.0 .. 3.0)", [1, 3, None]),
        ("r between (-5.0 .. r)", [4, None]),
        ("real(nan) == real(nan)", []),
        ("todouble(tostring(r)) > 1", [4, None]),
    ],
)
def test_nan_compares_false_with_everything(
    session: KqlSession, predicate: str, numbers: list[int | None]
) -> None:
    found = [number for (number,) in session.kql(f"T | where {predicate} | project n")]
    assert sorted(found, key=str) == sorted(numbers, key=str)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("T | where n < 3 | summarize max(r), min(r)", [("nan", "nan")]),
        ("T | where n != 1 | summarize max(r), min(r)", [("inf", "-inf")]),
        ("T | where n in (1, 4) | summarize max(r), arg_max(r, n), maxif(r, ok)", [(2.5, 2.5, 4, 2.5)]),
        ("T | where n == 1 | summarize arg_max(r, n)", [("nan", 1)]),
        ("print bool(null) and true, bool(null) or true, bool(null) and false", [(False, True, False)]),
        ("T | where not(ok and true) | count", [(3,)]),
        ("print bin(7, -2), bin(7.5, -2), bin(7, 2), bin(1h, -1m), bin(-7, 2)", [(None, None, 6, None, -8)]),
        ("print 90m % 1h == 30m, -90m % 1h == 30m, 90m / 1h, 1h / 4 == 15m", [(True, True, 1.5, True)]),
        (
            "T | summarize s = sum(t), e = sumif(t, n > 9) | project s == 91m - 1microsecond, e == 0s",
            [(True, True)],
        ),
        (
            "T | where n == 1 | project t / 1h, t / t, t * 2 == 3h, abs(-t) == t, -t < 0s",
            [(1.5, 1.0, True, True, True)],
        ),
        ("T | where n < 4 | summarize avg(t) / 1m", [(45.5,)]),
        ("let hour = 1h; T | where n == 1 | project t / hour", [(1.5,)]),
        ("T | where n == 3 | project i + i, i * i, -i", [(4294967294, 4611686014132420609, -2147483647)]),
        ("T | where n == 3 | summarize x = max(i) | project x + x", [(4294967294,)]),
        ("print decimal(0.1) + decimal(0.2) == decimal(0.3), decimal(1.10) * 3", [(True, Decimal("3.30"))]),
        (
            "print todecimal('123456789012345678901234567890'), decimal(12345678901234567890123456789.01)",
            [(Decimal("123456789012345678901234567890"), Decimal("12345678901234567890123456789.01"))],
        ),
        ("T | summarize sum(m), max(m), min(m)", [(Decimal("6.74"), Decimal(3), Decimal("-0.01"))]),
        (
            "T | where n == 4 | project m + 1, m * 1.5, m == -0.01, m % 1, bin(m, 1), ceiling(m)",
            [(Decimal("0.99"), Decimal("-0.015"), True, Decimal("0.99"), Decimal(-1), Decimal(0))],
        ),
        (
            "datatable(x:decimal)[decimal(1.123456789012), decimal(2)]",
            [(Decimal("1.123456789012"),), (Decimal(2),)],
        ),
        ("union L, S | sort by y asc", [(1, "", None), (None, "a", 2)]),
        ("L | union S | where x_long == 1 | project x_long", [(1,)]),
        (
            "union (L | extend y = 'b'), S | project x_long, x_string, y_string, y_long | where y_long == 2",
            [(None, "a", "", 2)],
        ),
        ("T | where at < datetime(2026-01-02 00:00:00.0000001) | count", [(4,)]),
        ("T | where at >= datetime(2026-01-02 00:00:00.0000001) | count", [(0,)]),
        ("T | where at != datetime(2026-01-02 00:00:00.0000001) | count", [(5,)]),
        (
            "T | where at between (datetime(2026-01-01 00:00:00.0000001) .. datetime(2026-01-02)) | count",
            [(1,)],
        ),
        ("T | where at between (endofday(datetime(2025-12-31)) .. 1d) | count", [(3,)]),
        ("print datetime(2026) == datetime(2026-01-01)", [(True,)]),
    ],
)
def test_answers(session: KqlSession, text: str, rows: list[tuple[Any, ...]]) -> None:
    assert [tuple(map(_shown, row)) for row in session.kql(text)] == rows


@pytest.mark.parametrize(
    ("text", "column", "what"),
    [
        ("T | extend x = m / 3", 16, "the quotient of decimals"),
        ("T | extend x = m * r", 16, "a decimal with a real"),
        ("T | where m > r", 11, "a decimal with a real"),
        ("T | summarize avg(m)", 15, "avg of decimals"),
        ("T | extend x = round(m, 1)", 16, "round of decimals"),
        ("union kind=inner L, S", 1, "union"),
    ],
)
def test_what_could_not_be_exact_is_refused_by_its_name(
    session: KqlSession, text: str, column: int, what: str
) -> None:
    with pytest.raises(UnsupportedKqlError) as wrong:
        session.kql(text)
    assert what in wrong.value.operator
    assert wrong.value.column == column


def test_decimals_that_do_not_fit_are_errors_and_not_null(session: KqlSession) -> None:
    for digits in ("1234567890123456789012345", "0.1234567890123456789"):
        with pytest.raises(Exception, match="more digits than fit"):
            session.kql(f"print x = strcat('{digits}', '') | project todecimal(x)")
    assert session.kql("print x = strcat('a', '') | project todecimal(x)") == [(None,)]
    with pytest.raises(KqlError, match="more than 38 digits"):
        session.kql(f"print decimal({'1' * 39})")


@pytest.mark.parametrize(
    "literal",
    [
        *("datetime(2026-02)", "datetime(2026-13-01)", "datetime(abc)", "guid(abc)", "bool(abc)"),
        *("timespan(abc)", "long(abc)", "int(99999999999)", "decimal(abc)"),
    ],
)
def test_a_literal_that_is_none_is_refused_with_its_place(session: KqlSession, literal: str) -> None:
    with pytest.raises(KqlError) as wrong:
        session.kql(f"print x = {literal}")
    assert "could not be parsed as a literal of type" in wrong.value.what
    assert (wrong.value.code, wrong.value.line, wrong.value.column) == ("SYN0002", 1, 11)


@pytest.mark.parametrize(
    "text",
    [
        "2026-02-03",
        "2026-2-3",
        "2026-02-03 10:11",
        "2026-02-03T10:11:12.1234567Z",
        "2026-02-03T10:11:12+02:00",
        "2026-02-03 10:11:12 UTC",
        "20260203",
        "02/03/2026",
        "2026",
    ],
)
def test_a_literal_that_is_accepted_is_a_moment(session: KqlSession, text: str) -> None:
    assert session.kql(f"print isnotnull(datetime({text}))") == [(True,)]


def _shown(value: Any) -> Any:  # Any: a value
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
