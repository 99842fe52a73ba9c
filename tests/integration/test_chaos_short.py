"""`make chaos` in small: a few seconds without Spark, and that its checks see what they are there for."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.chaos.checks import CHECKS, Asked, WrongAnswer, every_file, every_row
from bench.chaos.judge import is_readable
from bench.chaos.kept_rows import KeptRows
from bench.chaos.objects import Objects
from bench.chaos.replay import Replay, commit_path, json_lines
from bench.chaos.start import commit_body, make_start, put_start
from bench.chaos.world import TableSpec, World

ROOT = Path(__file__).resolve().parents[2]
SECONDS, SECONDS_MAX = 30, 240  # a busy machine has more time for as many scans
SCANS_MIN = 40


@pytest.mark.long("half a minute of writers that are killed, scans and faults on two stores")
def test_every_answer_is_right_while_writers_are_killed_and_the_line_is_faulty(tmp_path: Path) -> None:
    flags = ["--seconds", str(SECONDS), "--seconds-max", str(SECONDS_MAX), "--scans-min", str(SCANS_MIN)]
    flags += ["--folder", str(tmp_path)]
    flags += ["--stores", "local", "s3", "--files-per-hour", "3", "--kill-seconds", "3", "--no-spark"]
    command = [sys.executable, "-m", "bench.chaos", *flags]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=2 * SECONDS_MAX
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    (report,) = tmp_path.glob("run-*/report.json")
    facts = json.loads(report.read_text())["facts"]
    assert facts["verified scans"] >= SCANS_MIN
    assert facts["kills"] > 0
    assert facts["local: with deletion vectors"] > 0


@pytest.fixture
def asked(tmp_path: Path) -> Callable[[], Asked]:
    """A question to a small table that nobody writes to."""
    make_start(tmp_path / "start", hours=4, files_per_hour=6, seed=1)
    place = tmp_path / "local"
    url = str(place / "table")
    spec = TableSpec(
        name="local",
        store="local",
        folder=str(place),
        url=url,
        options={},
        reader_options={},
        rs_url=url,
        rs_options={},
    )
    put_start(spec)
    world = World(folder=str(tmp_path), seed=1, began=time.time(), hours=4, tables=[spec])
    return lambda: Asked(world, spec, Replay(spec.kept), KeptRows(spec.kept), random.Random(3))


@pytest.mark.parametrize("check", [*CHECKS, every_row])
def test_a_table_at_rest_gives_the_answers_of_its_replay(asked: Callable[[], Asked], check: Callable) -> None:
    question = asked()
    check(question, question.open(may_pin=False))
    assert question.scans


def test_a_file_that_the_answer_lacks_is_seen(asked: Callable[[], Asked]) -> None:
    _change_kept_commit(asked().spec, lambda lines: [*lines, _another(lines)])
    question = asked()
    with pytest.raises(WrongAnswer) as caught:
        every_file(question, question.open(may_pin=False))
    assert caught.value.kind == "lost"


def test_a_file_that_the_answer_has_too_much_is_seen(asked: Callable[[], Asked]) -> None:
    _change_kept_commit(asked().spec, lambda lines: lines[:-1])
    question = asked()
    with pytest.raises(WrongAnswer) as caught:
        every_file(question, question.open(may_pin=False))
    assert caught.value.kind == "wrong"


def test_rows_that_differ_are_seen(asked: Callable[[], Asked]) -> None:
    kept = asked().spec.kept
    first, *others = sorted(kept.rglob("*-start.parquet"))
    other = next(path for path in others if path.read_bytes() != first.read_bytes())
    other.unlink()  # a link: the table has the same file
    other.write_bytes(first.read_bytes())
    question = asked()
    with pytest.raises(WrongAnswer):
        every_row(question, question.open(may_pin=False))


def test_a_version_that_is_older_than_what_was_there_is_seen(asked: Callable[[], Asked]) -> None:
    spec = asked().spec
    newest = Replay(spec.kept).newest()
    commit_path(Path(spec.url) / "_delta_log", newest).unlink()
    for path in (Path(spec.url) / "_delta_log").glob("*checkpoint*"):
        path.unlink()
    with pytest.raises(WrongAnswer) as caught:
        asked().open(may_pin=False)
    assert caught.value.kind == "lost"


def test_a_version_counts_as_cleaned_up_only_where_the_log_cannot_tell_it(asked: Callable[[], Asked]) -> None:
    spec = asked().spec
    log = Path(spec.url) / "_delta_log"
    assert is_readable(Objects(spec), 3)
    commit_path(log, 2).unlink()
    assert not is_readable(Objects(spec), 3)
    assert is_readable(Objects(spec), 8)  # by its checkpoint
    assert is_readable(Objects(spec), 1)


def _change_kept_commit(spec: TableSpec, change: Callable) -> None:
    path = commit_path(spec.kept / "_delta_log", 0)
    path.write_bytes(commit_body(change(json_lines(path.read_bytes()))))


def _another(lines: list) -> dict:
    add = lines[-1]["add"]
    return {"add": {**add, "path": add["path"].replace("part-", "part-x")}}
