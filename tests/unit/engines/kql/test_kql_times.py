"""Parts of times, differences, formats and times in text, as Kusto documents them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from lazydelta.engines.kql.errors import UnsupportedKqlError
from tests.support.kql_cases import answer
from tests.support.kql_session import KqlSession, kql_session


@pytest.fixture(scope="module")
def session() -> Iterator[KqlSession]:
    with kql_session() as made:
        yield made


def _one(session: KqlSession, expression: str) -> Any:  # Any: a value
    return answer(session.result(f"print x = {expression}"))[1][0][0]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("datetime_part('millisecond', datetime(2017-10-30 01:02:03.765432))", 765),
        ("datetime_part('microsecond', datetime(2017-10-30 01:02:03.765432))", 765432),
        ("datetime_diff('week', datetime(2017-10-29), datetime(2017-09-30 23:59))", 5),
        ("datetime_diff('week', datetime(2017-09-30 23:59), datetime(2017-10-29))", -5),
        ("datetime_diff('week', datetime(2024-01-07), datetime(2024-01-06 23:59))", 1),
        ("datetime_diff('week', datetime(2024-01-08), datetime(2024-01-07))", 0),
        ("make_datetime(2017, 13, 1)", None),
        ("make_datetime(2017, 2, 29)", None),
        ("make_datetime(2017, 1, 1, 25, 0)", None),
        ("make_datetime(10000, 1, 1)", None),
        ("make_datetime(2017, 1, 1, 0, 0, 60)", None),
        ("make_datetime(2017, 1, 1, 0, 0, 1.001)", "2017-01-01T00:00:01.0010000Z"),
        ("make_timespan(1, 12, 30, 55.123)", "1.12:30:55.1230000"),
        ("make_timespan(12, 30)", "12:30:00"),
        ("make_timespan(12, 30, 5)", "12:30:05"),
        ("make_timespan(24, 0)", None),
        ("make_timespan(1, 60)", None),
    ],
)
def test_answers(session: KqlSession, expression: str, value: Any) -> None:
    assert _one(session, expression) == value


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2014-05-25T08:20:03.123456Z", "2014-05-25T08:20:03.1234560Z"),
        ("2014-11-08 15:55:55+02:00", "2014-11-08T13:55:55.0000000Z"),
        ("2014-05-25T08:20", "2014-05-25T08:20:00.0000000Z"),
        ("2014-11-08", "2014-11-08T00:00:00.0000000Z"),
        ("Sat, 8 Nov 14 15:05:02 GMT", "2014-11-08T15:05:02.0000000Z"),
        ("Sat, 8 Nov 14 15:05", "2014-11-08T15:05:00.0000000Z"),
        ("8 Nov 14 15:05:02", "2014-11-08T15:05:02.0000000Z"),
        ("Sat, 8 Nov 2014 15:05:02 GMT", "2014-11-08T15:05:02.0000000Z"),
        ("Saturday, 08-Nov-14 15:05:02 GMT", "2014-11-08T15:05:02.0000000Z"),
        ("Saturday, 08-Nov-14 15:05", "2014-11-08T15:05:00.0000000Z"),
        ("08-Nov-99 15:05:02", "1999-11-08T15:05:02.0000000Z"),
        ("12-02-2022", "2022-12-02T00:00:00.0000000Z"),
        ("13-01-2022", None),
        ("12-02-22", None),
        ("14-11-08", None),
        ("8 Nov 44 15:05:02", None),
        ("0000-01-01", None),
        ("12345-01-01", None),
        ("infinity", None),
        ("2014-11-08 15:55:55 Europe/Paris", None),
        ("", None),
    ],
)
def test_a_time_in_text_is_read_in_a_known_form_or_null(
    session: KqlSession, text: str, moment: str | None
) -> None:
    assert _one(session, f"todatetime('{text}')") == moment
    assert _one(session, f"todatetime(dynamic('{text}'))") == moment


@pytest.mark.parametrize(
    "run", ["MMM", "MMMM", "ddd", "hhh", "HHH", "mmm", "sss", "yyy", "yyyyy", "t", "ffffffff"]
)
def test_a_format_with_a_part_that_kusto_lacks_is_refused(session: KqlSession, run: str) -> None:
    with pytest.raises(UnsupportedKqlError, match=f"{run} is no part of a format") as caught:
        session.kql(f"print format_datetime(datetime(2024-01-02), 'yyyy-{run}')")
    assert (caught.value.line, caught.value.column) == (1, 7)
