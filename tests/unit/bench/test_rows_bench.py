"""The benchmark of rows: its tables are what they say, its readers agree, its promises can fail."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest

import lazydelta as ld
from bench.promises import Check
from bench.rows import FULL, SMALL
from bench.rows_page import Results, rows_page, save_rows
from bench.rows_promises import cells, find, judge_rows
from bench.rows_runs import EVENTS, LIMIT_READERS, Run, Scale, run_groups, run_limit, run_prefetch, run_scans
from bench.rows_tables import ROWS_DELETED, RowsSpec, RowsTable, rows_table, with_deletion_vectors
from bench.summary import Figure

TINY = RowsSpec(files=3, file_bytes=300_000, devices=500, row_group_rows=8_000)
LIMIT = "10 files"
# A run in which every promise holds.
GOOD: dict[tuple[str, str, str], dict[str, Any]] = {
    ("limit", LIMIT, "lazydelta"): {"first_s": 0.05},
    ("limit", LIMIT, "kernel-rust"): {"first_s": 0.05},
    ("limit", LIMIT, "duckdb"): {"first_s": 3.0},
    ("limit", LIMIT, "delta-rs"): {"first_s": 3.0},
    ("limit", LIMIT, "polars"): {"first_s": 3.0},
    ("groups", "few groups", "lazydelta"): {"all_s": 1.5, "peak_mb": 400.0},
    ("groups", "few groups", "duckdb"): {"all_s": 1.0},
    ("groups", "few groups, deletion vectors", "lazydelta"): {"all_s": 9.0, "peak_mb": 900.0},
    ("scan", "1 MB", "lazydelta"): {"all_s": 1.0},
    ("scan", "1 MB", "ParquetFile"): {"all_s": 0.95},
    ("scan", "1 MB", "dataset"): {"all_s": 2.0},
    ("prefetch", "60 files", "prefetch"): {"waited_s": 0.2},
    ("prefetch", "60 files", "no prefetch"): {"waited_s": 1.0},
}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("cache")
        patch.setenv("LAZYDELTA_CACHE", str(folder))
        yield folder


@pytest.fixture(scope="module")
def table(cache: Path) -> RowsTable:
    return rows_table(TINY)


def test_a_table_has_the_rows_groups_and_bytes_that_it_tells(table: RowsTable) -> None:
    rows = ld.open(str(table.path)).to_arrow()
    assert rows.num_rows == table.rows
    assert len(rows.column("device").unique()) == table.devices
    assert len(rows.column("site").unique()) == 200
    assert abs(table.data_bytes / (TINY.files * TINY.file_bytes) - 1) < 0.2
    assert pq.read_metadata(table.data_paths[0]).num_row_groups == 2


def test_a_table_is_found_where_its_cache_was_moved_to(tmp_path: Path) -> None:
    spec = msgspec.structs.replace(TINY, files=1)
    before = rows_table(spec, folder=tmp_path / "before")
    (tmp_path / "before").rename(tmp_path / "after")
    found = rows_table(spec, folder=tmp_path / "after")
    assert found.rows == before.rows
    assert all(Path(path).exists() for path in found.data_paths)


def test_the_twin_with_deletion_vectors_lacks_the_first_rows_of_each_file(table: RowsTable) -> None:
    deleted = with_deletion_vectors(table)
    found = ld.open(str(deleted.path)).to_arrow()
    wanted = [pq.read_table(path).slice(ROWS_DELETED) for path in table.data_paths]
    assert found.num_rows == deleted.rows == sum(part.num_rows for part in wanted)
    assert sorted(found.column("value").to_pylist()) == sorted(
        value for part in wanted for value in part.column("value").to_pylist()
    )


@pytest.mark.long("fifteen processes; one part runs in the default suite, told to miscount")
def test_every_reader_of_every_part_finds_all_rows(table: RowsTable) -> None:
    scale = _tiny()
    runs = [
        *run_groups(scale, _silent),
        *run_scans(scale, _silent),
        *run_prefetch(scale, _silent, latency_ms=1.0),
    ]
    assert {(run.part, run.case, run.reader): run.failure for run in runs if run.failure} == {}
    assert {run.part for run in runs} == {"groups", "scan", "prefetch"}
    assert all(run.facts[EVENTS[run.part]] > 0 and run.facts["peak_mb"] > 0 for run in runs)


def test_readers_that_load_a_whole_log_fail_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = [reader for reader in LIMIT_READERS if reader.name in ("delta-rs", "lazydelta")]
    monkeypatch.setattr("bench.rows_runs.LIMIT_READERS", tuple(here))
    runs = list(run_limit(tmp_path, _tiny(), _silent))
    assert [run.reader for run in runs] == ["lazydelta", "delta-rs"]
    assert all(run.failure and run.failed_s is not None and run.facts == {} for run in runs)


def test_a_reader_that_miscounts_is_told_as_such(table: RowsTable, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = msgspec.structs.replace(table, rows=table.rows + 1)
    monkeypatch.setattr("bench.rows_runs.rows_table", lambda _: wrong)
    runs = list(run_scans(_tiny(), _silent))
    assert {run.failure for run in runs} == {f"counted {table.rows:,} rows instead of {table.rows + 1:,}"}


def test_every_promise_holds_on_a_good_run_and_deletion_vectors_are_not_judged() -> None:
    checks = judge_rows(cells(_runs()))
    assert len(checks) == 8
    assert [check for check in checks if not check.passed] == []


@pytest.mark.parametrize(
    ("key", "facts", "promise"),
    [
        (("limit", LIMIT, "duckdb"), {"first_s": 2.4}, "first row 50 times sooner than duckdb"),
        (("limit", LIMIT, "kernel-rust"), {"first_s": 0.02}, "no slower than 2 times kernel-rust"),
        (("groups", "few groups", "lazydelta"), {"all_s": 1.5, "peak_mb": 501.0}, "under 500 MB"),
        (("groups", "few groups", "duckdb"), {"all_s": 0.7}, "no slower than 2 times DuckDB"),
        (("scan", "1 MB", "dataset"), {"all_s": 0.85}, "at least 0.9 of pyarrow's throughput"),
        (("prefetch", "60 files", "prefetch"), {"waited_s": 0.4}, "hides at least 70% of the wait"),
    ],
)
def test_each_promise_fails_where_its_figure_does(
    key: tuple[str, str, str], facts: dict[str, Any], promise: str
) -> None:
    failed = [check for check in judge_rows(cells(_runs({key: facts}))) if not check.passed]
    assert len(failed) == 1
    assert promise in failed[0].promise


def test_a_promise_about_a_reader_that_was_not_run_fails() -> None:
    runs = [run for run in _runs() if run.reader not in ("kernel-rust", "polars")]
    failed = [check for check in judge_rows(cells(runs)) if not check.passed]
    assert [check.measured for check in failed] == ["not measured"] * 2


@pytest.mark.parametrize(("failed_s", "passed"), [(3.0, True), (1.0, False), (None, False)])
def test_a_peer_that_gave_up_counts_with_the_time_it_took(failed_s: float | None, passed: bool) -> None:
    runs = [run for run in _runs() if run.reader != "polars"]
    gone = Run(part="limit", case=LIMIT, reader="polars", round=0, failure="no memory", failed_s=failed_s)
    check = _check(judge_rows(cells([*runs, gone])), "sooner than polars")
    assert check.passed == passed
    assert "no memory" in check.measured


def test_a_peer_that_was_stopped_counts_with_its_time_less_that_of_its_imports() -> None:
    runs = [run for run in _runs() if run.reader != "polars"]
    for seconds, passed in (("12", False), ("1,012", True)):
        gone = Run(
            part="limit", case=LIMIT, reader="polars", round=0, failure=f"stopped after {seconds} s, …"
        )
        assert _check(judge_rows(cells([*runs, gone])), "sooner than polars").passed == passed


def test_figures_are_medians_with_their_range() -> None:
    runs = [
        Run(part="scan", case="x", reader="lazydelta", round=number, facts={"all_s": took, "peak_mb": 1.0})
        for number, took in enumerate((3.0, 1.0, 2.0))
    ]
    found = find(cells(runs), "scan", "x", "lazydelta")
    assert found is not None
    assert (found.seconds, found.rounds) == (Figure(median=2.0, least=1.0, most=3.0), 3)


def test_the_page_follows_from_the_saved_results(tmp_path: Path) -> None:
    results = _results(_runs())
    page = save_rows(tmp_path, "rows", results)
    saved = msgspec.json.decode((tmp_path / "rows.json").read_bytes(), type=Results)
    assert page.read_text() == rows_page(saved, picture_name="rows.png")
    assert (tmp_path / "rows.png").stat().st_size > 0
    assert "80%" in page.read_text()
    assert page.read_text().count("PASS") == 8


def test_the_full_run_is_ten_times_the_memory_budget_and_ten_million_files() -> None:
    assert FULL.log_files == 10 * SMALL.log_files == 10_000_000
    assert FULL.grouped.files * FULL.grouped.file_bytes >= 10 * 500_000_000
    assert all(spec.file_bytes / 27.5 <= 8192 or spec.row_group_rows <= 8192 for spec in FULL.waited.values())


def _tiny() -> Scale:
    return Scale(
        log_files=10,
        grouped=TINY,
        scanned={"tiny": TINY},
        waited={"tiny": TINY},
        rounds=1,
        peer_rounds=1,
        timeout_s=120,
    )


def _runs(changed: dict[tuple[str, str, str], dict[str, Any]] | None = None) -> list[Run]:
    told = GOOD | (changed or {})
    return [
        Run(part=part, case=case, reader=reader, round=0, facts={"peak_mb": 1.0} | facts)
        for (part, case, reader), facts in told.items()
    ]


def _results(runs: list[Run]) -> Results:
    return Results(
        log_files=10,
        grouped_bytes=100,
        grouped_rows=10,
        memory_limit="300MB",
        latency_ms=30.0,
        work_ms=30.0,
        is_full=False,
        runs=runs,
    )


def _check(checks: list[Check], words: str) -> Check:
    (found,) = [check for check in checks if words in check.promise]
    return found


def _silent(_text: str) -> None:
    """Say nothing."""
