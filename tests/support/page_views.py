"""The web page as a person meets it: opened in Chromium, with every complaint of the browser noticed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, Page, Route, expect

from tests.support.node import installed

AXE_VERSION = "4.14.0"
_PACKAGE = {"private": True, "dependencies": {"axe-core": AXE_VERSION}}
# What the browser says of answers that are no success, which tests ask for on purpose.
_NETWORK = "Failed to load resource"
# Rules of people who judge pages: WCAG 2.2 A and AA, and what is good practice.
_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]

expect.set_options(timeout=30_000)  # a busy machine takes its time


@contextmanager
def opened(browser: Browser, address: str, *, script: str = "", **context: Any) -> Iterator[Page]:
    """The page; what goes wrong in its scripts fails the test. `script` runs before the page's own."""
    complaints: list[str] = []
    with browser.new_context(**context) as room:
        page = room.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "console",
            lambda told: complaints.append(told.text) if told.type in ("error", "warning") else None,
        )
        if script:
            page.add_init_script(script)
        page.goto(address)
        yield page
    wrong = [told for told in complaints if not told.startswith(_NETWORK)]
    assert wrong == [], wrong


def type_query(page: Page, text: str, language: str = "sql") -> None:
    """Put it into the box, as typing does."""
    page.locator(f'input[value="{language}"]').check()
    page.fill("#query-text", text)


def run_query(page: Page, text: str, language: str = "sql") -> None:
    """Run it by the keyboard."""
    type_query(page, text, language)
    page.press("#query-text", "Control+Enter")


def held_back(page: Page, address: str) -> list[Route]:
    """Requests that go no further until they are let through."""
    found: list[Route] = []

    def hold(route: Route) -> None:
        found.append(route)

    page.route(address, hold)
    return found


def let_through(page: Page, held: list[Route]) -> None:
    """The latest request that is held back, once it is here."""
    for _ in range(1500):
        if held:
            break
        page.wait_for_timeout(20)
    held.pop().continue_()


def violations(page: Page) -> list[str]:
    """What axe finds, with the elements."""
    folder = installed("npm-axe", _PACKAGE)
    page.evaluate((folder / "node_modules" / "axe-core" / "axe.min.js").read_text("utf-8"))
    found = page.evaluate("rules => axe.run(document, {runOnly: {type: 'tag', values: rules}})", _RULES)
    return [
        f"{one['id']}: {one['help']}: {[node['html'][:120] for node in one['nodes']]}"
        for one in found["violations"]
    ]
