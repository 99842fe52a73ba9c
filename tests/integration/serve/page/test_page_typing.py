"""What the web page says and offers while somebody types, and how long it stands."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from playwright.sync_api import Browser, Page, expect

from tests.support.page_views import held_back, let_through, opened, run_query, type_query
from tests.support.serving import RunningServer, running_server

LOOKED_MS = 1500  # by then the page has asked what a typed query would read
ODD = "order id, näme"


@pytest.fixture(scope="module")
def server(machines: Callable[..., str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("served")
    write_deltalake(folder / "odd", pa.table({ODD: [7, 8]}))
    tables = {"machines": machines(folder), "odd": str(folder / "odd")}
    with running_server(folder, tables) as running:
        yield running


@pytest.fixture
def page(browser: Browser, server: RunningServer) -> Iterator[Page]:
    with opened(browser, server.http_url) as found:
        expect(found.locator("#map-state")).to_contain_text("24 live files")
        yield found


def test_the_error_of_a_run_stays_until_the_text_changes(page: Page) -> None:
    error = page.locator("#query-error")
    run_query(page, "select * from machines where celsius > 'abc'")
    expect(error).to_be_visible()
    page.wait_for_timeout(LOOKED_MS)
    expect(error).to_contain_text("abc")
    expect(page.locator("#query-text")).to_have_attribute("aria-invalid", "true")
    page.press("#query-text", "End")
    page.locator("#query-text").press_sequentially(" ")
    expect(error).to_be_hidden()
    run_query(page, "select * from machines where celsius > 'abc'")
    expect(error).to_be_visible()
    run_query(page, "select 1 as one")
    expect(page.locator("#result-state")).to_contain_text("1 row")
    expect(error).to_be_hidden()


def test_an_error_that_comes_while_somebody_types_on_selects_nothing(page: Page) -> None:
    text, held = page.locator("#query-text"), held_back(page, "**/ui/api/query")
    run_query(page, "select celsiu from machines")
    text.press("Control+End")
    text.press_sequentially("\nwhere celsius > 1")
    let_through(page, held)
    expect(text).to_have_attribute("aria-invalid", "true")
    expect(page.locator("#query-error")).to_contain_text("select celsiu from machines")
    text.press_sequentially("0")
    expect(text).to_have_value("select celsiu from machines\nwhere celsius > 10")


def test_what_is_wrong_with_the_text_shows_while_it_is_typed(page: Page) -> None:
    error = page.locator("#query-error")
    type_query(page, "select * from machine")
    expect(error).to_contain_text("there is no table 'machine'")
    expect(error).to_contain_text("did you mean machines? the tables are: machines, odd")
    type_query(page, "select * from machines")
    expect(error).to_be_hidden()
    type_query(page, "machines | evaluate bag_unpack(machine)", "kql")
    expect(error).to_be_visible()
    type_query(page, "", "kql")
    expect(error).to_be_hidden()


def test_names_are_completed_with_the_quotes_that_they_need(page: Page) -> None:
    page.select_option("#table", "odd")
    text = page.locator("#query-text")
    expect(text).to_have_value("select * from odd limit 100")
    for language, before, completed in (
        ("sql", "select * from odd where ord", f'select * from odd where "{ODD}"'),
        ("sql", 'select * from odd where "ord', f'select * from odd where "{ODD}"'),
        ("kql", "odd | where ord", f"odd | where ['{ODD}']"),
        ("kql", "odd | where ['ord", f"odd | where ['{ODD}']"),
    ):
        page.locator(f'input[value="{language}"]').check()
        text.fill("")
        text.press_sequentially(before)
        option = page.locator('#completions [role="option"]', has_text=ODD)
        expect(option).to_be_visible()
        option.click()
        expect(text).to_have_value(completed)
        text.press_sequentially(" > 7")
        text.press("Control+Enter")
        expect(page.locator("#result-state")).to_contain_text("1 row in")


def test_completions_that_were_asked_for_stay_open(page: Page) -> None:
    text = page.locator("#query-text")
    text.fill("")
    text.press_sequentially("select ")
    text.press("Control+Space")
    expect(page.locator("#completions")).to_be_visible()
    page.wait_for_timeout(500)
    expect(page.locator("#completions")).to_be_visible()


@pytest.mark.parametrize("move", ["End", "Control+End", "Home", "a click"])
def test_completions_go_when_the_caret_does(page: Page, move: str) -> None:
    text, written = page.locator("#query-text"), "select cels from machines where celsius > 1"
    text.fill(written.replace("cels ", " ", 1))
    text.evaluate("box => box.setSelectionRange(7, 7)")
    text.press_sequentially("cels")
    expect(page.locator("#completions")).to_be_visible()
    if move == "a click":
        width = text.evaluate("box => box.clientWidth")
        text.click(position={"x": width - 5, "y": 8})
    else:
        text.press(move)
    expect(page.locator("#completions")).to_be_hidden()
    text.press("Tab")
    expect(text).to_have_value(written)


def test_a_query_that_nobody_wrote_follows_the_language(page: Page) -> None:
    text, kql = page.locator("#query-text"), page.locator('input[value="kql"]')
    kql.check()
    expect(text).to_have_value("machines | take 100")
    page.wait_for_timeout(LOOKED_MS)
    expect(page.locator("#query-error")).to_be_hidden()
    page.locator('input[value="sql"]').check()
    expect(text).to_have_value("select * from machines limit 100")
    text.fill("select 1")
    kql.check()
    expect(text).to_have_value("select 1")


def test_a_query_can_be_typed_before_the_table_is_known(browser: Browser, server: RunningServer) -> None:
    with opened(browser, "about:blank") as page:
        facts = held_back(page, "**/ui/api/tables/machines")
        page.goto(server.http_url)
        text = page.locator("#query-text")
        text.select_text()
        expect(page.locator("#map-state")).to_have_text("being looked for")
        expect(page.locator("#version")).to_have_text("")
        let_through(page, facts)
        expect(page.locator("#version")).to_have_text("version 23")
        page.keyboard.insert_text("select 1 as one")
        expect(text).to_have_value("select 1 as one")


def test_rows_of_another_table_do_not_stay(page: Page) -> None:
    run_query(page, "select machine from machines limit 3")
    expect(page.locator("#result-state")).to_contain_text("3 rows")
    page.select_option("#table", "odd")
    expect(page.locator("#query-text")).to_have_value("select * from odd limit 100")
    expect(page.locator("#result")).to_be_hidden()
    type_query(page, "odd | count", "kql")
    page.select_option("#table", "machines")
    expect(page.locator("#query-text")).to_have_value("select machine from machines limit 3")
    expect(page.locator('input[value="sql"]')).to_be_checked()


def test_skipping_to_the_query_keeps_what_is_shown(page: Page) -> None:
    page.select_option("#table", "odd")
    run_query(page, f'select "{ODD}" from odd')
    expect(page.locator("#result-state")).to_contain_text("2 rows")
    page.locator(".skip").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#query-text")).to_be_focused()
    expect(page.locator("#result-state")).to_contain_text("2 rows")
    expect(page.locator("#table")).to_have_value("odd")
    expect(page).to_have_url(re.compile("table=odd"))


def test_a_chart_names_all_its_series_on_a_small_screen(browser: Browser, server: RunningServer) -> None:
    with opened(browser, server.http_url, viewport={"width": 320, "height": 700}) as page:
        expect(page.locator("#map-state")).to_contain_text("24 live files")
        values = "a_mean_of_a_long_name = avg(celsius), max(celsius)"
        run_query(page, f"machines | summarize {values} by bin(at, 6h), machine | render timechart", "kql")
        names = page.locator("#chart-legend li")
        expect(names).to_have_count(10)
        assert all(one.is_visible() for one in names.all())
        assert page.evaluate("document.documentElement.scrollWidth") <= 320
