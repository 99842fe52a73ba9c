"""The ladder's figures are summed up, judged and told as they were measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from bench.ladder_cells import cells, find
from bench.ladder_levels import LEVELS
from bench.ladder_page import Results, ladder_page, save_ladder, seconds
from bench.ladder_picture import bars
from bench.ladder_promises import Budget, judge_ladder
from bench.ladder_runs import Run
from bench.promises import Check

BUDGET = Budget(projected_bytes=1_000, manifest_bytes=100, tail_bytes=50)
ANSWERS = {"hour": 10, "day": 20, "month": 30, "all": 40, "take": 100, "event": 10}
# A ladder as the seeds want it: every rung better than the one below.
GOOD: dict[str, dict[str, Any]] = {
    "L0": {"peak_mb": 5_000.0, "first_s": 60.0, "all_s": 60.0},
    "L1": {"peak_mb": 100.0, "first_s": 2.0, "all_s": 9.0},
    "L2": {"peak_mb": 100.0, "first_s": 1.0, "all_s": 8.0},
    "L3": {"peak_mb": 45.0, "first_s": 0.5, "all_s": 6.0},
    "L4": {"peak_mb": 45.0, "first_s": 0.1, "all_s": 6.0},
    "L5": {"peak_mb": 40.0, "first_s": 0.1, "all_s": 5.0},
    "L6": {"peak_mb": 20.0, "first_s": 0.1, "all_s": 0.1},
    "L7": {"peak_mb": 20.0, "first_s": 0.1, "all_s": 0.1, "arrow_mb": 3.0},
    "L8": {"peak_mb": 1.0, "first_s": 0.001, "all_s": 0.001, "cold_s": 0.1, "cache_bytes": 9_000},
    "L8s": {"peak_mb": 1.0, "first_s": 0.001, "all_s": 0.001, "requests": 0},
}
IO = {"requests": 10, "round_trips": 4, "bytes_read": 2_000}


def _run(level: str, query: str = "hour", place: Any = "disk", table: str = "ladder", **facts: Any) -> Run:
    return Run(table=table, level=level, query=query, place=place, round=0, facts=facts)


def _good() -> list[Run]:
    runs = []
    for place in ("disk", "store"):
        for level, facts in GOOD.items():
            runs.append(_run(level, place=place, **(IO | facts)))
            take_s = 0.01 if level in ("L7", "L8", "L8s") else facts["all_s"]
            runs.append(_run(level, "take", place, **(IO | facts | {"all_s": take_s})))
        runs.append(_run("L7", "all", place, peak_mb=45.0, all_s=9.0, first_s=0.1))
        runs.append(_run("L2", "tail", place, peak_mb=5.0, all_s=0.1, first_s=0.1))
        runs.append(_run("L7", place=place, table="narrow", all_s=0.10, bytes_read=1_000))
        runs.append(_run("L7", place=place, table="wide", all_s=0.15, bytes_read=1_500))
    return runs


def _changed(level: str, place: str = "disk", query: str = "hour", **facts: Any) -> list[Run]:
    """The good ladder with other facts in one place."""
    return [
        msgspec.structs.replace(run, facts=run.facts | facts)
        if (run.level, run.place, run.query, run.table) == (level, place, query, "ladder")
        else run
        for run in _good()
    ]


def _failed(runs: list[Run]) -> list[str]:
    return [check.promise for check in judge_ladder(cells(runs), BUDGET) if not check.passed]


def test_a_ladder_as_the_seeds_want_it_keeps_every_promise() -> None:
    assert _failed(_good()) == []


@pytest.mark.parametrize(
    ("runs", "words"),
    [
        (_changed("L7", "store", round_trips=5), "4 sequential round trips"),
        (_changed("L7", "store", bytes_read=2_151), "twice the matching row groups"),
        (_changed("L7", arrow_mb=5.0), "Arrow allocation"),
        (_changed("L7", peak_mb=25.0), "20 MB beyond the tail"),
        (_changed("L0", all_s=49.0), "500 times faster than the fastest peer to completion"),
        (_changed("L7", query="all", peak_mb=51.0), "every file through the sidecar"),
        (_changed("L8", cold_s=0.019), "20 times faster than the first"),
        (_changed("L8s", "store", requests=1), "no request at all"),
        (_changed("L5", "store", own_requests=9), "explain tells"),
        (_changed("L5", "store", own_round_trips=3), "explain tells"),
        (_changed("L3", all_s=8.5), "L3 + sidecar (disk)"),
        (_changed("L4", "store", requests=12), "L4 + manifest (store)"),
        (_changed("L6", peak_mb=41.0), "L6 + pruning (disk)"),
        (_changed("L7", query="take", all_s=0.2), "L7 + early stop (disk)"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_broken_promise_is_found(runs: list[Run], words: str) -> None:
    assert any(words in promise for promise in _failed(runs)), _failed(runs)


def test_telling_a_round_trip_too_many_is_no_flattery() -> None:
    assert _failed(_changed("L5", "store", own_round_trips=5)) == []


def test_a_quicker_peer_is_the_one_that_counts() -> None:
    runs = [*_good(), _run("duckdb", first_s=20.0, all_s=20.0)]
    assert any("fastest peer" in promise for promise in _failed(runs))


def test_a_wide_table_that_costs_thrice_the_bytes_is_found() -> None:
    runs = [*_good(), *[_run("L7", table="wide", all_s=0.1, bytes_read=9_000)] * 9]
    assert any("150 stat columns" in promise for promise in _failed(runs))


def test_what_was_not_measured_is_not_kept() -> None:
    checks = judge_ladder([], BUDGET)
    assert checks
    # Without a server nothing can differ from its account.
    assert [check.promise for check in checks if check.passed] == [
        "explain tells the requests and bytes that the server saw, and no fewer round trips"
    ]


def test_a_cell_is_the_median_of_its_rounds_and_remembers_failures() -> None:
    runs = [_run("L1", all_s=value) for value in (1.0, 3.0, 2.0)]
    runs.append(Run(table="ladder", level="L1", query="hour", place="disk", round=3, failure="broke"))
    cell = find(cells(runs), level="L1")
    assert cell is not None
    assert cell.figures["all_s"].median == 2.0
    assert cell.note == "failed 1 of 4 times"
    alone = cells([Run(table="ladder", level="L1", query="hour", place="disk", round=0, failure="broke")])
    assert find(alone, level="L1") is None
    assert alone[0].failure == "broke"


def _results(runs: list[Run]) -> Results:
    return Results(
        files=10_000_000,
        row_groups=1_000,
        sidecar_bytes=1,
        checkpoint_bytes=2,
        tail_commits=10,
        wide_files=3,
        latency_ms=30.0,
        answers=ANSWERS,
        budget=BUDGET,
        runs=runs,
        checks=[Check(promise="it holds", passed=True, measured="yes")],
    )


def test_the_page_has_every_level_in_both_places_beside_the_seeds() -> None:
    page = ladder_page(_results(_good()), picture_name="x.png")
    for level in LEVELS:
        assert page.count(f"| **{level.name}** {level.title} |") == 4
        assert level.seeds.memory in page
    assert "Behind 30 ms for every request" in page
    assert "| **L6** + pruning | 20 | ~5 MB | 100 ms | ~200 ms | 100 ms | ~1 s | 10 | 4 | 2,000 |" in page
    assert "PASS  it holds" in page


def test_a_level_that_failed_is_told_with_the_reason() -> None:
    broken = Run(table="ladder", level="L3", query="hour", place="disk", round=0, failure="fell over")
    runs = [run for run in _good() if run.level != "L3"] + [broken]
    page = ladder_page(_results(runs), picture_name="x.png")
    assert "| **L3** + sidecar | - |" in page
    assert "- L3: fell over" in page


def test_the_longest_bar_is_the_largest_figure_and_the_smallest_is_a_sliver() -> None:
    panel = bars(cells(_good())).split("\n\n")[2].splitlines()
    assert panel[1].startswith(f"  L0   {'█' * 52}  60.0 s")
    assert panel[9].split() == ["L8", "▏", "1", "ms"]


def test_results_are_saved_with_a_picture_and_read_again(tmp_path: Path) -> None:
    page = save_ladder(tmp_path, "ladder", _results(_good()))
    again = msgspec.json.decode((tmp_path / "ladder.json").read_bytes(), type=Results)
    assert ladder_page(again, picture_name="ladder.png") == page.read_text()
    assert (tmp_path / "ladder.png").stat().st_size > 10_000


def test_times_are_told_in_the_unit_that_reads_best() -> None:
    assert [seconds(value) for value in (None, 12.345, 0.25, 0.00123)] == [
        "-",
        "12.35 s",
        "250 ms",
        "1.23 ms",
    ]
