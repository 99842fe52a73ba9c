"""The ladder on a real table: every rung is measured in its own process, in its time, and writes nothing."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

import lazydelta as ld
from bench.generate import generate
from bench.spec import TableSpec
from lazydelta.cli.show_bench import show_ladder
from lazydelta.errors import InvalidRequestError, TableNotFoundError
from lazydelta.ladder.climb import climb
from lazydelta.ladder.newest_period import newest_period
from lazydelta.ladder.rung_process import run_rung
from lazydelta.ladder.rungs import RUNGS, LadderReport, Rung, RungName, RungRequest, RungRun
from lazydelta.sidecar import SidecarConfig
from lazydelta.upkeep.build import build_sidecar
from tests.support.actions import add, stats
from tests.support.command_line import run_inside
from tests.support.table_builder import TableBuilder
from tests.support.telemetry_table import storage_of

SPEC = TableSpec(
    files=500,
    event_hour=True,
    date_partition=False,
    tail_commits=3,
    tail_adds=5,
    tail_removes=2,
    data="newest",
)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ladder") / "table"
    generate(folder, SPEC)
    build_sidecar(storage_of(folder), config=SidecarConfig())
    return folder


@pytest.fixture(scope="module")
def report(table: Path) -> LadderReport:
    before = contents(table)
    told = climb(str(table), seconds=500, storage_options={"delta.cache.bytes": "10000000"})
    assert contents(table) == before, "a measurement writes nothing"
    return told


def contents(folder: Path) -> dict[str, tuple[int, int]]:
    """Every file with its size and time."""
    found = {path: path.stat() for path in folder.rglob("*") if path.is_file()}
    return {str(path): (stat.st_size, stat.st_mtime_ns) for path, stat in found.items()}


def runs(report: LadderReport) -> dict[RungName, RungRun]:
    return {result.name: result.run for result in report.rungs if result.run is not None}


def test_every_rung_is_measured(report: LadderReport, table: Path) -> None:
    found = runs(report)
    assert list(found) == list(RungName)
    assert [run.error for run in found.values()] == [None] * len(RUNGS)
    assert not any(run.is_cut for run in found.values())
    live = ld.open(table).info().num_files
    assert found[RungName.EVERY_FILE].count == live == report.files_known
    names = (RungName.OPEN, RungName.FIRST_FILE, RungName.FILES, RungName.ROWS)
    assert [found[name].count for name in names] == [0, 1, 100, 100]


def test_the_filter_gives_the_same_files_from_everywhere(report: LadderReport, table: Path) -> None:
    found = runs(report)
    expected = sum(1 for _ in ld.open(table).scan(report.where).files())
    assert expected > 0
    for name in (RungName.FILTER_CHECKPOINT, RungName.FILTER_SIDECAR, RungName.FILTER_AGAIN):
        assert found[name].count == expected
    assert found[RungName.FILTER_CHECKPOINT].source.startswith("checkpoint")
    assert found[RungName.FILTER_SIDECAR].source.startswith("sidecar")


def test_figures_are_of_one_rung_alone(report: LadderReport) -> None:
    found = runs(report)
    assert found[RungName.OPEN].requests < found[RungName.EVERY_FILE].requests
    assert found[RungName.FILTER_AGAIN].bytes_read < found[RungName.FILTER_SIDECAR].bytes_read
    for told in found.values():
        assert told.first_ms is not None
        assert 0 < told.first_ms <= told.total_ms
        assert told.peak_bytes is not None


def test_the_newest_period_is_that_of_the_newest_files(table: Path, tmp_path: Path) -> None:
    found = newest_period(ld.open(table))
    assert found is not None and found.where.startswith("_event_hour >= '20260210")
    hour = stats(5, low={"ts": "2026-02-08T10:00:00.000Z"}, high={"ts": "2026-02-08T12:30:00.000Z"})
    by_time = TableBuilder(tmp_path / "a", partition_columns=()).commit([add("f", partition={}, stats=hour)])
    found = newest_period(ld.open(by_time.path))
    assert found is not None and found.where.startswith("ts >= '2026-02-08T11:30:00")
    assert sum(1 for _ in ld.open(by_time.path).scan(found.where).files()) == 1
    timeless = TableBuilder(tmp_path / "b", schema={"value": "double"}, partition_columns=())
    timeless.commit([add("f", partition={})])
    assert newest_period(ld.open(timeless.path)) is None
    assert newest_period(ld.open(TableBuilder(tmp_path / "c").commit().path)) is None


def test_a_filter_that_makes_no_sense_is_an_error_before_anything_is_measured(table: Path) -> None:
    with pytest.raises(InvalidRequestError, match="there is no column nothing"):
        climb(str(table), where="nothing = 3")


def test_what_the_time_does_not_reach_is_told(table: Path) -> None:
    told = climb(str(table), seconds=1)
    assert told.is_time_up
    assert told.rungs[-1].run is None
    assert told.rungs[-1].skipped == "the time was up"


def test_a_rung_whose_time_is_up_is_cut(table: Path) -> None:
    told = run_rung(request_of(RUNGS[-1], table, seconds=0.0001))
    assert told.is_cut


def test_a_rung_that_fails_says_why(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit([add("gone.parquet", stats=stats(5))])
    [rows] = [rung for rung in RUNGS if rung.name is RungName.ROWS]
    told = run_rung(request_of(rows, table.path, seconds=300))
    assert told.error is not None and "is not there" in told.error


def test_a_rung_whose_process_is_killed_is_told_and_the_others_go_on(
    table: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[int] = []

    class Watched(subprocess.Popen[bytes]):
        """Of the processes of rungs the first of all is killed, and the second of the second round."""

        def __init__(self, command: list[str], **how: Any) -> None:
            super().__init__(command, **how)
            started.append(self.pid)
            if len(started) in (1, len(rungs) + 1):
                self.kill()

    rungs = RUNGS[:2]
    monkeypatch.setattr(subprocess, "Popen", Watched)
    monkeypatch.setattr("lazydelta.ladder.climb.RUNGS", rungs)
    monkeypatch.setattr("lazydelta.ladder.climb._SLOW_MS", 600_000.0)  # a busy machine is not a slow rung
    told = climb(str(table), seconds=600, rounds=2)
    killed = "its process was killed by signal 9"
    assert [rung.name for rung in told.rungs if rung.run is not None and rung.run.error] == [RUNGS[0].name]
    assert told.rungs[0].run is not None and told.rungs[0].run.error == killed
    assert [rung.failed for rung in told.rungs] == [None, killed]
    assert [rung.rounds for rung in told.rungs] == [1, 2]
    assert told.rungs[1].run is not None and told.rungs[1].run.error is None
    show_ladder(told, as_json=False)
    assert f"failed   {RUNGS[1].name.value}, in round 2: {killed}" in capsys.readouterr().out


def test_no_table_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError):
        climb(str(tmp_path / "nothing"))


def test_the_command_tells_it_as_lines_and_as_json(table: Path) -> None:
    ended = run_inside("bench", table, "--seconds", "1")
    assert ended.exit_code == 0, ended.err
    assert ended.lines[0].split("\t")[:3] == ["rung", "first", "complete"]
    assert len(ended.lines) == 1 + len(RUNGS) + 3
    ended = run_inside("bench", table, "--seconds", "1", "--where", "_event_hour > '2026'", "--json")
    told = json.loads(ended.out)
    assert told["where"] == "_event_hour > '2026'"
    assert [rung["name"] for rung in told["rungs"]] == [rung.name.value for rung in RUNGS]


def test_what_a_rung_is_told_is_on_no_command_line(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be a secret, and `ps` shows command lines to everybody."""
    commands: list[list[str]] = []

    class Watched(subprocess.Popen[bytes]):
        def __init__(self, command: list[str], **how: Any) -> None:
            commands.append(command)
            super().__init__(command, **how)

    monkeypatch.setattr(subprocess, "Popen", Watched)
    monkeypatch.setattr("lazydelta.ladder.climb.RUNGS", RUNGS[:1])
    secret = "secret-of-the-pages-0123456789abcdef"
    told = climb(str(table), seconds=500, storage_options={"delta.page.signing_key": secret})
    assert runs(told)[RUNGS[0].name].error is None
    assert any("rung_process" in word for command in commands for word in command)
    assert not any(secret in word for command in commands for word in command)


def request_of(rung: Rung, url: Path, *, seconds: float) -> RungRequest:
    return RungRequest(rung=rung, url=str(url), storage_options={}, version=None, where=None, seconds=seconds)
