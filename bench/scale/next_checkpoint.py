"""The next checkpoint of a simulated table, and what its sidecar costs.

Why: a sidecar that is built again at every checkpoint must cost what changed, not what the table holds.
Contract: the commits after the simulated checkpoint append files and remove a few, anywhere in the history. A
checkpoint of Delta's is told at the newest version: its top file, and files of adds of which a builder reads
the footers of a few; these are all one file, and no row of it is read. The builder is the real one, in a
process of its own, and writes to the store.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import msgspec
import numpy as np

from bench.checkpoint import listed_sidecar, sidecar_name, write_row_groups, write_top_level
from bench.checkpoint_rows import file_rows
from bench.checkpoint_types import sidecar_schema
from bench.history import live_count
from bench.ladder_runs import Place
from bench.readers import last_words, printed_facts
from bench.scale.simulated import LOG, SimulatedTable, simulated_spec
from bench.spec import TableSpec, compact
from bench.tables import REPOSITORY
from bench.watched import memory_fence_kb, run_watched
from lazydelta import limits

_ROWS = 10_000  # of the one file of adds
_TIMEOUT_S = 1_800


class CheckpointCost(msgspec.Struct, frozen=True, kw_only=True):
    """What the sidecar of one more checkpoint took."""

    files: int
    changes: int  # files that the commits added or removed
    cpu_s: float  # of the builder: its time beside it is that of requests, and of a store that makes up parts
    requests: int
    round_trips: int
    bytes_read: int
    bytes_written: int
    memory_mb: float
    parts_written: int
    parts_referenced: int
    failure: str | None = None


def grown_spec(files: int) -> TableSpec:
    """A table of a size whose tail appends, and removes a file of the checkpoint in each commit."""
    spec = simulated_spec(files)
    return msgspec.structs.replace(
        spec,
        stats="both",
        checkpoint_parts=max(spec.checkpoint_parts, limits.CHECKPOINT_FOOTERS_MAX + 1),
        tail_removes=2,
        tail_dv_updates=0,
        tail_readds=0,
        seed=2,
    )


def write_next_checkpoint(table: SimulatedTable) -> None:
    """Tell of a checkpoint at the newest version."""
    spec, log = table.spec, table.folder / LOG
    folder = log / "_sidecars"
    folder.mkdir(exist_ok=True)
    count = spec.checkpoint_parts
    names = [sidecar_name(spec, part, spec.version) for part in range(count)]
    rows = file_rows(spec, np.arange(min(_ROWS, spec.files)), sidecar_schema(spec))
    write_row_groups(folder / names[0], iter([rows]), sidecar_schema(spec))
    for name in names[1 : limits.CHECKPOINT_FOOTERS_MAX]:
        if not (folder / name).exists():
            os.link(folder / names[0], folder / name)
    size = (folder / names[0]).stat().st_size
    listed = [listed_sidecar(name, size) for name in names]
    live = live_count(spec, table.history)
    top = write_top_level(spec, log, listed, actions=live, version=spec.version)
    hint = {"version": spec.version, "size": live, "v2Checkpoint": top | {"sidecarFiles": None}}
    (log / "_last_checkpoint").write_text(compact(hint))


def checkpoint_cost(table: SimulatedTable, place: Place) -> CheckpointCost:
    """Build the sidecar of the newest checkpoint upon the one before it."""
    command = [sys.executable, "-m", "bench.sidecar_builder", "local", place.url(table.path)]
    command += ["--storage-options", json.dumps(place.options())]
    command += ["--row-group-rows", str(table.config.row_group_rows)]
    there = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    done = run_watched(command, timeout_s=_TIMEOUT_S, memory_max_kb=memory_fence_kb(), env=there)
    facts = printed_facts(done)
    failure = done.stopped or (last_words(done) if done.exit_code or facts is None else None)
    report: dict[str, Any] = {} if facts is None else facts["report"]
    if failure is None and report["kind"] != "incremental":
        failure = f"the build was {report['kind']}: {report['reason']}"
    changes = sum(len(commit.adds) + len(commit.removes) for commit in table.history.commits)
    return CheckpointCost(
        files=table.spec.files,
        changes=changes,
        cpu_s=0.0 if facts is None else facts["cpu_s"],
        requests=report.get("requests", 0),
        round_trips=report.get("round_trips", 0),
        bytes_read=report.get("bytes_read", 0),
        bytes_written=report.get("bytes_written", 0),
        memory_mb=0.0 if facts is None else facts["peak_mb"],
        parts_written=report.get("parts_written", 0),
        parts_referenced=report.get("parts_referenced", 0),
        failure=failure,
    )
