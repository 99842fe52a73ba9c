"""Runs are summed up fairly, and every promise can fail."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bench.pages import verdicts
from bench.promises import Budget, judge
from bench.readers import READERS, Result
from bench.report import headline, save, tables
from bench.summary import fastest, find, ratio, rows

BUDGET = Budget(tail_bytes=7_000_000, footer_bytes=20_000, table_state_bytes=10_000)
KINDS = {reader.name: reader.kind for reader in READERS}
LARGE, SMALL = 10_000_000, 1_000_000


def _result(reader: str, query: str, *, files: int = LARGE, table: str = "ladder", **facts: Any) -> Result:
    usual = {"first_s": 0.01, "hundred_s": 0.05, "all_s": 4.0, "cpu_s": 1.0, "peak_mb": 40.0}
    return Result(
        reader=reader,
        kind=KINDS[reader],
        query=query,
        table=table,
        files=files,
        round=0,
        failure=facts.pop("failure", None),
        facts=usual | facts,
    )


def _good_run() -> list[Result]:
    reads = {"bytes_read": 140_000, "requests": 4, "round_trips": 4, "commits_read": 1, "row_groups_read": 0}
    return [
        _result("lazydelta", "hundred", **reads),
        _result("lazydelta", "hundred", files=SMALL, **reads),
        _result("lazydelta", "hundred", table="no checksums", **reads | {"bytes_read": 7_010_000}),
        _result("lazydelta", "today", **reads),
        _result("lazydelta", "all", peak_mb=100.0),
        _result("lazydelta", "predicate", all_s=10.0),
        _result("bare stream", "all", all_s=2.1),
        _result("kernel-java", "hundred", hundred_s=8.0),
        _result("kernel-java", "predicate", all_s=60.0),
        _result("kernel-rust", "hundred", hundred_s=None, first_s=0.2),
        _result("delta-rs", "all", hundred_s=60.0, all_s=60.0),
        _result("delta-rs", "predicate", all_s=90.0),
        _result("duckdb", "hundred", hundred_s=None, first_s=47.0),
        _result("duckdb", "all", all_s=70.0),
        _result("daft", "hundred", failure="cannot: x"),
    ]


def _failed(results: list[Result]) -> list[str]:
    checks = judge(rows(results), files=LARGE, smaller=SMALL, budget=BUDGET)
    return [check.promise for check in checks if not check.passed]


def _changed(reader: str, query: str, *, table: str = "ladder", **facts: Any) -> list[Result]:
    return [
        msgspec.structs.replace(run, facts=run.facts | facts)
        if (run.reader, run.query, run.table, run.files) == (reader, query, table, LARGE)
        else run
        for run in _good_run()
    ]


def test_a_good_run_keeps_every_promise() -> None:
    assert _failed(_good_run()) == []


@pytest.mark.parametrize(
    ("reader", "query", "facts", "promise"),
    [
        ("duckdb", "hundred", {"first_s": 4.9}, "100 times faster than the fastest peer"),
        ("kernel-java", "hundred", {"hundred_s": 0.04}, "faster than kernel-java"),
        ("kernel-rust", "hundred", {"first_s": 0.04}, "faster than kernel-rust"),
        ("lazydelta", "hundred", {"peak_mb": 50.0}, "under 50 MB"),
        ("lazydelta", "hundred", {"peak_mb": 60.0}, "memory for the first 100 grows"),
        ("lazydelta", "hundred", {"hundred_s": 0.08}, "time to the first 100 grows"),
        ("lazydelta", "hundred", {"round_trips": 5}, "at most 4 round trips"),
        ("lazydelta", "hundred", {"bytes_read": 500_001}, "at most 500 KB"),
        ("lazydelta", "today", {"commits_read": 2}, "only the commits needed"),
        ("lazydelta", "today", {"row_groups_read": 1}, "the checkpoint is not touched"),
        ("lazydelta", "all", {"all_s": 4.3}, "within 2 times the bare stream"),
        ("lazydelta", "all", {"peak_mb": 120.0}, "under 120 MB"),
        ("delta-rs", "all", {"all_s": 19.0}, "5 times faster than the fastest peer"),
        ("lazydelta", "predicate", {"all_s": 31.0}, "a predicate on JSON statistics"),
    ],
)
def test_each_promise_fails_when_its_figure_is_off(
    reader: str, query: str, facts: dict[str, Any], promise: str
) -> None:
    assert any(promise in failed for failed in _failed(_changed(reader, query, **facts)))


def test_more_bytes_than_the_tail_and_the_table_state_fail_without_checksums() -> None:
    run = _changed("lazydelta", "hundred", table="no checksums", bytes_read=BUDGET.bytes_max + 1)
    assert any("without .crc" in failed for failed in _failed(run))


def test_what_was_not_measured_fails_and_says_so() -> None:
    run = [one for one in _good_run() if one.reader != "lazydelta"]
    checks = judge(rows(run), files=LARGE, smaller=SMALL, budget=BUDGET)
    assert not any(check.passed for check in checks)
    assert all("not measured" in check.measured for check in checks)


def test_an_eager_reader_answers_the_first_hundred_with_all() -> None:
    row = find(rows(_good_run()), files=LARGE, reader="delta-rs", query="hundred")
    assert row is not None and row.seconds is not None
    assert (row.seconds.median, row.note) == (60.0, "loads all first")


def test_a_ratio_keeps_the_spread_of_both_sides() -> None:
    made = rows(
        [_result("lazydelta", "all", all_s=seconds) for seconds in (1.0, 2.0, 4.0)]
        + [_result("delta-rs", "all", all_s=seconds) for seconds in (8.0, 12.0)]
    )
    ours, theirs = (find(made, files=LARGE, reader=name, query="all") for name in ("lazydelta", "delta-rs"))
    assert ours is not None and theirs is not None
    told = ratio(theirs, ours)
    assert (told.least, told.median, told.most) == (2.0, 5.0, 12.0)


def test_a_reader_that_failed_stays_in_the_table_with_its_reason() -> None:
    made = rows(_good_run())
    assert "| daft | - |  |  |  |  | cannot: x |" in tables(made)
    best = fastest(made, files=LARGE, query="hundred", kinds=("peer",))
    assert best is not None and best.reader == "duckdb"


def test_a_reader_that_failed_once_shows_how_often() -> None:
    runs = [_result("duckdb", "all"), _result("duckdb", "all", failure="killed by signal 9")]
    (row,) = rows(runs)
    assert row.seconds is not None
    assert row.note == "failed 1 of 2 times"


def test_the_report_names_the_ratio_and_each_verdict() -> None:
    made = rows(_good_run())
    assert "duckdb takes 940.00 times as long" in headline(made, LARGE)
    told = verdicts(judge(made, files=LARGE, smaller=SMALL, budget=BUDGET))
    assert told.count("PASS") == len(judge(made, files=LARGE, smaller=SMALL, budget=BUDGET))


def test_a_run_is_saved_as_text_json_and_picture(tmp_path: Path) -> None:
    made = rows(_good_run())
    picture = save(tmp_path, "run", _good_run(), made, judge(made, files=LARGE, smaller=SMALL, budget=BUDGET))
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert len(json.loads((tmp_path / "run.json").read_text())["results"]) == len(_good_run())
    assert "daft" in (tmp_path / "run.md").read_text()
