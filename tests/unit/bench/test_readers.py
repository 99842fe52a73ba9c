"""Readers run in processes of their own, agree on a small table, and fail in words."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bench.generate import generate
from bench.readers import READERS, Reader, run_once
from bench.run import log_budget, run_table
from bench.spec import TableSpec
from bench.tables import CachedTable, without_checksums

# Those that live in the project's own environment; the others need downloads.
HERE = [reader for reader in READERS if reader.script and reader.environment is None]
SPEC = TableSpec(files=3_000, tail_commits=5, order="spark", checkpoint_dv_every=0, data="newest")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> CachedTable:
    path = tmp_path_factory.mktemp("bench") / "table"
    return CachedTable(path=path, spec=SPEC, expected=generate(path, SPEC))


@pytest.mark.parametrize(
    "names",
    [
        {"lazydelta"},
        pytest.param(
            {"lazydelta", "delta-rs", "polars", "bare stream"},
            marks=pytest.mark.long("a process for each reader and query"),
        ),
    ],
    ids=["one", "all"],
)
def test_the_readers_of_this_environment_find_what_the_generator_promised(
    table: CachedTable, names: set[str]
) -> None:
    readers = [reader for reader in HERE if reader.name in names]
    results = list(run_table(table, readers, rounds=1, timeout_s=120))
    failures = {(r.reader, r.query): r.failure for r in results if r.failure}
    assert {key for key in failures if not str(failures[key]).startswith("cannot:")} == set()
    counted = {r.reader: r.facts["files"] for r in results if r.query == "all"}
    expected = dict.fromkeys(names, table.expected.live_files) | {"bare stream": SPEC.files}
    assert counted == {name: expected[name] for name in names}
    assert all(r.facts["cpu_s"] > 0 and r.facts["peak_mb"] > 0 for r in results if not r.failure)


def test_a_reader_that_breaks_is_told_with_its_last_words(tmp_path: Path) -> None:
    facts, failure = run_once(_reader("delta-rs"), tmp_path, "all", timeout_s=60)
    assert facts == {}
    assert failure is not None and failure.startswith("exit code 1: ")


def test_a_reader_that_takes_too_long_is_stopped_and_told(
    table: CachedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    endless = [sys.executable, "-c", "import time; time.sleep(600)"]
    monkeypatch.setattr("bench.readers.command", lambda *_: endless)
    facts, failure = run_once(_reader("delta-rs"), table.path, "all", timeout_s=0.01)
    assert (facts, failure) == ({}, "stopped after 0 s")


@pytest.mark.long("one more process; a reader that breaks is in the default suite")
def test_a_reader_that_cannot_answer_says_why(table: CachedTable) -> None:
    _, failure = run_once(_reader("polars"), table.path, "predicate", timeout_s=60)
    assert failure == "cannot: its plan skips no file by the log's statistics"


def test_the_table_without_checksums_is_the_same_log_otherwise(table: CachedTable) -> None:
    bare = without_checksums(table)
    names = {path.name for path in (table.path / "_delta_log").iterdir()}
    assert {path.name for path in (bare / "_delta_log").iterdir()} == {
        n for n in names if not n.endswith(".crc")
    }


def test_the_budget_counts_the_tail_the_footer_and_the_table_state(table: CachedTable) -> None:
    budget = log_budget(table)
    assert budget.tail_bytes == table.expected.tail_bytes
    assert 0 < budget.table_state_bytes < budget.footer_bytes < 50_000


def _reader(name: str) -> Reader:
    return next(reader for reader in READERS if reader.name == name)
