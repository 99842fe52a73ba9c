"""The tables that the ladder stands on, the queries asked of them, and the right answers.

Hours partition the table, as the pipeline lays it out. The tail began fifty minutes ago, so the last hour is
half in the tail and half in the checkpoint. The wide pair has no tail at all: what two widths of statistics
cost is asked of the checkpoint's files alone.
Contract: tables and their sidecars are made once and kept in the cache; answers follow from the plan.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import msgspec
import numpy as np

from bench.files import Files
from bench.growing import hour_text
from bench.history import live_keys, plan
from bench.readers import last_words, printed_facts
from bench.sidecar_files import newest_manifest
from bench.spec import TODAY_US, TableSpec
from bench.tables import REPOSITORY, CachedTable, alone_at, cached_table
from bench.watched import memory_fence_kb, run_watched
from lazydelta.sidecar import LAZY_FOLDER, Manifest

TAKEN = 100
_HOUR_MS = 3_600_000
_TAIL_MINUTES = 50
_BUILD_TIMEOUT_S = 7_200
# Columns of statistics in the sidecar: three for each column of the table that has them.
NARROW_WIDTH, WIDE_WIDTH = 2, 50


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked: files of that hour and later, or some files whatever they are."""

    name: str
    title: str
    hours: int | None = None
    limit: int | None = None
    is_event_time: bool = False

    def where(self) -> str | None:
        """The predicate."""
        if self.hours is None:
            return None
        since = since_ms(self.hours)
        if self.is_event_time:
            return f"event_time >= timestamp '{np.datetime64(since, 'ms')}Z'".replace("T", " ")
        return f"_event_hour >= '{hour_text(since)}'"


HOUR = Query(name="hour", title="the last hour", hours=1)
TAKE = Query(name="take", title=f"take {TAKEN}", limit=TAKEN)
QUERIES = (
    HOUR,
    Query(name="day", title="24 hours", hours=24),
    Query(name="month", title="30 days", hours=720),
    Query(name="all", title="everything"),
    TAKE,
)
# The last hour asked by the event time itself, of which the pipeline's settings tell the hour.
EVENT = Query(name="event", title="the last hour by event_time", hours=1, is_event_time=True)


class LadderTable(msgspec.Struct, frozen=True, kw_only=True):
    """A table with its sidecar, and how many files each query must find."""

    table: CachedTable
    manifest: Manifest
    manifest_path: Path
    answers: dict[str, int]
    tail_files: int

    @property
    def path(self) -> Path:
        """Where the table lies."""
        return self.table.path


def ladder_spec(files: int) -> TableSpec:
    """The table of the ladder: six columns of statistics in the sidecar, JSON in the checkpoint."""
    return TableSpec(
        files=files,
        order="spark",
        event_hour=True,
        date_partition=False,
        time_settings=True,
        stats_width=NARROW_WIDTH,
        tail_commits=10,
        tail_adds=100,
        tail_removes=20,
        tail_dv_updates=5,
        tail_readds=1,
        tail_minutes=_TAIL_MINUTES,
    )


def width_spec(files: int, width: int) -> TableSpec:
    """One of the pair that differ in the width of their statistics; no tail."""
    return TableSpec(
        files=files,
        order="spark",
        event_hour=True,
        date_partition=False,
        stats="parsed",
        stats_width=width,
        tail_commits=0,
        tail_dv_updates=0,
        tail_minutes=_TAIL_MINUTES,
    )


def since_ms(hours: int) -> int:
    """The start of the hour that the window's first minute lies in; the window ends with the tail."""
    end = TODAY_US // 1000 + _TAIL_MINUTES * 60_000
    return (end - hours * _HOUR_MS) // _HOUR_MS * _HOUR_MS


def ladder_table(spec: TableSpec, *, rebuild: bool = False) -> LadderTable:
    """The table of a spec with its sidecar, made if they are not there."""
    table = cached_table(spec)
    folder = table.path / LAZY_FOLDER
    with alone_at(table.path):
        if rebuild:
            shutil.rmtree(folder, ignore_errors=True)
        if newest_manifest(folder) is None:
            _build_sidecar(table.path)
    found = newest_manifest(folder)
    assert found is not None, "the sidecar was built"
    numbers = live_keys(spec, plan(spec))[0]
    return LadderTable(
        table=table,
        manifest=found[1],
        manifest_path=found[0],
        answers=answers(spec, numbers) | {"all": len(numbers)},
        tail_files=int(np.count_nonzero(numbers >= spec.files)),
    )


def answers(spec: TableSpec, numbers: np.ndarray) -> dict[str, int]:
    """How many of these files, by number, the queries for a window find, and what a limit gives."""
    started = Files(spec, numbers).event_min_ms // _HOUR_MS * _HOUR_MS
    counts = {
        query.name: int(np.count_nonzero(started >= since_ms(query.hours)))
        for query in (*QUERIES, EVENT)
        if query.hours is not None
    }
    return counts | {"take": TAKEN}


def _build_sidecar(path: Path) -> None:
    print(f"building the sidecar of {path.name} …", file=sys.stderr)
    command = [sys.executable, "-m", "bench.sidecar_builder", "full", str(path), "--folder", LAZY_FOLDER]
    there = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    done = run_watched(command, timeout_s=_BUILD_TIMEOUT_S, memory_max_kb=memory_fence_kb(), env=there)
    if done.stopped or done.exit_code or printed_facts(done) is None:
        sys.exit(f"the sidecar of {path} was not built: {done.stopped or last_words(done)}")
