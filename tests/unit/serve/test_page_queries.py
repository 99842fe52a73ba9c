"""Queries of the web page: rows as they come, in both languages, within its limits, cancelled, explained."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import pytest
from deltalake import write_deltalake

import lazydelta as ld
from lazydelta import limits
from tests.support import kusto
from tests.support.kusto_tables import TYPES
from tests.support.page import SECONDS, error, machines_table, post, query
from tests.support.row_tables import eventually
from tests.support.serving import RunningServer, running_server

ENDLESS = "select count(*) from range(100000000000) as t(a) where a % 7 = 1"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    return machines_table(tmp_path_factory.mktemp("tables"), days=3)


@pytest.fixture(scope="module")
def served(url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("config")
    write_deltalake(folder / "types", TYPES)
    tables = {"machines": url, "types": str(folder / "types")}
    with running_server(folder, tables, "[limits]\nscans_per_client = 3\n") as server:
        yield server


@contextmanager
def asking(server: RunningServer, language: str, text: str) -> Iterator[None]:
    """A client that has asked, and goes at the end of the block without an answer."""
    with closing(http.client.HTTPConnection("127.0.0.1", server.ports.http, timeout=SECONDS)) as client:
        body = json.dumps({"language": language, "text": text})
        client.request("POST", "/ui/api/query", body, {"content-type": "application/json"})
        yield


def test_both_languages_give_the_rows_that_the_library_gives(served: RunningServer, url: str) -> None:
    sql = "select machine, count(*) as n from machines where _event_hour < '2026020600' group by 1 order by 1"
    kql = (
        "machines | where _event_hour < '2026020600' | summarize n=count() by machine | order by machine asc"
    )
    whole = ld.open(url).sql(sql.replace("machines", "t")).read_all()
    expected = [list(row.values()) for row in whole.to_pylist()]
    for language, text in (("sql", sql), ("kql", kql)):
        columns, rows, end = query(served, language, text)
        assert (columns, rows) == (["machine", "n"], expected), language
        assert (end["rows"], end["error"], end["is_cut"]) == (len(expected), None, False)


def test_every_type_is_shown_without_loss(served: RunningServer) -> None:
    columns, rows, _ = query(served, "sql", "select * from types")
    found = [dict(zip(columns, row, strict=True)) for row in rows]
    assert [row["l"] for row in found] == [2**53 + 1, -(2**63), None]
    assert [row["d"] for row in found] == ["1.10", "-0.01", None]
    assert found[0]["t"] == "1970-01-01T00:00:00.000000Z"
    assert [row["s"] for row in found] == ['a"b\\c', "é\n😀", None]
    assert found[0]["n"] == {"x": 1, "y": ["a"]}
    _, ((value, many),), _ = query(served, "sql", "select 'nan'::double, 12345678901234567890123::hugeint")
    assert value == "NaN"
    assert str(many).startswith("12345678901234567890123") or float(many) == 12345678901234567890123.0


def test_the_end_of_a_query_explains_it(served: RunningServer) -> None:
    for language, text in (
        ("sql", "select * from machines where _event_hour >= '2026020600' limit 5"),
        ("kql", "machines | where _event_hour >= '2026020600' | take 5"),
    ):
        _, rows, end = query(served, language, text)
        told = end["explain"]
        assert len(rows) == 5
        assert 0 < end["first_row_ms"] <= end["elapsed_ms"]
        assert any("2026020600" in condition for condition in told["pushed"])
        assert told["requests"] >= 1
        assert told["data_bytes"] > 0
        assert told["tables"][0]["name"] == "machines"
        assert (told["sql"] is None) == (language == "sql")


@pytest.mark.parametrize("language", ["sql", "kql"])
def test_a_long_result_is_cut_and_says_so(
    served: RunningServer, monkeypatch: pytest.MonkeyPatch, language: str
) -> None:
    monkeypatch.setattr(limits, "PAGE_RECORDS_MAX", 3000)
    text = {"sql": "select * from range(10000) as t(a)", "kql": "range a from 1 to 10000 step 1"}[language]
    _, rows, end = query(served, language, text)
    assert (len(rows), end["rows"], end["is_cut"], end["error"]) == (3000, 3000, True, None)


def test_what_breaks_off_a_query_is_told_at_its_end_or_with_a_status(served: RunningServer) -> None:
    answer = post(served, "query", language="sql", text="select machine,\n nothing from machines")
    assert (answer.status_code, error(answer)["line"], error(answer)["column"]) == (400, 2, 2)
    text = "select case when a > 50000 then error('so far') else a end from range(100000) as t(a)"
    answer = post(served, "query", language="sql", text=text)
    assert "so far" in answer.text
    refused = error(post(served, "query", language="sql", text="select * from read_csv('/etc/passwd')"))
    assert "read_csv" in refused["message"]
    assert "/etc" not in refused["message"] + refused["fix"]
    assert post(served, "query", language="sql", text="delete from machines").status_code in (400, 501)
    assert post(served, "query", language="kql", text=".show tables").status_code == 400


@pytest.mark.parametrize("language", ["sql", "kql"])
def test_who_goes_away_ends_the_query(served: RunningServer, language: str) -> None:
    text = ENDLESS if language == "sql" else kusto.ENDLESS
    admission = served.process.served.admission
    with asking(served, language, text):
        assert eventually(lambda: bool(admission.running()))
    assert eventually(lambda: not admission.running())


def test_one_query_too_many_is_refused_by_the_limit(url: str, tmp_path: Path) -> None:
    more = "[limits]\nscans_per_client = 1\nwaiting_seconds = 0.2\n"
    with running_server(tmp_path, {"machines": url}, more) as server:
        admission = server.process.served.admission
        with asking(server, "sql", ENDLESS):
            assert eventually(lambda: bool(admission.running()))
            answer = post(server, "query", language="sql", text="select 1")
            assert (answer.status_code, error(answer)["code"]) == (429, "LimitReached")
        assert eventually(lambda: not admission.running())


def test_the_page_is_in_the_access_log_and_the_numbers(served: RunningServer) -> None:
    query(served, "sql", "select 1")
    query(served, "kql", "print 1")
    numbers = httpx.get(f"{served.http_url}/metrics", timeout=SECONDS).text
    assert 'lazydelta_calls_total{protocol="page",method="query",status="ok"}' in numbers


def test_rows_come_before_the_query_has_ended(served: RunningServer) -> None:
    body = {"language": "sql", "text": "select a.at from machines a, machines b, machines c"}
    with httpx.stream("POST", f"{served.http_url}/ui/api/query", json=body, timeout=SECONDS) as answer:
        assert next(answer.iter_lines()) == "event: columns"
