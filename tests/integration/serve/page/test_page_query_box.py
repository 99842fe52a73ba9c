"""Queries on the web page in Chromium: rows, charts, explain, errors, cancel, completion, links."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from deltalake import write_deltalake
from playwright.sync_api import Browser, Page, Request, expect

from tests.support.kusto_tables import TYPES
from tests.support.page_views import held_back, let_through, opened, run_query, type_query
from tests.support.row_tables import eventually
from tests.support.serving import RunningServer, running_server

SPAN = r"[\d,.]+ m?s"  # of time, on whatever machine
ENDLESS = "select count(*) from range(100000000000) as t(a) where a % 7 = 1"
# Whether something is drawn on the chart, read from a copy: the browser complains of canvases read often.
HAS_INK = """() => {
  const chart = document.querySelector("#panel-chart canvas");
  const copy = Object.assign(document.createElement("canvas"), { width: chart.width, height: chart.height });
  const context = copy.getContext("2d", { willReadFrequently: true });
  context.drawImage(chart, 0, 0);
  return context.getImageData(0, 0, copy.width, copy.height).data
    .some((value, at) => at % 4 === 3 && value > 0);
}"""
# All that the button says from now on, however shortly.
SAID = """() => {
  window.said = [];
  const button = document.querySelector("#share");
  new MutationObserver(() => window.said.push(button.textContent)).observe(button, { childList: true });
}"""


@pytest.fixture(scope="module")
def server(machines: Callable[..., str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("served")
    write_deltalake(folder / "types", TYPES)
    tables = {"machines": machines(folder, days=3), "types": str(folder / "types")}
    with running_server(folder, tables) as running:
        yield running


@pytest.fixture
def page(browser: Browser, server: RunningServer) -> Iterator[Page]:
    with opened(browser, server.http_url) as found:
        expect(found.locator("#map-state")).to_contain_text("36 live files")
        yield found


def cell(page: Page, row: int, column: int) -> str:
    return page.locator(f'[data-at="{row},{column}"]').inner_text()


def test_a_query_in_sql_fills_the_grid(page: Page) -> None:
    run_query(page, "select machine, count(*) as n from machines group by 1 order by 1")
    expect(page.locator("#result-state")).to_have_text(
        re.compile(rf"^5 rows in {SPAN}, the first after {SPAN}$")
    )
    assert [cell(page, at, 0) for at in range(5)] == [f"press-{at}" for at in range(5)]
    expect(page.locator('[role="columnheader"]')).to_have_text(["row", "machine", "n"])
    page.click("#tab-explain")
    told = page.locator("#panel-explain")
    for word in ("requests", "round trips", "bytes", "first row", "pushed", "left to DuckDB"):
        expect(told).to_contain_text(word)
    expect(told).to_contain_text("machines at version 35")


def test_whole_numbers_keep_their_digits_and_texts_are_texts(page: Page) -> None:
    run_query(page, "select l, s, n, '<b>bold</b>' as html from types")
    expect(page.locator("#result-state")).to_contain_text("3 rows")
    assert [cell(page, at, 0) for at in range(3)] == [str(2**53 + 1), str(-(2**63)), "null"]
    assert cell(page, 0, 2) == '{"x":1,"y":["a"]}'
    assert cell(page, 0, 3) == "<b>bold</b>"


def test_many_rows_are_few_elements(page: Page) -> None:
    run_query(page, "select a, a * 2 as b from range(60000) as t(a) order by a")
    expect(page.locator("#result-state")).to_contain_text("60,000 rows in")
    assert page.locator('[role="gridcell"]').count() < 200
    page.locator(".grid").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Control+End")
    expect(page.locator('[data-at="59999,1"]')).to_be_focused()
    assert cell(page, 59999, 1) == "119998"
    page.keyboard.press("PageUp")
    page.keyboard.press("Home")
    assert page.locator('[role="gridcell"]').count() < 200


def test_a_result_with_times_is_a_time_series_and_others_are_bars(page: Page) -> None:
    run_query(page, "machines | summarize avg(celsius) by bin(at, 6h), machine | render timechart", "kql")
    expect(page.locator("#tab-chart")).to_have_attribute("aria-selected", "true")
    canvas = page.locator("#panel-chart canvas")
    expect(canvas).to_have_attribute("data-kind", "time")
    expect(canvas).to_have_attribute("data-points", "60")
    expect(page.locator("#chart-text")).to_have_text("avg_celsius over at, 5 series")
    page.wait_for_function(HAS_INK)
    run_query(page, "select machine, max(celsius) as hottest from machines group by 1 order by 1")
    expect(canvas).to_have_attribute("data-kind", "bars")
    expect(canvas).to_have_attribute("data-points", "5")
    page.wait_for_function(HAS_INK)
    page.select_option("#chart-kind", "time")
    expect(page.locator("#chart-text")).to_have_text("a time series needs a column of times")
    run_query(page, "select machine from machines limit 3")
    expect(page.locator("#chart-text")).to_have_text("a chart needs a column of numbers")


def test_a_time_series_has_a_line_for_each_group_and_tells_what_it_cannot_place(page: Page) -> None:
    rows = [
        "(timestamp '2026-02-04 00:00:00', 'a', 'x', 1.0)",
        "(timestamp '2026-02-04 00:00:00', 'a', 'y', 5.0)",
        "(timestamp '2026-02-04 01:00:00', 'a', 'x', 2.0)",
        "(timestamp '2026-02-04 01:00:00', 'a', 'y', null)",
        "(null, 'b', null, 3.0)",
        "(timestamp '2026-02-04 01:00:00', 'b', null, 4.0)",
    ]
    run_query(page, f"select * from (values {', '.join(rows)}) as t(moment, one, other, n)")
    expect(page.locator("#result-state")).to_contain_text("6 rows")
    page.click("#tab-chart")
    told = "n over moment, 3 series; 2 values without a time or a number"
    expect(page.locator("#chart-text")).to_have_text(told)
    expect(page.locator("#chart-legend li")).to_have_text(["a, x", "a, y", "b, null"])


def test_charts_of_earlier_queries_are_let_go_of(page: Page) -> None:
    browser = page.context.new_cdp_session(page)
    canvases = browser.send("Runtime.evaluate", {"expression": "HTMLCanvasElement.prototype"})["result"]
    for rows in (1, 2, 3):
        run_query(page, f"select * from range({rows}) as t(a)")
        expect(page.locator("#result-state")).to_contain_text(f"{rows} row")
        page.click("#tab-chart")
        drawn = page.locator('#panel-chart canvas[data-drawn="true"]')
        expect(drawn).to_be_visible()
        drawn.evaluate("chart => { delete chart.dataset.drawn; }")
        page.click("#theme")
        expect(drawn).to_be_visible()
    asked = {"prototypeObjectId": canvases["objectId"]}
    found = browser.send("Runtime.queryObjects", asked)["objects"]  # collects garbage first
    length = {"objectId": found["objectId"], "functionDeclaration": "function () { return this.length; }"}
    told = browser.send("Runtime.callFunctionOn", {**length, "returnByValue": True})
    assert told["result"]["value"] == 3, "the map, the row groups, and one chart"


def test_what_is_wrong_stands_at_the_query_with_its_place(page: Page) -> None:
    run_query(page, "select machine,\n  nothing\nfrom machines")
    error = page.locator("#query-error")
    expect(error).to_contain_text("Line 2, column 3")
    expect(error).to_contain_text("  nothing\n  ^")
    expect(page.locator("#query-text")).to_have_attribute("aria-invalid", "true")
    chosen = "box => box.value.slice(box.selectionStart, box.selectionEnd)"
    assert page.locator("#query-text").evaluate(chosen) == "nothing"
    run_query(page, "select '😀😀', nothing from machines")
    expect(error).to_contain_text("Line 1, column 14")
    assert page.locator("#query-text").evaluate(chosen) == "nothing"
    run_query(page, "machines | summarise count()", "kql")
    expect(error).to_contain_text("Line 1, column 12")
    expect(error).to_contain_text("did you mean summarize")
    run_query(page, "select 1")
    expect(error).to_be_hidden()
    run_query(page, "  ")
    expect(error).to_have_text("The query is empty.")


@pytest.mark.parametrize("way", ["Escape", "button"])
def test_a_query_is_cancelled(page: Page, server: RunningServer, way: str) -> None:
    running = server.process.served.admission.running
    run_query(page, ENDLESS)
    expect(page.locator("#result-state")).to_have_text("running")
    expect(page.locator("#cancel")).to_be_enabled()
    assert eventually(lambda: bool(running()))
    expect(page.locator("#result-progress")).to_have_text(re.compile(rf"^0 rows so far, {SPAN}$"))
    if way == "button":
        page.click("#cancel")
        expect(page.locator("#run")).to_be_focused()
    else:
        page.keyboard.press("Escape")
    expect(page.locator("#result-state")).to_have_text(re.compile("cancelled after .*; 0 rows came before"))
    expect(page.locator("#cancel")).to_be_disabled()
    assert eventually(lambda: not running())


def test_rows_that_came_before_a_cancel_stay(page: Page) -> None:
    slow = (
        "select a.at from machines a, machines b where a.celsius + b.celsius > 1e9 or a.machine <> b.machine"
    )
    run_query(page, slow)
    expect(page.locator('[data-at="0,0"]')).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#result-state")).to_have_text(re.compile("rows came before|there are more"))
    expect(page.locator('[data-at="0,0"]')).to_be_visible()


def test_completion_is_taken_by_keys(page: Page) -> None:
    text = page.locator("#query-text")
    text.fill("")
    text.press_sequentially("select cel")
    options = page.locator('#completions [role="option"]')
    expect(options.first).to_have_text(re.compile("^celsius"))
    text.press("ArrowDown")
    expect(text).to_have_attribute("aria-activedescendant", "completion-0")
    text.press("Enter")
    expect(text).to_have_value("select celsius")
    expect(page.locator("#completions")).to_be_hidden()
    text.press_sequentially(" from m")
    expect(options).to_have_text([re.compile("^machines")])
    text.press("Escape")
    expect(page.locator("#completions")).to_be_hidden()
    page.locator('input[value="kql"]').check()
    text.fill("machines | ")
    text.press("Control+Space")
    expect(page.locator("#completions")).to_contain_text("summarize")


def asks_what_follows(before: str) -> Callable[[Request], bool]:
    return lambda one: one.url.endswith("/completions") and one.post_data_json["before"] == before


def test_completions_are_taken_while_newer_ones_are_on_their_way(page: Page) -> None:
    text = page.locator("#query-text")
    text.fill("")
    with page.expect_request_finished(asks_what_follows("select ce")):
        text.press_sequentially("select ce")
    expect(page.locator("#completion-0")).to_have_text(re.compile("^celsius"))
    on_their_way = held_back(page, "**/ui/api/completions")
    with page.expect_request(asks_what_follows("select cel")):
        text.press_sequentially("l")
    text.press("ArrowDown")
    expect(text).to_have_attribute("aria-activedescendant", "completion-0")
    with page.expect_response("**/ui/api/completions"):
        let_through(page, on_their_way)
    expect(page.locator("#completion-0")).to_have_attribute("aria-selected", "true")
    with page.expect_request(asks_what_follows("select cels")):
        text.press_sequentially("s")
    text.press("Enter")
    expect(text).to_have_value("select celsius")


def test_everything_is_reached_by_tab(page: Page) -> None:
    run_query(page, "select 1 as one")
    expect(page.locator("#result-state")).to_contain_text("1 row")
    page.evaluate("document.activeElement.blur()")
    seen = []
    for _ in range(40):
        page.keyboard.press("Tab")
        seen.append(
            page.evaluate(
                "(({id, className, tagName}) => id || className || tagName)(document.activeElement)"
            )
        )
    for wanted in (
        "skip",
        "table",
        "share",
        "theme",
        "run",
        "query-text",
        "tab-grid",
        "grid",
        "CANVAS",
        "SUMMARY",
    ):
        assert wanted in seen, (wanted, seen)
    page.locator("#tab-grid").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#tab-chart")).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#panel-explain")).to_be_visible()


def test_a_link_shares_the_view(browser: Browser, server: RunningServer) -> None:
    context = {"permissions": ["clipboard-read", "clipboard-write"]}
    with opened(browser, server.http_url, **context) as page:
        expect(page.locator("#map-state")).to_contain_text("36 live files")
        page.select_option("#table", "types")
        expect(page.locator("#version")).to_have_text("version 0")
        type_query(page, "types | where i > 0 | project i, 'ü & #'", "kql")
        run_query(page, "types | where i > 0 | project i, x = 'ü & #'", "kql")
        page.click("#tab-chart")
        page.evaluate(SAID)
        page.click("#share")
        page.wait_for_function("window.said.includes('Copied')")
        link = page.evaluate("navigator.clipboard.readText()")
    assert link.startswith(f"{server.http_url}/ui/#table=types&language=kql&query=")
    with opened(browser, link) as other:
        expect(other.locator("#table")).to_have_value("types")
        expect(other.locator("#query-text")).to_have_value("types | where i > 0 | project i, x = 'ü & #'")
        expect(other.locator('input[value="kql"]')).to_be_checked()
        expect(other.locator("#tab-chart")).to_have_attribute("aria-selected", "true")
