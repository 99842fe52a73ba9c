"""The web page and time: news of the table, a server that goes and comes back, browsers without streams."""

from __future__ import annotations

import random
import re
import shutil
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from playwright.sync_api import Browser, Page, expect

import lazydelta as ld
from tests.support.page_views import held_back, let_through, opened, run_query
from tests.support.proxy import Fault, HttpProxy, always
from tests.support.serve_process import ServeProcess, config_text
from tests.support.serving import running_server

TEN_TIMES_AS_FAST = """
    const [now, later] = [performance.now.bind(performance), setTimeout];
    performance.now = () => 10 * now();
    window.setTimeout = (call, ms) => later(call, ms / 10);
"""
# A map that is not drawn anew, however long the machine takes: its clock stands, and what waits waits on.
NEVER_REDRAWN = """
    const later = setTimeout;
    performance.now = () => 0;
    window.setTimeout = (call, ms) => ms === 30000 ? 0 : later(call, ms);
"""
NEWS = "**/ui/api/tables/machines/news?*"
NOTHING_KEPT = """
    const get = () => { throw new DOMException("it is blocked", "SecurityError"); };
    for (const kind of ["localStorage", "sessionStorage"]) Object.defineProperty(window, kind, { get });
"""
NO_STREAMS = "delete Response.prototype.body; delete window.ReadableStream;"

OTHER = pytest.mark.long("another answer that breaks off in a browser without streams")


@pytest.fixture
def url(machines: Callable[..., str], tmp_path: Path) -> str:
    """A table of 24 files that the test may change."""
    return machines(tmp_path)


def lasting_port() -> int:
    """A port that stays free while nobody listens: none that the system gives to connections."""
    for port in random.sample(range(20_000, 32_000), 100):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError("no port is free")


def append_to(url: str) -> None:
    rows = ld.open(url).scan(limit=1).to_arrow()
    write_deltalake(DeltaTable(url), rows, mode="append", partition_by=["_event_hour"])


def shows_news(page: Page, url: str, version: int) -> None:
    append_to(url)
    expect(page.locator("#version")).to_have_text(f"version {version}")
    expect(page.locator("#map-state")).to_contain_text("1 new since the map was drawn")
    expect(page.locator("#versions li").first).to_have_attribute("data-version", str(version))
    expect(page.locator("#newest summary")).to_have_text(f"Newest {version + 1} files")


def test_files_come_in_while_the_page_is_open(browser: Browser, tmp_path: Path, url: str) -> None:
    with (
        running_server(tmp_path, {"machines": url}) as server,
        opened(browser, server.http_url, script=NEVER_REDRAWN) as page,
    ):
        expect(page.locator("#connection")).to_have_text("live")
        expect(page.locator("#map-state")).to_contain_text("24 live files")
        shows_news(page, url, 24)


def test_files_that_go_while_the_page_is_open_are_told(browser: Browser, tmp_path: Path, url: str) -> None:
    with (
        running_server(tmp_path, {"machines": url}) as server,
        opened(browser, server.http_url, script=NEVER_REDRAWN) as page,
    ):
        expect(page.locator("#connection")).to_have_text("live")
        expect(page.locator("#map-state")).to_contain_text("24 live files")
        expect(page.locator("#facts")).to_contain_text("24, ")
        removed = DeltaTable(url).delete("_event_hour >= '2026020500'")["num_removed_files"]
        assert removed
        state = page.locator("#map-state")
        expect(state).to_contain_text(f"at version 23; the query may read all of them; {removed} removed")


def test_a_map_whose_files_have_gone_is_drawn_anew(browser: Browser, tmp_path: Path, url: str) -> None:
    with (
        running_server(tmp_path, {"machines": url}) as server,
        opened(browser, server.http_url, script=TEN_TIMES_AS_FAST) as page,
    ):
        expect(page.locator("#map-state")).to_contain_text("24 live files")
        removed = DeltaTable(url).delete("_event_hour >= '2026020500'")["num_removed_files"]
        drawn = re.compile(rf"^{24 - removed} live files, [\d.]+ [KM]?B; the query may read all of them$")
        expect(page.locator("#map-state")).to_have_text(drawn)


def test_more_pages_than_a_browser_has_connections_are_all_live(
    browser: Browser, tmp_path: Path, url: str
) -> None:
    with running_server(tmp_path, {"machines": url}) as server, browser.new_context() as room:
        pages = [room.new_page() for _ in range(8)]
        for page in pages:
            page.goto(server.http_url)
        for page in pages:
            expect(page.locator("#map-state")).to_contain_text("24 live files")
        run_query(pages[-1], "select 1 as one")
        expect(pages[-1].locator("#result-state")).to_contain_text("1 row")
        append_to(url)
        for page in pages:
            expect(page.locator("#version")).to_have_text("version 24")


def test_a_page_that_nobody_sees_asks_for_nothing(browser: Browser, tmp_path: Path, url: str) -> None:
    hide = """isHidden => {
        Object.defineProperty(document, "hidden", {get: () => isHidden, configurable: true});
        document.dispatchEvent(new Event("visibilitychange"));
    }"""
    with running_server(tmp_path, {"machines": url}) as server, opened(browser, server.http_url) as page:
        expect(page.locator("#connection")).to_have_text("live")
        page.evaluate(hide, True)
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        append_to(url)
        page.wait_for_timeout(3000)
        assert asked == []
        page.evaluate(hide, False)
        expect(page.locator("#version")).to_have_text("version 24")


def test_an_answer_that_comes_late_does_not_turn_the_table_back(
    browser: Browser, tmp_path: Path, url: str
) -> None:
    with (
        running_server(tmp_path, {"machines": url}) as server,
        opened(browser, server.http_url, script=NEVER_REDRAWN) as page,
    ):
        expect(page.locator("#connection")).to_have_text("live")
        held = held_back(page, "**/ui/api/tables/machines?version=24")
        append_to(url)
        expect(page.locator("#versions li").first).to_have_attribute("data-version", "24")
        append_to(url)
        expect(page.locator("#version")).to_have_text("version 25")
        with page.expect_response("**/ui/api/tables/machines?version=24"):
            let_through(page, held)
        page.wait_for_timeout(300)
        expect(page.locator("#version")).to_have_text("version 25")


def test_a_table_that_was_made_anew_is_shown(browser: Browser, tmp_path: Path, url: str) -> None:
    with running_server(tmp_path, {"machines": url}) as server, opened(browser, "about:blank") as page:
        looks = held_back(page, NEWS)
        page.goto(server.http_url)
        expect(page.locator("#map-state")).to_contain_text("24 live files")
        shutil.rmtree(url)
        write_deltalake(url, pa.table({"another": [1, 2, 3]}))
        let_through(page, looks)
        page.unroute(NEWS)
        expect(page.locator("#version")).to_have_text("version 0")
        expect(page.locator("#map-state")).to_contain_text("1 live file")
        expect(page.locator("#schema")).to_contain_text("another")


def test_versions_that_came_unseen_leave_no_gap(browser: Browser, tmp_path: Path, url: str) -> None:
    with (
        running_server(tmp_path, {"machines": url}) as server,
        opened(browser, "about:blank", script=NEVER_REDRAWN) as page,
    ):
        looks = held_back(page, NEWS)
        page.goto(server.http_url)
        expect(page.locator("#map-state")).to_contain_text("24 live files")
        expect(page.locator("#versions li")).to_have_count(24)
        for _ in range(55):
            append_to(url)
        let_through(page, looks)
        page.unroute(NEWS)
        expect(page.locator("#version")).to_have_text("version 78")
        expect(page.locator("#map-state")).to_contain_text("at least 50 new since the map was drawn")
        expect(page.locator("#versions li")).to_have_count(50)
        page.click("#versions-older")
        expect(page.locator("#versions li")).to_have_count(79)
        shown = page.locator("#versions li").evaluate_all(
            "all => all.map(one => Number(one.dataset.version))"
        )
        assert shown == list(range(78, -1, -1))


def test_many_files_of_one_commit_are_all_counted(browser: Browser, tmp_path: Path, url: str) -> None:
    row = ld.open(url).scan(limit=1).to_arrow()
    rows = pa.concat_tables([row] * 230).set_column(
        row.schema.get_field_index("_event_hour"), "_event_hour", pa.array([f"{at}" for at in range(230)])
    )
    with (
        running_server(tmp_path, {"machines": url}) as server,
        opened(browser, server.http_url, script=NEVER_REDRAWN) as page,
    ):
        expect(page.locator("#connection")).to_have_text("live")
        expect(page.locator("#map-state")).to_contain_text("24 live files")
        write_deltalake(DeltaTable(url), rows, mode="append", partition_by=["_event_hour"])
        expect(page.locator("#map-state")).to_contain_text("; 230 new since the map was drawn")


def test_a_server_that_has_gone_is_told_and_found_again(browser: Browser, tmp_path: Path, url: str) -> None:
    config = tmp_path / "serve.toml"
    port = lasting_port()
    text = config_text({"machines": url}, "drain_seconds = 2.0")
    config.write_text(text.replace("http_port = 0", f"http_port = {port}"), "utf-8")
    first = ServeProcess(config, {})
    second: ServeProcess | None = None
    try:
        assert first.ports["http"] == port
        with opened(browser, f"http://127.0.0.1:{port}") as page:
            expect(page.locator("#connection")).to_have_text("live")
            first.signal(signal.SIGTERM)
            assert first.ended() == 0, "an open page must not hold the server up"
            expect(page.locator("#connection")).to_have_text("the server has gone; reconnecting")
            run_query(page, "select 1")
            expect(page.locator("#query-error")).to_contain_text("the server does not answer")
            append_to(url)
            second = ServeProcess(config, {})
            assert second.ports["http"] == port
            expect(page.locator("#connection")).to_have_text("live")
            expect(page.locator("#version")).to_have_text("version 24")
            run_query(page, "select 1 as one")
            expect(page.locator("#result-state")).to_contain_text("1 row")
    finally:
        for process in (first, second):
            if process is not None:
                process.close()


def test_a_server_that_has_gone_is_told_of_an_earlier_version_too(
    browser: Browser, tmp_path: Path, url: str
) -> None:
    with (
        running_server(tmp_path, {"machines": url}) as server,
        HttpProxy(server.ports.http or 0) as proxy,
        opened(browser, f"http://127.0.0.1:{proxy.port}/ui/#table=machines&version=5") as page,
    ):
        expect(page.locator("#map-state")).to_contain_text("6 live files")
        proxy.plan = always(Fault(kind="cut"))
        expect(page.locator("#connection")).to_have_text("the server has gone; reconnecting")
        proxy.plan = lambda _: None
        expect(page.locator("#connection")).to_have_text("")
        expect(page.locator("#version")).to_have_text("version 5")
        expect(page.locator("#map-state")).to_contain_text("6 live files")


@pytest.mark.parametrize(
    ("path", "script"),
    [
        ("/versions", ""),
        ("/files", ""),
        ("/reads", ""),
        ("/files", NO_STREAMS),
        pytest.param("/versions", NO_STREAMS, marks=OTHER),
        pytest.param("/reads", NO_STREAMS, marks=OTHER),
    ],
)
def test_an_answer_that_breaks_off_is_told_and_asked_for_again(
    browser: Browser, tmp_path: Path, url: str, path: str, script: str
) -> None:
    with (
        running_server(tmp_path, {"machines": url}) as server,
        HttpProxy(server.ports.http or 0) as proxy,
    ):
        cut = Fault(kind="cut", after_bytes=20)
        proxy.plan = lambda request: cut if path in request.path else None
        with opened(browser, f"http://127.0.0.1:{proxy.port}", script=script) as page:
            notice = page.locator("#notice")
            expect(notice).to_contain_text("The server does not answer")
            proxy.plan = lambda _: None
            expect(notice).not_to_contain_text("The server does not answer")
            expect(notice).to_contain_text("This browser cannot read streams" if script else "")
            expect(page.locator("#versions li")).to_have_count(24)
            expect(page.locator("#map-state")).to_contain_text("24 live files, ")
            expect(page.locator("#map-state")).to_contain_text("the query may read all of them")


def test_what_keeps_a_look_from_its_answer_is_told_at_the_map(
    browser: Browser, tmp_path: Path, url: str
) -> None:
    fault = {"error": {"code": "Exhausted", "message": "too many scans run", "fix": "wait"}}
    with running_server(tmp_path, {"machines": url}) as server, opened(browser, "about:blank") as page:
        page.route("**/reads", lambda route: route.fulfill(status=429, json=fault))
        page.goto(server.http_url)
        told = "24 live files, [^;]+; what the query reads is not known: too many scans run$"
        expect(page.locator("#map-state")).to_have_text(re.compile(told))


@pytest.mark.parametrize("script", [NOTHING_KEPT, "delete AbortSignal.any;"])
def test_a_browser_that_lacks_something_shows_the_page(
    browser: Browser, tmp_path: Path, url: str, script: str
) -> None:
    with (
        running_server(tmp_path, {"machines": url}) as server,
        opened(browser, server.http_url, script=script) as page,
    ):
        expect(page.locator("#map-state")).to_contain_text("24 live files")
        expect(page.locator("#connection")).to_have_text("live")
        page.click("#theme")
        expect(page.locator("#theme")).to_have_attribute("aria-label", "Theme: light")


def test_a_browser_without_streams_still_shows_everything(browser: Browser, tmp_path: Path, url: str) -> None:
    with (
        running_server(tmp_path, {"machines": url}) as server,
        opened(browser, server.http_url, script=NO_STREAMS + NEVER_REDRAWN) as page,
    ):
        expect(page.locator("#notice")).to_contain_text("This browser cannot read streams")
        expect(page.locator("#connection")).to_have_text("live")
        expect(page.locator("#map-state")).to_contain_text("24 live files")
        run_query(page, "select machine, count(*) from machines group by 1")
        expect(page.locator("#result-state")).to_contain_text("5 rows")
        shows_news(page, url, 24)
