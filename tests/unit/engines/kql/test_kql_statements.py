"""Options, parameters, `render` and reports."""

from __future__ import annotations

import datetime as dt
import threading

import msgspec
import pytest

from lazydelta.engines.kql.catalog import KqlCatalog
from lazydelta.engines.kql.errors import KqlError
from lazydelta.engines.kql.translate import translate
from tests.unit.engines.kql.conftest import Ask

_NOTHING = KqlCatalog({})


def test_options_are_told_and_the_query_runs() -> None:
    text = (
        "set notruncation; set truncationmaxrecords = 5; set query_explain=true; set a_name = 'b';\nprint 1"
    )
    translated = translate(text, _NOTHING)
    assert translated.settings == {
        "notruncation": True,
        "truncationmaxrecords": 5,
        "query_explain": True,
        "a_name": "b",
    }


def test_query_now_sets_the_moment_for_the_whole_query(ask: Ask) -> None:
    ((one, two),) = ask("set query_now = datetime(2026-02-10 12:00); print now(), ago(1h)").fetchall()
    assert one == dt.datetime(2026, 2, 10, 12, tzinfo=dt.UTC)
    assert two == dt.datetime(2026, 2, 10, 11, tzinfo=dt.UTC)
    with ask("set query_now = datetime(2026-02-11); T | where timestamp > ago(1h)") as found:
        assert found.read_all().num_rows == 59
        assert found.report().files_read == 1


def test_records_are_limited_by_an_option(ask: Ask) -> None:
    assert ask("set query_take_max_records = 3; T").read_all().num_rows == 3


@pytest.mark.parametrize(
    ("drawn", "expected"),
    [
        ("render timechart", {"Visualization": "timechart", "Title": None}),
        ("render piechart with (title='a b')", {"Visualization": "piechart", "Title": "a b"}),
        (
            'render timechart with (ycolumns = a, b, xtitle = "x", ymin=0, legend=hidden)',
            {"YColumns": "a,b", "XTitle": "x", "Ymin": 0, "Legend": "hidden"},
        ),
        ("render columnchart kind=stacked", {"Visualization": "columnchart", "Kind": "stacked"}),
    ],
)
def test_render_is_passed_through(ask: Ask, drawn: str, expected: dict[str, object]) -> None:
    with ask(f"T | summarize a = count() by device_id | {drawn}") as found:
        told = found.visualization
        assert found.read_all().num_rows == 6
    assert told is not None
    assert {name: told[name] for name in expected} == expected


def test_without_render_nothing_is_drawn(ask: Ask) -> None:
    assert ask("print 1").visualization is None


@pytest.mark.parametrize(
    ("kind", "text", "literal"),
    [
        ("long", "5", "5"),
        ("long", "long(5)", "5"),
        ("int", "5", "int(5)"),
        ("real", "1.5", "1.5"),
        ("bool", "true", "true"),
        ("string", "a ' \" | take 1 //", "'a \\' \" | take 1 //'"),
        ("datetime", "2026-02-10T01:02:03Z", "datetime(2026-02-10 01:02:03)"),
        ("datetime", "datetime(2026-02-10)", "datetime(2026-02-10)"),
        ("timespan", "1h", "1h"),
        ("timespan", "time(00:30:00)", "30m"),
    ],
)
def test_parameters_have_the_types_that_are_declared(ask: Ask, kind: str, text: str, literal: str) -> None:
    query = f"declare query_parameters(p:{kind}); print p == {literal}"
    assert ask(query, parameters={"p": text}).fetchall() == [(True,)]


def test_parameters_prune_as_constants_do(ask: Ask) -> None:
    query = (
        "declare query_parameters(since:datetime, n:long = 1383); T | where timestamp >= since and number < n"
    )
    with ask(query, parameters={"since": "datetime(2026-02-10 23:00)"}) as found:
        assert found.read_all().num_rows == 3
        assert found.report().files_read == 1


@pytest.mark.parametrize(
    ("query", "given", "what"),
    [
        ("declare query_parameters(n:long); print n", {}, "has no value"),
        ("declare query_parameters(n:long); print n", {"n": "x"}, "is no long"),
        ("print 1", {"n": "1"}, "declares no parameter 'n'"),
    ],
)
def test_parameters_that_do_not_fit_are_refused(
    ask: Ask, query: str, given: dict[str, str], what: str
) -> None:
    with pytest.raises(KqlError, match=what):
        ask(query, parameters=given)


def test_the_report_tells_sql_predicate_row_groups_and_bytes(ask: Ask) -> None:
    with ask("T | where timestamp >= datetime(2026-02-10 23:00) | project number") as found:
        before = found.report()
        assert (before.row_groups_read, before.data_bytes_read) == (0, 0)
        found.read_all()
        report = found.report()
    assert report.sql.startswith("with ")
    assert report.pushed == ["""T: "timestamp" >= timestamptz '2026-02-10 23:00:00+00'"""]
    assert (report.files_read, report.row_groups_read) == (1, 1)
    assert 0 < report.data_bytes_read < 10_000
    text = str(report)
    for word in ("SQL", "pushed", "1 row groups of 1 files", "bytes"):
        assert word in text
    assert msgspec.json.decode(msgspec.json.encode(report))["row_groups_read"] == 1


def test_a_query_that_runs_can_be_ended_from_another_thread(ask: Ask) -> None:
    found = ask("range x from 1 to 100000000 step 1 | summarize count() by x % 1000003")
    timer = threading.Timer(0.3, found.close)
    timer.start()
    with pytest.raises(Exception, match="closed before its end"):
        found.read_all()
    timer.join()


def test_what_is_left_ends_the_query(ask: Ask) -> None:
    with ask("range x from 1 to 100000000 step 1") as found:
        assert next(found).num_rows > 0
