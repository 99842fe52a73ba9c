"""A stream that is killed, Java included: afterwards every row is there, and there once.

Nothing in the product knows of these tests: a kill is aimed by what appears on disk, the process waits for it
before the next step (`tests.support.held_stream`), and what it left is looked at afterwards. Kills at random
moments meet a process that does not wait.
"""

from __future__ import annotations

import json
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from lazydelta.spark import ingest_stream
from tests.support.spark import run_command
from tests.support.stream_process import StreamProcess
from tests.support.stream_steps import STEPS, Left, Step
from tests.support.stream_world import Sight, StreamWorld, batches_in
from tests.support.telemetry_rows import TelemetryFiles

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

FILES_PER_RUN = 4  # enough for a checkpoint and its sidecar
RANDOM_KILLS = 2
CHECKPOINT_EVERY = 2  # commits
CONTINUOUS = (
    *("--stream", "continuous", "--trigger-interval", "200 milliseconds"),
    *("--option", "maxFilesPerTrigger=1"),
)


@pytest.fixture
def world(tmp_path: Path) -> StreamWorld:
    return StreamWorld(tmp_path)


@pytest.fixture
def started(world: StreamWorld, tmp_path: Path) -> Iterator[Callable[..., StreamProcess]]:
    running: list[StreamProcess] = []

    def start(*more: str, hold_at: Step | None = None) -> StreamProcess:
        arguments = [
            *(str(world.source), str(world.target)),
            *("--event-time", "timestamp", "--format", "json", "--json"),
            *("--checkpoint-location", str(world.location)),
            *("--property", f"delta.checkpointInterval={CHECKPOINT_EVERY}"),
            *more,
        ]
        held = None if hold_at is None else (str(tmp_path), str(STEPS.index(hold_at)))
        process = StreamProcess(arguments, log=tmp_path / f"run-{len(running):02}.log", held=held)
        running.append(process)
        return process

    yield start
    for process in running:
        if process.is_running():
            process.kill()


def test_killed_in_a_batch_it_goes_on_where_it_was(
    spark: SparkSession, world: StreamWorld, started: Callable[..., StreamProcess]
) -> None:
    """Wherever in a batch the kill arrives; the loop over all steps is below."""
    telemetry = TelemetryFiles(world.source)
    for _ in range(4):
        telemetry.add(rows=20, bad=3)
    process = started(*CONTINUOUS)
    assert process.wait_for(lambda: world.look().begun >= 1), process.output()
    assert process.is_running(), process.output()
    process.kill()
    ended = ingest_stream(
        str(world.source), str(world.target), session=spark, checkpoint_location=str(world.location),
        event_time="timestamp", format="json", options={"maxFilesPerTrigger": "1"},
    )  # fmt: skip
    assert ended.ended == "drained"
    _assert_every_row_once(world, telemetry)
    _assert_sidecar_is_right(world)


@pytest.mark.long("nine starts of Java: a kill at every step of a batch, and at random")
@pytest.mark.timeout(1800)
def test_killed_at_every_step_and_at_random_every_row_is_there_once(
    world: StreamWorld, started: Callable[..., StreamProcess]
) -> None:
    telemetry = TelemetryFiles(world.source)

    def run(hold_at: Step | None = None) -> StreamProcess:
        while telemetry.count < world.look().begun + 1 + FILES_PER_RUN:
            telemetry.add(rows=20, bad=3)
        return started(*CONTINUOUS, hold_at=hold_at)

    for step in STEPS:
        before = world.look()
        _kill_at(step, before, world, run(step))
    delays = random.Random(5)
    for _ in range(RANDOM_KILLS):
        process = run()
        before = world.look()
        assert process.wait_for(lambda before=before: world.look() != before), process.output()
        time.sleep(delays.uniform(0, 2.5))
        assert process.is_running(), process.output()
        process.kill()
    last = started("--stream", "available-now")
    assert last.wait() == 0, last.output()
    _assert_every_row_once(world, telemetry)
    _assert_sidecar_is_right(world)


def _kill_at(step: Step, before: Sight, world: StreamWorld, process: StreamProcess) -> None:
    is_reached = process.wait_for(lambda: step.is_reached(before, world.look()))
    assert is_reached and process.is_running(), f"{step.name}\n{process.output()}"
    process.kill()
    left = Left(
        now=world.look(),
        in_rejects=batches_in(world.rejects),
        in_target=batches_in(world.target),
        unfinished_sidecars=world.unfinished_sidecars(),
    )
    assert step.is_hit(left), f"{step.name}\n{left}\n{process.output()}"


def _assert_every_row_once(world: StreamWorld, telemetry: TelemetryFiles) -> None:
    rows = DeltaTable(world.target).to_pyarrow_table(columns=["id"])["id"].to_pylist()
    records = DeltaTable(world.rejects).to_pyarrow_table(columns=["record"])["record"].to_pylist()
    bad = [record.split('"id": "')[1].split('"')[0] for record in records]
    assert Counter(rows) == dict.fromkeys(telemetry.good, 1)
    assert Counter(bad) == dict.fromkeys(telemetry.bad, 1)
    batches = world.look().done + 1
    assert batches_in(world.target) == batches_in(world.rejects) == dict.fromkeys(range(batches), 1)


def _assert_sidecar_is_right(world: StreamWorld) -> None:
    assert world.look().manifests > 0
    run_command("sidecar", "verify", world.target)


@pytest.mark.parametrize(
    ("number", "whole_group"),
    [
        (signal.SIGTERM, True),
        pytest.param(signal.SIGTERM, False, marks=pytest.mark.long("another start of Java")),
        pytest.param(signal.SIGINT, True, marks=pytest.mark.long("another start of Java")),
    ],
)
def test_asked_to_stop_it_finishes_the_batch_and_sums_up(
    number: signal.Signals, whole_group: bool, world: StreamWorld, started: Callable[..., StreamProcess]
) -> None:
    telemetry = TelemetryFiles(world.source)
    for _ in range(6):
        telemetry.add(rows=20, bad=1)
    process = started(*CONTINUOUS)
    assert process.wait_for(lambda: world.look().begun >= 1), process.output()
    process.ask_to_stop(number, whole_group=whole_group)
    assert process.wait() == 0, process.output()
    sight = world.look()
    # A batch that was noted in the last moment was not begun.
    assert sight.done == sight.begun or sight.begun not in batches_in(world.target)
    summary = json.loads(process.output().splitlines()[-1])
    assert summary["ended"] == "stopped"
    assert summary["batches"] == sight.done + 1 >= 1
    assert "Traceback" not in process.output()


@pytest.mark.long("another start of Java; what a second signal does is in test_stream_rules.py")
def test_asked_twice_it_ends_at_once(world: StreamWorld, started: Callable[..., StreamProcess]) -> None:
    telemetry = TelemetryFiles(world.source)
    for _ in range(2):
        telemetry.add(rows=20, bad=1)
    noted, *_ = STEPS
    process = started(*CONTINUOUS, hold_at=noted)  # in a batch that never ends
    before = world.look()
    assert process.wait_for(lambda: noted.is_reached(before, world.look())), process.output()
    asked = 0
    while process.is_running() and asked < 50:  # two that come at once, to a process held back, are one
        process.ask_to_stop(signal.SIGTERM, whole_group=True)
        time.sleep(0.5)
        asked += 1
    assert asked >= 2
    assert process.wait() == 143, process.output()
