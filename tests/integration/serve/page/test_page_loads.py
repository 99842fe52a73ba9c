"""The web page in Chromium: it loads by itself; files, versions and facts of a table come in."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.page_views import opened, type_query
from tests.support.serving import RunningServer, running_server


@pytest.fixture(scope="module")
def server(machines: Callable[..., str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("served")
    with running_server(folder, {"machines": machines(folder, days=6)}) as running:
        yield running


def test_the_page_shows_a_table_and_asks_nobody_else(browser: Browser, server: RunningServer) -> None:
    asked: list[str] = []
    with opened(browser, "about:blank") as page:
        page.on("request", lambda request: asked.append(request.url))
        page.goto(server.http_url)
        expect(page.locator("#map-state")).to_have_text(
            re.compile(r"72 live files, [\d.]+ KB; the query may")
        )
        expect(page.locator("#version")).to_have_text("version 71")
        expect(page.locator("#connection")).to_have_text("live")
        expect(page.locator("#schema tbody tr")).to_have_count(4)
        expect(page.locator("#facts")).to_contain_text("30 row groups in 1 part")
        expect(page.locator("#query-text")).to_have_value("select * from machines limit 100")
        expect(page.locator("#newest summary")).to_have_text("Newest 72 files")
    assert len(asked) > 10
    assert all(url.startswith(server.http_url) for url in asked)


def test_the_timeline_goes_back_and_shows_the_table_as_it_was(
    browser: Browser, server: RunningServer
) -> None:
    with opened(browser, server.http_url) as page:
        expect(page.locator("#versions li")).to_have_count(50)
        expect(page.locator("#version-facts")).to_contain_text("1 file")
        marked = page.locator('#versions li[data-version="59"]')
        expect(marked).to_have_attribute("aria-label", re.compile("1 file added, checkpoint, sidecar"))
        page.locator("#versions-older").press("Enter")
        expect(page.locator("#versions li")).to_have_count(72)
        expect(page.locator("#versions li").first).to_be_focused()  # there are no older ones
        page.locator('#versions li[tabindex="0"]').focus()
        for _ in range(3):
            page.keyboard.press("ArrowLeft")
        expect(page.locator('#versions li[data-version="68"]')).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator("#version")).to_have_text("version 68")
        expect(page.locator("#map-state")).to_contain_text("69 live files")
        assert "version=68" in page.url
        expect(page.locator("#query-version")).to_have_text(
            "The page shows version 68; queries read the newest."
        )
        expect(page.locator('#versions li[data-version="68"]')).to_be_focused()
        page.locator("#versions-newest").press("Enter")
        expect(page.locator("#map-state")).to_contain_text("72 live files")
        expect(page.locator("#versions li").first).to_be_focused()
        assert "version=" not in page.url


def test_the_map_tells_what_the_typed_query_reads(browser: Browser, server: RunningServer) -> None:
    with opened(browser, server.http_url) as page:
        expect(page.locator("#map-state")).to_contain_text("72 live files")
        type_query(page, "select * from machines where _event_hour >= '2026020822'")
        expect(page.locator("#map-state")).to_contain_text("the query reads 13 and skips 59")
        expect(page.locator("#groups-state")).to_contain_text("reads 1 of 30 row groups and skips 29")
        type_query(page, "machines | where at < datetime(2026-02-04 03:00)", "kql")
        expect(page.locator("#map-state")).to_contain_text("the query reads 2 and skips 70")
        expect(page.locator("#map canvas")).to_have_attribute(
            "aria-label", re.compile("reads 2 and skips 70")
        )
        type_query(page, "machines | where", "kql")
        expect(page.locator("#query-error")).to_contain_text("Line 1")
        expect(page.locator("#map-state")).not_to_contain_text("skips")


def test_the_map_is_walked_by_keys(browser: Browser, server: RunningServer) -> None:
    with opened(browser, server.http_url) as page:
        expect(page.locator("#map-state")).to_contain_text("72 live files")
        page.locator("#map canvas").focus()
        page.keyboard.press("ArrowRight")
        expect(page.locator("#map-cell")).to_have_text(
            re.compile(r"^20.* to 20.*, .*B to .*B: \d+ files?, .*B")
        )
        first = page.locator("#map-cell").inner_text()
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowUp")
        expect(page.locator("#map-cell")).not_to_contain_text("arrow keys go from cell to cell")
        assert first


def test_keys_on_the_map_need_no_picture(browser: Browser, server: RunningServer) -> None:
    with opened(browser, server.http_url, script="window.requestAnimationFrame = () => 0;") as page:
        expect(page.locator("#map-state")).to_contain_text("72 live files")
        page.locator("#map canvas").focus()
        page.keyboard.press("ArrowRight")
        expect(page.locator("#map-cell")).to_contain_text(re.compile(r": \d+ files?, "))


def shows_nothing(page: Page) -> None:
    """A table that cannot be opened is not shown as an empty one, nor as the one before it."""
    for part in ("map-state", "groups-state", "versions-state"):
        expect(page.locator(f"#{part}")).to_have_text("not known: the table cannot be opened")
    for part in ("version", "facts", "schema", "versions", "connection"):
        expect(page.locator(f"#{part}")).to_have_text("")


def test_a_version_that_is_not_there_is_told_and_left(browser: Browser, server: RunningServer) -> None:
    with opened(browser, f"{server.http_url}/ui/#table=machines&version=999") as page:
        expect(page.locator("#notice")).to_contain_text("999")
        shows_nothing(page)
        page.click("#versions-newest")
        expect(page.locator("#map-state")).to_contain_text("72 live files")
        expect(page.locator("#notice")).to_be_hidden()


def test_a_table_that_is_not_there_is_told(browser: Browser, server: RunningServer) -> None:
    with opened(browser, f"{server.http_url}/ui/#table=nothing") as page:
        expect(page.locator("#notice")).to_have_text("there is no table 'nothing' (list what is served)")
        shows_nothing(page)
        page.select_option("#table", "machines")
        expect(page.locator("#map-state")).to_contain_text("72 live files")
        expect(page.locator("#notice")).to_be_hidden()


def test_a_table_whose_address_is_wrong_is_told_without_the_address(
    browser: Browser, machines: Callable[..., str], tmp_path: Path
) -> None:
    tables = {"broken": str(tmp_path / "nowhere"), "machines": machines(tmp_path)}
    with running_server(tmp_path, tables) as server, opened(browser, server.http_url) as page:
        expect(page.locator("#notice")).to_contain_text("no Delta table here")
        expect(page.locator("#notice")).not_to_contain_text("nowhere")
        shows_nothing(page)
        page.select_option("#table", "machines")
        expect(page.locator("#map-state")).to_contain_text("24 live files")
        expect(page.locator("#notice")).to_be_hidden()


def test_light_and_dark_are_chosen_and_kept(browser: Browser, server: RunningServer) -> None:
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    with opened(browser, server.http_url, color_scheme="dark") as page:
        dark = page.evaluate(ground)
        page.click("#theme")
        assert page.locator("#theme").get_attribute("aria-label") == "Theme: light"
        light = page.evaluate(ground)
        assert (dark, light) == ("rgb(16, 23, 29)", "rgb(255, 255, 255)")
        page.reload()
        expect(page.locator("#theme")).to_have_attribute("aria-label", "Theme: light")
        assert page.evaluate(ground) == light
