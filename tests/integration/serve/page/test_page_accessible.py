"""The web page for everybody: axe's rules, small screens, light and dark."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from lazydelta.serve.sign_in import token_digest
from tests.support.page_views import opened, run_query, violations
from tests.support.serving import RunningServer, running_server

SMALL, LARGE = {"width": 320, "height": 640}, {"width": 1400, "height": 900}
QUERY = """select machine, "at", celsius from machines where _event_hour >= '2026020400' order by all"""

OTHER = pytest.mark.long("the same colours and sizes, combined the other way")


@pytest.fixture(scope="module")
def url(machines: Callable[..., str], tmp_path_factory: pytest.TempPathFactory) -> str:
    return machines(tmp_path_factory.mktemp("tables"))


@pytest.fixture(scope="module")
def server(url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with running_server(tmp_path_factory.mktemp("config"), {"machines": url}) as running:
        yield running


def is_narrow(page: Page) -> bool:
    """Whether nothing has to be scrolled sideways to be seen, but what scrolls in its own frame."""
    return bool(page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"))


@pytest.mark.parametrize(
    ("scheme", "size"),
    [
        ("light", LARGE),
        ("dark", SMALL),
        pytest.param("dark", LARGE, marks=OTHER),
        pytest.param("light", SMALL, marks=OTHER),
    ],
)
def test_axe_finds_nothing_wrong(
    browser: Browser, server: RunningServer, scheme: str, size: dict[str, int]
) -> None:
    with opened(browser, server.http_url, color_scheme=scheme, viewport=size) as page:
        expect(page.locator("#map-state")).to_contain_text("24 live files")
        assert violations(page) == []
        run_query(page, QUERY)
        expect(page.locator("#result-state")).to_contain_text("rows in")
        for summary in page.locator("summary").all()[-2:]:
            summary.click()
        for tab in ("grid", "chart", "explain"):
            page.click(f"#tab-{tab}")
            assert violations(page) == [], tab
            assert is_narrow(page), tab
        run_query(page, "select nothing from machines")
        expect(page.locator("#query-error")).to_contain_text("Line 1")
        page.locator("#query-text").fill("")
        page.locator("#query-text").press_sequentially("select cel")
        expect(page.locator("#completions")).to_be_visible()
        assert violations(page) == []
        assert is_narrow(page)


def test_the_form_to_sign_in_is_accessible(
    browser: Browser, url: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    more = f'[[clients]]\nname = "ann"\ntoken_sha256 = "{token_digest("ann-token")}"\n'
    with (
        running_server(tmp_path_factory.mktemp("closed"), {"machines": url}, more) as server,
        opened(browser, server.http_url, viewport=SMALL) as page,
    ):
        page.fill("#token", "wrong")
        page.keyboard.press("Enter")
        expect(page.locator("#sign-in-error")).to_be_visible()
        assert violations(page) == []
        assert is_narrow(page)


def test_on_a_small_screen_everything_can_be_used(browser: Browser, server: RunningServer) -> None:
    with opened(browser, server.http_url, viewport=SMALL, has_touch=True, is_mobile=True) as page:
        expect(page.locator("#map-state")).to_contain_text("24 live files")
        page.fill("#query-text", QUERY)
        page.tap("#run")
        expect(page.locator("#result-state")).to_contain_text("rows in")
        page.tap("#tab-chart")
        expect(page.locator("#panel-chart canvas")).to_have_attribute("data-kind", "time")
        box = page.locator("#panel-chart canvas").bounding_box()
        assert box is not None
        assert 200 < box["width"] <= 320
        page.tap("#tab-grid")
        expect(page.locator('[data-at="0,0"]')).to_be_visible()
        page.locator('#versions li[data-version="20"]').tap()
        expect(page.locator("#map-state")).to_contain_text("21 live files")
        assert is_narrow(page)
