"""A reader: `python -m bench.chaos.reader WORLD TABLE NAME THREADS EVENTS`. Asks until it is ended.

Contract: question N of a thread follows from the run's seed, the reader's name and N. A line is told before
each question and after it, so that whoever watches sees which one hangs. What must not be is saved in
`failures`: the question, the answer's difference, the explanation, the table's log as it is and the kept
one.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import random
import signal
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

import lazydelta as ld
from bench.chaos.checks import CHECKS, Asked, Check, WrongAnswer, every_row, last_hour, take
from bench.chaos.events import Events
from bench.chaos.judge import kind_of
from bench.chaos.kept_rows import KeptRows
from bench.chaos.objects import Objects
from bench.chaos.replay import Replay
from bench.chaos.world import TableSpec, World, load_world
from lazydelta import limits
from lazydelta.errors import LazyDeltaError

FAILURES_SAVED_MAX = 5  # by one process
CACHED = {"delta.cache.bytes": str(64 << 20)}
OPTIONS: tuple[dict[str, str], ...] = (
    CACHED,
    CACHED,
    CACHED,
    CACHED | {"delta.commit.parallelism": "1"},
    {"delta.cache.bytes": "0"},
    {"delta.cache.bytes": "0", "delta.commit.parallelism": "2"},
    {"delta.cache.bytes": "200000"},
    CACHED | {"delta.sidecar.enabled": "false"},
    {"delta.cache.bytes": "0", "delta.sidecar.enabled": "false"},
)
DELTA_COMMITS = 3  # the tails of these tables are short: delta files serve them from here on
DEADLINE = {"delta.scan.timeout_seconds": "0.05"}
# Asked of the same table after that, while others go on: so many, and which. Most scans are cheap.
MORE_COUNTS = (0, 0, 1, 2, 4, 6, 9)
MORE: tuple[Check, ...] = (take, last_hour)
DEADLINE_SHARE = 0.01
EVERY_ROW_SHARE = 0.001  # of the questions to a table on the local disk


def main(world_path: str, table: str, name: str, threads: str, events_path: str) -> None:
    """Until the process is ended."""
    limits.SIDECAR_DELTA_COMMITS = DELTA_COMMITS
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    world = load_world(world_path)
    reader = Reader(world, world.table(table), name, Events(Path(events_path)))
    each = [threading.Thread(target=reader.ask, args=(number,)) for number in range(int(threads))]
    for thread in each:
        thread.start()
    for thread in each:
        thread.join()


class Reader:
    """The questions of one process to one table."""

    def __init__(self, world: World, spec: TableSpec, name: str, events: Events) -> None:
        self._world, self._spec, self._name, self._events = world, spec, name, events
        self._replay, self._rows = Replay(spec.kept), KeptRows(spec.kept)
        self._replay.newest()
        self._failures = 0

    def ask(self, thread: int) -> None:
        """One question after the other."""
        for number in range(10**9):
            seed = f"{self._world.seed}/{self._name}/{thread}/{number}"
            self.ask_one(seed, at=f"{self._name}/{thread}")

    def ask_one(self, seed: str, *, at: str) -> None:
        """The question of a seed."""
        dice = random.Random(seed)
        check = dice.choices(list(CHECKS), list(CHECKS.values()))[0]
        if self._spec.store == "local" and dice.random() < EVERY_ROW_SHARE:
            check = every_row
        options = dice.choice(OPTIONS)
        has_deadline = dice.random() < DEADLINE_SHARE
        if has_deadline:
            options = options | DEADLINE
        asked = Asked(self._world, self._spec, self._replay, self._rows, dice)
        told = {"reader": at, "seed": seed, "kind": check.__name__}
        self._events.tell(**told, is_begin=True)
        started = time.perf_counter()
        outcome = "ok"
        try:
            table = asked.open(options=options)
            for each in (check, *dice.choices(MORE, k=dice.choice(MORE_COUNTS))):
                asked.kind = each.__name__
                each(asked, table)
        except WrongAnswer as wrong:
            outcome = f"FAILED: {wrong.kind}"
            self._save(seed, asked, {"wrong": wrong.kind, **wrong.detail})
        except LazyDeltaError as error:
            outcome = self._judged(seed, asked, error, has_deadline=has_deadline)
        except Exception as error:  # noqa: BLE001 - told, saved, and the run fails
            outcome = f"FAILED: {type(error).__name__}"
            self._save(seed, asked, {"error": repr(error), "traceback": traceback.format_exc()})
        self._events.tell(
            **told,
            outcome=outcome,
            scans=asked.scans,
            version=asked.version,
            ms=round((time.perf_counter() - started) * 1000, 1),
        )

    def _judged(self, seed: str, asked: Asked, error: LazyDeltaError, *, has_deadline: bool) -> str:
        """How the question came out; what is no error that may be is saved."""
        kind = None
        told = {"error": str(error), "traceback": traceback.format_exc()}
        try:
            kind = kind_of(error, asked, has_deadline=has_deadline)
        except Exception:  # noqa: BLE001 - the store did not tell: it stays an error that must not be
            told["judge"] = traceback.format_exc()
        if kind is None:
            self._save(seed, asked, told)
        return kind or f"FAILED: {type(error).__name__}"

    def _save(self, seed: str, asked: Asked, detail: dict[str, Any]) -> None:
        self._failures += 1
        if self._failures > FAILURES_SAVED_MAX:
            return
        folder = Path(self._world.folder) / "failures" / seed.replace("/", "-")
        folder.mkdir(parents=True, exist_ok=True)
        told = {
            "seed": seed,
            "table": self._spec.name,
            "version": asked.version,
            "query": asked.query,
            "explained": asked.explained,
            **detail,
        }
        (folder / "failure.json").write_text(json.dumps(told, indent=1, default=str))
        _save_log(self._spec, folder)


def _save_log(spec: TableSpec, folder: Path) -> None:
    """The log as the store has it now, sidecars included; the kept one is in the run's folder for good."""
    objects = Objects(spec)
    for name in objects.listing("_delta_log"):
        body = objects.get(name)
        if body is not None:
            path = folder / "table" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(body)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main(*sys.argv[1:])
    ld.cache.clear()
    os._exit(0)
