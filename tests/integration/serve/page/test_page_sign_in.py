"""Signing in on the web page: a token that stays in its tab, and what one may not read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, expect

from lazydelta.serve.sign_in import token_digest
from tests.support.page_views import opened, run_query
from tests.support.serving import RunningServer, running_server

CLIENTS = "".join(
    f'[[clients]]\nname = "{name}"\ntoken_sha256 = "{token_digest(name + "-token")}"\nroles = ["{role}"]\n'
    for name, role in (("ann", "analysts"), ("ben", "others"))
)


@pytest.fixture(scope="module")
def server(machines: Callable[..., str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("served")
    url = machines(folder)
    more = f'{CLIENTS}[tables.secret]\nurl = {json.dumps(url)}\nreaders = ["analysts"]\n'
    with running_server(folder, {"machines": url}, more) as running:
        yield running


def test_a_token_opens_the_page_and_stays_in_the_tab(browser: Browser, server: RunningServer) -> None:
    sent: list[tuple[str, str]] = []
    with opened(browser, server.http_url) as page:
        expect(page.locator("#token")).to_be_focused()
        for part in ("#main", "#table", "#share"):
            expect(page.locator(part)).to_be_hidden()
        page.keyboard.type("wrong")
        page.keyboard.press("Enter")
        expect(page.locator("#sign-in-error")).to_contain_text("The server does not know this token")
        page.on("request", lambda one: sent.append((one.url, one.headers.get("authorization", ""))))
        page.fill("#token", "ann-token")
        page.keyboard.press("Enter")
        expect(page.locator("#map-state")).to_contain_text("24 live files")
        for part in ("#main", "#table", "#share"):
            expect(page.locator(part)).to_be_visible()
        expect(page.locator("#table option")).to_have_text(["machines", "secret"])
        run_query(page, "select count(*) as n from secret")
        expect(page.locator("#result-state")).to_contain_text("1 row")
        assert all(authorization == "Bearer ann-token" for url, authorization in sent if "/api/" in url)
        assert not any("ann-token" in url for url, _ in sent)
        assert "token" not in page.url
        assert page.evaluate("JSON.stringify({...localStorage}) + document.cookie") == "{}"
        page.reload()
        expect(page.locator("#map-state")).to_contain_text("24 live files")
        page.click("#sign-out")
        expect(page.locator("#sign-in")).to_be_visible()
        assert page.evaluate("sessionStorage.length") == 0


def test_a_token_that_no_header_can_hold_is_told(browser: Browser, server: RunningServer) -> None:
    with opened(browser, server.http_url) as page:
        page.fill("#token", "ann\u2013token")
        page.keyboard.press("Enter")
        expect(page.locator("#sign-in-error")).to_contain_text("letters, digits and plain signs only")
        expect(page.locator("#notice")).to_be_hidden()
        page.fill("#token", "ann-token")
        page.keyboard.press("Enter")
        expect(page.locator("#map-state")).to_contain_text("24 live files")


def test_what_one_may_not_read_is_not_there(browser: Browser, server: RunningServer) -> None:
    with opened(browser, f"{server.http_url}/ui/#table=secret&query=select+*+from+secret") as page:
        page.fill("#token", "ben-token")
        page.keyboard.press("Enter")
        expect(page.locator("#notice")).to_contain_text("there is no table 'secret'")
        expect(page.locator("#table option")).to_have_text(["machines"])
        run_query(page, "select * from secret")
        expect(page.locator("#query-error")).to_contain_text("there is no table 'secret'")


def test_who_is_sent_away_meanwhile_signs_in_again(browser: Browser, server: RunningServer) -> None:
    with opened(browser, server.http_url) as page:
        page.fill("#token", "ben-token")
        page.keyboard.press("Enter")
        expect(page.locator("#connection")).to_have_text("live")
        before = server.path.read_text("utf-8")
        try:
            server.path.write_text(before.replace(token_digest("ben-token"), token_digest("other")), "utf-8")
            assert server.process.reload()
            expect(page.locator("#sign-in")).to_be_visible()
            expect(page.locator("#sign-in-error")).to_contain_text("does not know this token")
        finally:
            server.path.write_text(before, "utf-8")
            assert server.process.reload()
