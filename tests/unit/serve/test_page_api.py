"""What the web page asks of the server: tables, versions, files, and what a typed query would read."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from deltalake import DeltaTable, write_deltalake

import lazydelta as ld
from lazydelta import limits
from lazydelta.serve.page.file_map import FileMap
from lazydelta.serve.sign_in import token_digest
from tests.support.page import SECONDS, cells, error, events, get, machines_table, post, value_of
from tests.support.row_tables import eventually
from tests.support.serving import RunningServer, running_server

CLIENTS = "".join(
    f'[[clients]]\nname = "{name}"\ntoken_sha256 = "{token_digest(name + "-token")}"\nroles = ["{role}"]\n'
    for name, role in (("ann", "analysts"), ("ben", "others"))
)
ANN, BEN = ({"authorization": f"Bearer {name}-token"} for name in ("ann", "ben"))
LATE = "select * from machines where _event_hour >= '2026020900'"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    return machines_table(tmp_path_factory.mktemp("tables"))


@pytest.fixture(scope="module")
def served(url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with running_server(tmp_path_factory.mktemp("config"), {"machines": url}) as server:
        yield server


def test_the_page_and_its_files_may_load_nothing_from_elsewhere(served: RunningServer) -> None:
    page = httpx.get(served.http_url, follow_redirects=True, timeout=SECONDS)
    assert page.url.path == "/ui/"
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert page.headers["x-content-type-options"] == "nosniff"
    assert "http" not in page.text.replace("http-equiv", "")
    again = httpx.get(
        f"{served.http_url}/ui/", headers={"if-none-match": page.headers["etag"]}, timeout=SECONDS
    )
    assert (again.status_code, again.content) == (304, b"")
    script = httpx.get(f"{served.http_url}/ui/static/app.js", timeout=SECONDS)
    assert script.headers["content-type"] == "text/javascript; charset=utf-8"
    for name in ("nothing.js", "..%2froutes.py", "%2e%2e/routes.py", ""):
        assert httpx.get(f"{served.http_url}/ui/static/{name}", timeout=SECONDS).status_code == 404, name


def test_another_site_cannot_ask(served: RunningServer) -> None:
    assert get(served, "tables").status_code == 200
    assert get(served, "tables", **{"sec-fetch-site": "cross-site"}).status_code == 403
    assert get(served, "tables", **{"sec-fetch-site": "same-site"}).status_code == 403
    assert error(get(served, "tables", host="rebound.example"))["code"] == "Forbidden"
    assert get(served, "tables", host="localhost:1").status_code == 200
    plain = httpx.post(
        f"{served.http_url}/ui/api/query", content=b'{"language":"sql","text":"select 1"}', timeout=SECONDS
    )
    assert plain.status_code == 403


def test_who_may_not_read_a_table_does_not_find_it(url: str, tmp_path: Path) -> None:
    more = f'{CLIENTS}[tables.secret]\nurl = {json.dumps(url)}\nreaders = ["analysts"]\n'
    with running_server(tmp_path, {"machines": url}, more) as server:
        nobody = get(server, "tables")
        assert (nobody.status_code, nobody.headers["www-authenticate"]) == (401, "Bearer")
        assert get(server, "tables", authorization="Bearer wrong").status_code == 401
        seen = [[one["name"] for one in get(server, "tables", **who).json()["tables"]] for who in (ANN, BEN)]
        assert seen == [["machines", "secret"], ["machines"]]
        for path in ("tables/secret", "tables/secret/files", "tables/secret/versions", "tables/secret/news"):
            refused, absent = get(server, path, **BEN), get(server, path.replace("secret", "absent"), **BEN)
            assert refused.status_code == 404, path
            assert refused.text.replace("secret", "absent") == absent.text
        body = {"language": "sql", "text": "select * from secret"}
        assert post(server, "query", BEN, **body).status_code == 404
        assert post(server, "tables/machines/reads", BEN, **body).status_code == 404
        words = {"language": "sql", "text": "select * from s", "before": "select * from s"}
        assert post(server, "completions", BEN, **words).json()["candidates"] == []
        assert url not in "".join(get(server, path, **ANN).text for path in ("tables", "tables/secret"))


def test_facts_of_a_table_tell_its_schema_and_its_sidecar(served: RunningServer, url: str) -> None:
    found = get(served, "tables/machines").json()
    assert [column["name"] for column in found["columns"]] == ["machine", "celsius", "at", "_event_hour"]
    assert (found["version"], found["partition_columns"]) == (71, ["_event_hour"])
    assert found["checkpoint_version"] == 59
    assert (found["sidecar"]["row_groups"], found["sidecar"]["files"]) == (30, 60)
    assert get(served, "tables/machines?version=3").json()["version"] == 3
    assert get(served, "tables/machines?version=9999").status_code == 404
    assert error(get(served, "tables/machines?version=x"))["code"] == "InvalidRequest"


def test_versions_come_a_page_at_a_time_with_what_they_did(served: RunningServer) -> None:
    first = get(served, "tables/machines/versions?count=13").json()
    assert [one["version"] for one in first["versions"]] == list(range(71, 58, -1))
    last = first["versions"][-1]
    assert (last["has_checkpoint"], last["has_sidecar"], last["is_counted"]) == (True, True, True)
    assert {(one["adds"], one["removes"]) for one in first["versions"]} == {(1, 0)}
    seen, before = [], first["before"]
    while before is not None:
        page = get(served, f"tables/machines/versions?count=25&before={before}").json()
        seen += [one["version"] for one in page["versions"]]
        before = page["before"]
    assert seen == list(range(58, -1, -1))


def test_a_commit_that_is_too_long_is_told_by_its_writer(
    served: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "PAGE_COMMIT_BYTES_MAX", 10)
    (one,) = get(served, "tables/machines/versions?count=1").json()["versions"]
    assert (one["is_counted"], one["adds"], one["bytes_added"]) == (False, 1, None)


def test_the_map_of_files_is_that_of_the_scan(served: RunningServer, url: str) -> None:
    found = events(get(served, "tables/machines/files"))
    assert cells(found) == _cells_of(ld.open(url).scan())
    newest = [path for name, value in found if name == "newest" for path, _, _ in value]
    assert newest == [file.path for file in ld.open(url).scan().files()][: limits.PAGE_NEWEST_FILES]
    assert value_of(found, "end")["files"] == 72
    again = events(get(served, "tables/machines/files"))  # as it was kept
    assert cells(again) == cells(found)
    at_three = events(get(served, "tables/machines/files?version=3"))
    assert cells(at_three) == _cells_of(ld.open(url, version=3).scan())


@pytest.mark.parametrize(
    ("language", "text", "where"),
    [
        ("sql", LATE, "_event_hour >= '2026020900'"),
        ("sql", f"select count(*) from ({LATE}) where machine = 'press-3'", None),
        (
            "kql",
            "machines | where _event_hour startswith_cs '2026020' | where at > datetime(2026-02-08)",
            None,
        ),
        ("kql", "machines | where _event_hour >= '2026020900' | summarize avg(celsius) by machine", None),
    ],
)
def test_what_a_typed_query_would_read_is_what_it_reads(
    served: RunningServer, url: str, language: str, text: str, where: str | None
) -> None:
    found = events(post(served, "tables/machines/reads", language=language, text=text))
    plan = value_of(found, "plan")
    assert where is None or plan["predicate"] == where
    scan = ld.open(url).scan(plan["predicate"])
    assert cells(found) == _cells_of(scan)
    assert 0 < value_of(found, "end")["files"] < 72
    groups = plan["row_groups"]
    report = scan.explain()
    assert (groups["row_groups_read"], groups["row_groups"]) == (report.row_groups_read, 30)
    assert sum(total for total, _ in groups["bins"]) == 30
    assert sum(read for _, read in groups["bins"]) == report.row_groups_read


def test_a_query_that_may_read_all_or_nothing_says_so(served: RunningServer) -> None:
    ask = lambda text: events(post(served, "tables/machines/reads", language="sql", text=text))  # noqa: E731
    (plan,) = ask("select * from machines limit 3")
    assert (plan[1]["is_read"], plan[1]["predicate"]) == (True, None)
    (plan,) = ask("select 1")
    assert plan[1] == {"is_known": True, "is_read": False}


def test_a_query_that_would_have_to_run_is_not_looked_at(served: RunningServer) -> None:
    endless = "select count(*) from range(100000000000) as t(a)"
    ask = lambda text: events(post(served, "tables/machines/reads", language="sql", text=text))  # noqa: E731
    assert ask(endless) == [("plan", {"is_known": True, "is_read": False})]
    assert ask(f"select ({endless}), celsius from machines") == [
        ("plan", {"is_known": False, "is_read": False})
    ]


def test_who_types_on_ends_the_look(served: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PAGE_LOOK_SECONDS", 600.0)
    slow = "(select count(*) from a, a b, a c, a d, a e where a.x + b.x + d.x <> c.x * e.x)"
    text = f"with a as (select unnest(range(500)) as x) select celsius, {slow} as n from machines"
    admission = served.process.served.admission
    with pytest.raises(httpx.ReadTimeout):
        body = {"language": "sql", "text": text}
        httpx.post(f"{served.http_url}/ui/api/tables/machines/reads", json=body, timeout=1.0)
    assert eventually(lambda: not admission.running())  # sooner than its time is up


def test_what_is_wrong_with_a_typed_query_has_its_place(served: RunningServer) -> None:
    ask = lambda language, text: post(served, "tables/machines/reads", language=language, text=text)  # noqa: E731
    for language, text, place in (
        ("sql", "select *\nfro machines", (2, 5)),
        ("sql", "select 'é',\n  nothing from machines", (2, 3)),
        ("kql", "machines\n| whre celsius > 3", (2, 3)),
        ("kql", "machines | where nothing > 3", (1, 18)),
    ):
        answer = ask(language, text)
        assert answer.status_code == 400
        assert (error(answer)["line"], error(answer)["column"]) == place, answer.text
    assert "press" not in error(ask("sql", "copy machines to 'x.csv'"))["message"]
    assert ask("sql", "").status_code == 400
    assert ask("cobol", "x").status_code == 400
    assert post(served, "tables/machines/reads", language="sql").status_code == 400


def test_later_versions_are_told_while_the_page_is_open(tmp_path: Path) -> None:
    url = machines_table(tmp_path, days=2)
    rows = ld.open(url).scan(limit=1).to_arrow()
    with running_server(tmp_path, {"machines": url}) as server:
        assert get(server, "tables/machines/news?after=23").json() == {
            "version": 23,
            "versions": [],
            "files": [],
        }
        write_deltalake(DeltaTable(url), rows, mode="append", partition_by=["_event_hour"])
        path = "tables/machines/news?after=23"
        assert eventually(lambda: get(server, path).json()["version"] == 24)
        told = get(server, path).json()
        assert ([one["version"] for one in told["versions"]], len(told["files"])) == ([24], 1)
        earlier = get(server, "tables/machines/news?after=22").json()
        assert [one["version"] for one in earlier["versions"]] == [24, 23]
        assert eventually(lambda: not server.process.served.admission.running())


def test_files_that_came_before_a_checkpoint_are_news_too(served: RunningServer) -> None:
    assert get(served, "tables/machines").json()["checkpoint_version"] == 59
    told = get(served, "tables/machines/news?after=50").json()
    assert [one["version"] for one in told["versions"]] == list(range(71, 50, -1))
    assert len(told["files"]) == 21


def test_a_map_that_breaks_off_says_why_and_not_where(tmp_path: Path) -> None:
    url = machines_table(tmp_path, days=2)
    with running_server(tmp_path, {"machines": url}) as server:
        assert get(server, "tables/machines").json()["version"] == 23
        log = Path(url, "_delta_log")
        for lost in (*log.rglob("*.parquet"), *(log / f"{version:020d}.json" for version in range(12))):
            lost.unlink()
        found = events(get(server, "tables/machines/files?version=23"))
        names = [name for name, _ in found]
        assert (names[:3], names[-1], "end" in names) == (["opened", "newest", "map"], "error", False)
        told = found[-1][1]
        assert "checkpoint" in told["message"]
        assert str(tmp_path) not in json.dumps(told)
        answer = post(server, "query", language="sql", text="select count(celsius) from machines")
        assert str(tmp_path) not in answer.text


def test_completion_knows_tables_columns_functions_and_words(served: RunningServer) -> None:
    def found(language: str, before: str, after: str = "") -> list[str]:
        body = {"language": language, "text": before + after, "before": before, "table": "machines"}
        return [one["text"] for one in post(served, "completions", **body).json()["candidates"]]

    assert found("sql", "select * from ma") == ["machines"]
    assert found("sql", "select cel", " from machines") == ["celsius"]
    assert found("sql", "select m.mac", " from machines m") == []
    assert found("sql", "select * from machines m where m.mac") == ["machine"]
    assert "avg" in found("sql", "select av")
    assert "where" in found("sql", "select * from machines whe")
    for text in ("where machine = 'mac", "where machine = 'it''s mac", "where '--' = 'mac"):
        assert found("sql", f"select * from machines {text}") == []
    for text in ("where 'it''s' = mac", 'where "it\'s" = mac', "-- it's\nwhere mac", "/* it's */ where mac"):
        assert "machine" in found("sql", f"select * from machines {text}"), text
    assert found("kql", "mach") == ["machines"]
    assert found("kql", "machines | wh") == ["where"]
    assert found("kql", "machines | where cel") == ["celsius"]


def _cells_of(scan: ld.Scan) -> dict[tuple[int, int], tuple[int, int]]:
    """Counted file by file, in cells as wide as the map's."""
    whole = FileMap()
    for batch in scan.file_batches(["size", "modification_time"]):
        whole.add(batch)
    counts: Counter[tuple[int, int]] = Counter()
    totals: Counter[tuple[int, int]] = Counter()
    for file in scan.files():
        size = max(0, int(4 * math.log2(max(1, file.size))))
        assert file.modification_time is not None
        counts[file.modification_time // whole.width_ms, size] += 1
        totals[file.modification_time // whole.width_ms, size] += file.size
    return {key: (count, totals[key]) for key, count in counts.items()}
