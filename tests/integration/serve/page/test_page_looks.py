"""What a person sees on the web page: true colours, whole texts, and places that are empty."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from itertools import pairwise

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from playwright.sync_api import Browser, Page, expect

from tests.support.page_views import opened, run_query, type_query, violations
from tests.support.serving import RunningServer, running_server

SMALL = {"width": 320, "height": 700}
# Whether the canvas has a pixel in the colour of that name, as it is on the map where files are many.
IS_PAINTED = """name => {
  const map = document.querySelector("#map canvas");
  const copy = Object.assign(document.createElement("canvas"), { width: map.width, height: map.height + 1 });
  const context = copy.getContext("2d", { willReadFrequently: true });
  context.drawImage(map, 0, 0);
  context.fillStyle = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  context.fillRect(0, map.height, 1, 1);
  const [r, g, b] = context.getImageData(0, map.height, 1, 1).data;
  const { data } = context.getImageData(0, 0, map.width, map.height);
  for (let at = 0; at < data.length; at += 4) {
    const isNear = Math.abs(data[at] - r) + Math.abs(data[at + 1] - g) + Math.abs(data[at + 2] - b) < 9;
    if (data[at + 3] > 80 && isNear) return true;
  }
  return false;
}"""

# A key that comes before the chart's first frame.
FIRST_KEY = """() => {
  document.querySelector("#tab-chart").click();
  const chart = document.querySelector("#panel-chart canvas");
  chart.focus();
  chart.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight" }));
}"""


@pytest.fixture(scope="module")
def server(machines: Callable[..., str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("served")
    nested = pa.struct([("x", pa.int32()), ("ys", pa.list_(pa.string()))])
    plain = pa.table({"a": [1, 2], "s": pa.array([None, None], nested), "at": [dt.datetime.now(dt.UTC)] * 2})
    write_deltalake(folder / "plain", plain)
    tables = {
        "machines": machines(folder, days=3),
        "plain": str(folder / "plain"),
        "gone": str(folder / "gone"),
    }
    with running_server(folder, tables) as running:
        yield running


@pytest.fixture
def page(browser: Browser, server: RunningServer) -> Iterator[Page]:
    with opened(browser, f"{server.http_url}/ui/#table=machines") as found:
        expect(found.locator("#map-state")).to_contain_text("36 live files")
        yield found


def legend(page: Page) -> list[str]:
    return page.locator("#map-legend .legend:visible").all_inner_texts()


def test_the_map_shows_only_what_the_query_says_of_the_files(page: Page) -> None:
    expect(page.locator("#map-state")).to_contain_text("the query may read all of them")
    assert legend(page) == ["read"]
    page.wait_for_function(f"({IS_PAINTED})('--read')")
    type_query(page, "select * from plain")
    expect(page.locator("#map-state")).to_contain_text("the query does not read this table")
    assert legend(page) == ["live"]
    page.wait_for_function(f"({IS_PAINTED})('--plain')")
    assert not page.evaluate(IS_PAINTED, "--read")
    type_query(page, "select * from machines where _event_hour >= '2026020600'")
    expect(page.locator("#map-state")).to_contain_text("and skips")
    assert legend(page) == ["read", "skipped"]
    page.wait_for_function(f"({IS_PAINTED})('--read')")


def test_a_table_without_a_sidecar_has_no_empty_picture_of_it(
    browser: Browser, server: RunningServer
) -> None:
    with opened(browser, f"{server.http_url}/ui/#table=plain") as page:
        expect(page.locator("#groups-state")).to_have_text(
            "There is none, and no checkpoint that one could stand beside."
        )
        expect(page.locator("#groups")).to_be_hidden()
        expect(page).to_have_title("plain · lazydelta")
        types = page.locator("#schema tbody td:nth-child(2)")
        expect(types).to_have_text(["long", "struct<x: integer, ys: array<string>>", "timestamp"])


def test_a_table_that_cannot_be_opened_shows_no_empty_pictures(page: Page) -> None:
    page.select_option("#table", "gone")
    expect(page.locator("#notice")).to_contain_text("no Delta table here")
    for part in ("#map", "#map-legend", "#newest", "#versions", "#schema"):
        expect(page.locator(part)).to_be_hidden()
    page.select_option("#table", "machines")
    for part in ("#map", "#map-legend", "#newest", "#versions", "#schema"):
        expect(page.locator(part)).to_be_visible()


def test_no_rows_are_told_in_little_room(page: Page) -> None:
    expect(page.locator("#result-empty")).to_be_visible()
    run_query(page, "select machine, celsius from machines where celsius < -1000")
    expect(page.locator("#result-state")).to_contain_text("0 rows")
    expect(page.locator("#result-empty")).to_be_hidden()
    box = page.locator(".grid").bounding_box()
    assert box is not None
    assert box["height"] < 80
    page.click("#tab-chart")
    expect(page.locator("#chart-text")).to_have_text("there are no rows")


def test_the_mark_below_an_error_points_at_it_on_a_small_screen(
    browser: Browser, server: RunningServer
) -> None:
    with opened(browser, f"{server.http_url}/ui/#table=machines", viewport=SMALL) as page:
        expect(page.locator("#map-state")).to_contain_text("36 live files")
        run_query(page, f"select {'celsius, ' * 20}celsiu from machines where celsius > 3 and celsius < 1000")
        expect(page.locator("#query-error")).to_contain_text("celsiu")
        lines = page.locator("#query-error").inner_text().split("\n")
        at = next(number for number, line in enumerate(lines) if line.strip() == "^")
        assert lines[at - 1][lines[at].index("^") :].startswith("celsiu from")
        assert lines[at - 1].startswith("…")
        assert lines[at - 1].endswith("…")
        lower = """line => {
          const error = document.getElementById("query-error");
          const before = error.offsetHeight;
          error.textContent = error.textContent.replace(line, "x");
          return before - error.offsetHeight;
        }"""
        assert page.evaluate(lower, lines[at - 1]) == 0, "the line is broken"


def test_completions_stand_below_the_line_that_is_typed(browser: Browser, server: RunningServer) -> None:
    with opened(browser, f"{server.http_url}/ui/#table=machines", viewport=SMALL) as page:
        expect(page.locator("#map-state")).to_contain_text("36 live files")
        page.fill("#query-text", "")
        page.locator("#query-text").press_sequentially(f"select {'celsius, ' * 10}cels")
        expect(page.locator("#completions")).to_be_visible()
        text, found = (page.locator(name).bounding_box() for name in ("#query-text", "#completions"))
        assert text is not None
        assert found is not None
        lines = page.evaluate("parseFloat(getComputedStyle(document.getElementById('query-text')).fontSize)")
        assert found["y"] > text["y"] + 3 * lines, "it covers the lines before"


def test_values_are_not_cut_where_there_is_room(browser: Browser, server: RunningServer) -> None:
    for size in (SMALL, {"width": 1400, "height": 900}):
        with opened(browser, f"{server.http_url}/ui/#table=machines", viewport=size) as page:
            run_query(page, "select machine, _event_hour, 'abcdefghij' as ten from machines limit 3")
            expect(page.locator("#result-state")).to_contain_text("3 rows")
            cut = (
                "cells => cells.filter(one => one.scrollWidth > one.clientWidth).map(one => one.textContent)"
            )
            assert page.locator(".grid .cell").evaluate_all(cut) == []


def test_no_value_is_hidden_by_a_line_break_and_no_null_becomes_a_zero(page: Page) -> None:
    values = "('a' || chr(10) || 'b' || chr(9) || 'c', 1.5::double), ('none', null), ('not', 'nan'::double)"
    run_query(page, f"select * from (values {values}) as t(name, v)")
    expect(page.locator("#result-state")).to_contain_text("3 rows")
    cell = page.locator('[data-at="0,0"]')
    expect(cell).to_have_text("a↵b⇥c")
    expect(cell).to_have_attribute("title", "a\nb\tc")
    page.click("#tab-chart")
    expect(page.locator("#chart-text")).to_have_text("v by name; 2 without a number")
    expect(page.locator("#panel-chart canvas")).to_have_attribute("data-points", "1")


def test_times_say_their_zone(page: Page) -> None:
    expect(page.locator("#version-facts")).to_contain_text(" UTC")
    expect(page.locator("#newest-files th").first).to_have_text("time (UTC)")


SPANS = [  # from, to, and of the marks on it the first, the second and the last
    ("2026-02-09T00:53:00Z", "2026-02-09T05:10:00Z", ["02-09 01:00", "02-09 02:00", "02-09 05:00"]),
    ("2026-02-09T00:53:00Z", "2026-02-11T00:05:00Z", ["02-09 12:00", "02-10 00:00", "02-11 00:00"]),
    ("2026-02-09T00:53:00Z", "2026-02-13T23:05:00Z", ["2026-02-10", "2026-02-11", "2026-02-13"]),
    ("2025-02-09T00:53:00Z", "2026-02-11T00:05:00Z", ["2025-04", "2025-07", "2026-01"]),
    ("2026-02-09T00:00:01Z", "2026-02-09T00:00:04Z", ["00:00:01", "00:00:02", "00:00:04"]),
    ("2026-02-09T00:00:01Z", "2026-02-09T00:00:01Z", ["00:00:01"] * 3),
    ("1700-02-09T00:00:00Z", "2026-02-09T00:00:00Z", ["1800-01", "1900-01", "2000-01"]),
]


def test_marks_of_time_stand_at_round_times(page: Page) -> None:
    script = """async ([first, last]) => {
      const { timeTicks } = await import("./static/ticks.js");
      return timeTicks(Date.parse(first), Date.parse(last), 6).map(one => one.text);
    }"""
    for first, last, texts in SPANS:
        told = page.evaluate(script, [first, last])
        assert len(told) <= 7, told
        assert [told[0], told[min(1, len(told) - 1)], told[-1]] == texts


def test_numbers_beside_long_texts_keep_their_digits(page: Page) -> None:
    script = """async () => {
      const { exactJson } = await import("./static/format.js");
      return ["x", "\\n", '"', "\\\\", '\\\\"'].flatMap(one => {
        const long = one.repeat(6000000);
        const [text, number, small] = exactJson(`[${JSON.stringify(long)},-9223372036854775808,7]`);
        return text === long ? [number, small] : [];
      });
    }"""
    assert page.evaluate(script) == ["-9223372036854775808", 7] * 5


def test_marks_of_time_keep_off_each_other_where_files_are_few(
    browser: Browser, server: RunningServer
) -> None:
    record = """
        window.marks = new Map();
        const fillText = CanvasRenderingContext2D.prototype.fillText;
        CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
            fillText.call(this, text, x, y);
            if (/\\d:\\d/.test(text)) window.marks.set(text, [x, this.measureText(text).width]);
        };
    """
    address = f"{server.http_url}/ui/#table=plain"
    with opened(browser, address, script=record, viewport=SMALL) as page:
        expect(page.locator("#map-state")).to_contain_text("1 live file")
        page.wait_for_function("window.marks.size > 0")
        marks = sorted(page.evaluate("[...window.marks.values()]"))
        assert all(one[0] + one[1] <= other[0] for one, other in pairwise(marks)), marks


def test_a_chart_tells_its_values_by_keys_and_by_pointer(page: Page) -> None:
    run_query(page, "select machine, count(*) as n, 7 as seven from machines group by 1, 3 order by 1")
    expect(page.locator("#result-state")).to_contain_text("5 rows")
    counts = [page.locator(f'[data-at="{row},1"]').inner_text() for row in range(5)]
    page.evaluate(FIRST_KEY)
    expect(page.locator("#chart-text")).to_have_text("n by machine; seven not drawn")
    expect(page.locator("#chart-point")).to_have_text(f"press-0: {counts[0]}")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#chart-point")).to_have_text(f"press-1: {counts[1]}")
    page.wait_for_function("document.querySelector('#panel-chart canvas').dataset.drawn")
    box = page.locator("#panel-chart canvas").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] - 20, box["y"] + box["height"] / 2)
    expect(page.locator("#chart-point")).to_have_text(f"press-4: {counts[4]}")
    assert violations(page) == []
    run_query(page, "machines | summarize n = count() by bin(at, 1d) | order by at asc", "kql")
    expect(page.locator("#result-state")).to_contain_text("3 rows")
    page.locator("#panel-chart canvas").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#chart-point")).to_contain_text("2026-02-04 00:00:00 UTC, n: ")
