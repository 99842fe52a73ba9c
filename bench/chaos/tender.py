"""Sidecars for a table: `python -m bench.chaos.tender WORLD TABLE SEED EVENTS`. May be killed anywhere.

Contract: sidecars of the newest checkpoint and delta files, whole and incremental, of parts small enough
that a table of ten thousand files has several; now and then by the command itself; old ones are cleaned up.
An error must be one that a log which others clean can give; any other is told as trouble.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
import traceback
from pathlib import Path

from bench.chaos.events import Events
from bench.chaos.world import TableSpec, load_world
from lazydelta.errors import CorruptLogError, InvalidRequestError, LazyDeltaError, VersionNotFoundError
from lazydelta.settings import Settings
from lazydelta.sidecar import SidecarConfig
from lazydelta.storage import ObjectReplacedError, open_storage
from lazydelta.upkeep.build import build_sidecar
from lazydelta.upkeep.clean import clean_sidecars
from lazydelta.upkeep.deltas import write_delta_files

PAUSE_SECONDS = 3.0
CONFIGS = (
    SidecarConfig(row_group_rows=500, row_groups_max=8, delta_commits_min=2),
    SidecarConfig(row_group_rows=1000, row_groups_max=16, footer_bytes_max=4000, delta_commits_min=4),
)
_LATER_MS = 25 * 3_600_000
# The last: another writer put the checkpoint anew while it was read.
_ALLOWED = (VersionNotFoundError, CorruptLogError, InvalidRequestError, ObjectReplacedError)


def main(world_path: str, name: str, seed: str, events_path: str) -> None:
    """Until the process is ended."""
    world = load_world(world_path)
    spec, dice, events = world.table(name), random.Random(seed), Events(Path(events_path))
    while True:
        told = {"writer": name, "op": "sidecar"}
        started = time.perf_counter()
        try:
            told["op"], outcome = _tend(spec, dice)
        except LazyDeltaError as trouble:
            outcome = type(trouble).__name__
            told |= {"why": str(trouble)}
            if not isinstance(trouble, _ALLOWED):
                told["trouble"] = traceback.format_exc()
        except Exception as trouble:  # noqa: BLE001 - told, and the run fails
            outcome, told["trouble"] = type(trouble).__name__, traceback.format_exc()
        events.tell(**told, outcome=outcome, ms=round((time.perf_counter() - started) * 1000))
        time.sleep(dice.expovariate(1 / PAUSE_SECONDS))


def _tend(spec: TableSpec, dice: random.Random) -> tuple[str, str]:
    """One thing; its name, and how it came out."""
    what = dice.choices(["build", "full", "deltas", "clean", "command"], [6, 1, 6, 1, 1])[0]
    if what == "command":
        return "sidecar command", _by_command(spec)
    storage = open_storage(spec.url, Settings(storage_options=spec.options, request_timeout_seconds=120.0))
    config = CONFIGS[len(spec.name) % 2]
    if what == "clean":
        # Manifests that a newer one replaced, and what no manifest has named for a day.
        now_ms = time.time_ns() // 1_000_000 + dice.choice([0, 0, _LATER_MS])
        report = clean_sidecars(storage, config=config, retention_hours=0, now_ms=now_ms)
        return "sidecar clean", "ok" if report.removed else "nothing to clean"
    if what == "deltas":
        written = write_delta_files(storage, config=config)
        return "delta files", "ok" if written else "none due"
    built = build_sidecar(storage, config=config, full=what == "full")
    return f"sidecar {built.kind}", "ok"


def _by_command(spec: TableSpec) -> str:
    options = [flag for pair in spec.options.items() for flag in ("--storage-option", "=".join(pair))]
    command = [sys.executable, "-m", "lazydelta.cli", "sidecar", "build", spec.url, *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    is_replaced = "was replaced while it was being read" in done.stderr
    allowed = {0, *(error.exit_code for error in _ALLOWED[:3])}
    if done.returncode not in allowed and not is_replaced:
        raise RuntimeError(f"exit code {done.returncode}: {done.stderr}")
    return "ok" if done.returncode == 0 else f"exit code {done.returncode}"


if __name__ == "__main__":
    main(*sys.argv[1:])
