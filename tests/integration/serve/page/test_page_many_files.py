"""The web page on a table of many files: it shows the newest at once, and never the list."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from bench.generate import generate
from bench.spec import TableSpec
from lazydelta.settings import Settings
from lazydelta.sidecar import SidecarConfig
from lazydelta.storage import open_storage
from lazydelta.upkeep.build import build_sidecar
from tests.support.page_views import opened, run_query, type_query
from tests.support.serving import RunningServer, running_server

FILES = 50_000
# When the page first told of files, and when of all of them, in ms since it was opened.
MARKS = """
window.marks = {};
addEventListener("DOMContentLoaded", () => {
  const told = document.getElementById("map-state");
  new MutationObserver(() => {
    if (/[1-9]/.test(told.textContent)) window.marks.first ??= performance.now();
    const isWhole = /live file/.test(told.textContent) && !told.textContent.includes("so far");
    if (isWhole) window.marks.whole ??= performance.now();
  }).observe(told, {childList: true, characterData: true, subtree: true});
});
"""
BYTES = """() => performance.getEntriesByType("resource").filter(one => one.name.includes("/api/"))
    .reduce((sum, one) => sum + one.transferSize, 0)"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("served")
    spec = TableSpec(
        files=FILES,
        event_hour=True,
        date_partition=False,
        time_settings=True,
        checkpoint_dv_every=0,
        tail_commits=10,
        tail_adds=100,
        tail_dv_updates=0,
        stats_width=2,
        data="newest",
    )
    generate(folder / "telemetry", spec)
    build_sidecar(open_storage(str(folder / "telemetry"), Settings()), config=SidecarConfig())
    with running_server(folder, {"telemetry": str(folder / "telemetry")}) as running:
        yield running


def test_many_files_are_shown_as_they_come_in_few_bytes(browser: Browser, server: RunningServer) -> None:
    with opened(browser, f"{server.http_url}/ui/#query=select+1", script=MARKS) as page:
        expect(page.locator("#map-state")).to_have_text(re.compile(r"^[\d,]+ live files((?!so far).)*$"))
        marks = page.evaluate("window.marks")
        assert 0 < marks["first"] <= marks["whole"]
        live = int(page.locator("#map-state").inner_text().partition(" live")[0].replace(",", ""))
        assert live > FILES
        assert page.evaluate(BYTES) < 400_000
        assert page.locator("*").count() < 1500
        type_query(page, "select * from telemetry where _event_hour >= '2026020900'")
        expect(page.locator("#map-state")).to_contain_text("the query reads")
        expect(page.locator("#map-state")).not_to_contain_text("so far")
        told = page.locator("#map-state").inner_text()
        read = int(told.partition("reads ")[2].partition(" and")[0].replace(",", ""))
        assert 0 < read < FILES // 20
        expect(page.locator("#groups-state")).to_contain_text("row groups and skips")


def test_the_newest_rows_of_many_files_come_at_once(browser: Browser, server: RunningServer) -> None:
    with opened(browser, server.http_url) as page:
        expect(page.locator("#version")).to_contain_text("version")
        run_query(page, "select * from telemetry limit 50")
        expect(page.locator("#result-state")).to_contain_text("50 rows in")
        page.click("#tab-explain")
        expect(page.locator("#panel-explain")).to_contain_text("files from")
