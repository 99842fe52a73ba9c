"""The pictures of docs/web-page.md: made here, written to docs/images where LAZYDELTA_SCREENSHOTS says so."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.support.page_views import opened, run_query, type_query
from tests.support.serving import RunningServer, running_server

pytestmark = pytest.mark.long("makes the pictures of the docs; the other files test what they show")
IMAGES = Path(__file__).resolve().parents[4] / "docs" / "images"
LATE = """select machine, avg(celsius) as celsius, count(*) as n
from machines
where _event_hour >= '2026022000'
group by machine order by machine"""
HOURLY = """machines
| where at > datetime(2026-02-19)
| summarize avg(celsius) by bin(at, 2h), machine
| render timechart"""


@pytest.fixture(scope="module")
def server(machines: Callable[..., str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("served")
    with running_server(folder, {"machines": machines(folder, days=20)}) as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where pictures go: those of the docs change only where somebody wants them to."""
    return IMAGES if os.environ.get("LAZYDELTA_SCREENSHOTS") else tmp_path


def is_picture(path: Path) -> bool:
    return path.read_bytes().startswith(b"\x89PNG") and 10_000 < path.stat().st_size < 400_000


def test_rows_and_the_map_in_light(browser: Browser, server: RunningServer, folder: Path) -> None:
    size = {"width": 1280, "height": 860}
    with opened(browser, server.http_url, viewport=size, color_scheme="light") as page:
        for _ in range(2):  # the first one meets everything for the first time, which is not what people see
            run_query(page, LATE)
            expect(page.locator("#result-state")).to_contain_text("5 rows")
        expect(page.locator("#map-state")).to_contain_text("the query reads 48 and skips 192")
        page.wait_for_timeout(300)
        page.screenshot(path=folder / "web-page.png")
    assert is_picture(folder / "web-page.png")


def test_a_chart_in_dark(browser: Browser, server: RunningServer, folder: Path) -> None:
    size = {"width": 1280, "height": 720}
    with opened(browser, server.http_url, viewport=size, color_scheme="dark") as page:
        run_query(page, HOURLY, "kql")
        expect(page.locator("#panel-chart canvas")).to_have_attribute("data-kind", "time")
        expect(page.locator("#map-state")).to_contain_text("the query reads")
        page.wait_for_timeout(300)
        page.screenshot(path=folder / "web-page-chart.png")
    assert is_picture(folder / "web-page-chart.png")


def test_what_is_wrong_and_what_was_read(browser: Browser, server: RunningServer, folder: Path) -> None:
    size = {"width": 900, "height": 620}
    with opened(browser, server.http_url, viewport=size, color_scheme="light") as page:
        run_query(page, LATE)
        expect(page.locator("#result-state")).to_contain_text("5 rows")
        page.click("#tab-explain")
        page.wait_for_timeout(300)
        page.screenshot(path=folder / "web-page-explain.png")
        type_query(page, "machines\n| where celsius > 70\n| summarise count() by machine", "kql")
        expect(page.locator("#query-error")).to_contain_text("Line 3, column 3")
        page.screenshot(path=folder / "web-page-error.png")
    assert is_picture(folder / "web-page-explain.png")
    assert is_picture(folder / "web-page-error.png")


def test_a_small_screen(browser: Browser, server: RunningServer, folder: Path) -> None:
    size = {"width": 360, "height": 740}
    with opened(browser, server.http_url, viewport=size, color_scheme="dark", is_mobile=True) as page:
        run_query(page, HOURLY, "kql")
        expect(page.locator("#panel-chart canvas")).to_have_attribute("data-kind", "time")
        page.wait_for_timeout(300)
        page.evaluate("window.scrollTo(0, 0)")
        page.screenshot(path=folder / "web-page-small.png")
    assert is_picture(folder / "web-page-small.png")
