"""The measurements of sidecars: builds by both feeders, incremental builds over a table that grows, sizes.

Why processes: memory and CPU of one build must not carry what another left behind.
Contract: a build's bytes are counted on disk, not believed. What fails ends the run with its last words.
Sidecars of full builds that are only measured lie in a folder of their own.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from bench.growing import GrowingSpec, GrowingTable, hour_text
from bench.readers import last_words, printed_facts
from bench.sidecar_files import SidecarFacts, bytes_by_name, measure_sidecar
from bench.spec import TableSpec
from bench.tables import REPOSITORY, CachedTable
from bench.watched import memory_fence_kb, run_watched
from lazydelta.sidecar import LAZY_FOLDER

OTHER_FOLDER = f"{LAZY_FOLDER}_other"
_TIMEOUT_S = 1_800
_HOUR_MS = 3_600_000

Say = Callable[[str], None]


class Build(msgspec.Struct, frozen=True, kw_only=True):
    """One build of a sidecar."""

    feeder: str
    kind: str
    seconds: float
    cpu_s: float
    peak_mb: float
    bytes_written: int
    sidecar: SidecarFacts
    session_s: float = 0.0


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One checkpoint of the growing table: the incremental build, and a full one where it was measured."""

    number: int
    has_optimize: bool
    incremental: Build
    full: Build | None = None


class SizeRun(msgspec.Struct, frozen=True, kw_only=True):
    """A checkpoint that Delta on Spark wrote, beside the sidecar of the same version."""

    stats: str
    files: int
    checkpoint_bytes: int
    checkpoint_s: float
    builds: list[Build]
    differences: int  # that `verify` found, over all sidecars


def sizes_spec(files: int, stats: str) -> TableSpec:
    """The table as the pipeline lays it out: hours alone partition it. One commit follows the checkpoint."""
    return TableSpec(
        files=files,
        order="spark",
        event_hour=True,
        date_partition=False,
        stats=stats,  # type: ignore[arg-type]
        tail_commits=1,
        tail_removes=0,
        tail_dv_updates=0,
        tail_readds=0,
    )


def run_sizes(table: CachedTable, scratch: Path, *, rounds: int, with_spark: bool, say: Say) -> SizeRun:
    """Delta's checkpoint of the newest version, then its sidecar by Spark and by the local feeder."""
    path = _linked(table, scratch)
    say(f"  Delta on Spark writes a checkpoint of {table.expected.live_files:,} files …")
    checkpoint = _run("checkpoint", path)
    version = table.expected.version
    size = (path / "_delta_log" / f"{version:020d}.checkpoint.parquet").stat().st_size
    say(f"    {checkpoint['all_s']:.1f} s, {size:,} bytes")
    # The generator's tail is of its last day, and evenly spread: the last hour is what ends it.
    hour = f"{table.expected.today.replace('-', '')}22"
    builds, differences = [], 0
    feeders = [("local", "full")] * rounds + [("spark", "spark")] * with_spark
    for feeder, work in feeders:
        shutil.rmtree(path / LAZY_FOLDER, ignore_errors=True)
        builds.append(_build(path, work, LAZY_FOLDER, version=version, since_hour=hour, feeder=feeder))
        say(f"    {_told(builds[-1])}")
        if builds[-1] is builds[0] or feeder == "spark":
            differences += _differences(path, LAZY_FOLDER, 0)
    shutil.rmtree(path)
    return SizeRun(
        stats=table.spec.stats,
        files=table.expected.live_files,
        checkpoint_bytes=size,
        checkpoint_s=checkpoint["all_s"],
        builds=builds,
        differences=differences,
    )


def run_growth(
    spec: GrowingSpec, scratch: Path, *, full_every: int, row_group_rows: int, say: Say
) -> tuple[Build, list[Step], int]:
    """The first full build, a step for each checkpoint, and the differences `verify` found at the end."""
    table = GrowingTable(spec, scratch / "growing")
    table.start()

    def build(work: str, folder: str) -> Build:
        hour = hour_text(table.newest_ms - _HOUR_MS)
        rows = row_group_rows
        return _build(table.path, work, folder, version=table.version, since_hour=hour, row_group_rows=rows)

    first = build("local", LAZY_FOLDER)
    say(f"  checkpoint 0: {_told(first)}")
    steps = []
    for number in range(1, spec.checkpoints + 1):
        before, has_optimize = table.version, number == spec.checkpoints // 2
        table.grow(optimize=has_optimize)
        step = Step(number=number, has_optimize=has_optimize, incremental=build("local", LAZY_FOLDER))
        say(f"  checkpoint {number}: {_told(step.incremental)}")
        if number % full_every == 0:
            step = msgspec.structs.replace(step, full=build("full", OTHER_FOLDER))
            shutil.rmtree(table.path / OTHER_FOLDER)
            assert step.full is not None
            say(f"    for comparison: {_told(step.full)}")
        table.drop_checkpoint(before)
        steps.append(step)
    differences = _differences(table.path, LAZY_FOLDER, row_group_rows)
    shutil.rmtree(table.path)
    return first, steps, differences


def _build(
    path: Path,
    work: str,
    folder: str,
    *,
    version: int,
    since_hour: str,
    row_group_rows: int = 0,
    feeder: str = "local",
) -> Build:
    before = bytes_by_name(path / folder)
    facts = _run(work, path, folder=folder, row_group_rows=row_group_rows)
    after = bytes_by_name(path / folder)
    return Build(
        feeder=feeder,
        kind=facts["report"]["kind"],
        seconds=facts["all_s"],
        cpu_s=facts["cpu_s"],
        peak_mb=facts["peak_mb"],
        session_s=facts.get("session_s", 0.0),
        bytes_written=sum(size for name, size in after.items() if name not in before),
        sidecar=measure_sidecar(path / folder, version, since_hour=since_hour),
    )


def _differences(path: Path, folder: str, row_group_rows: int) -> int:
    facts = _run("verify", path, folder=folder, row_group_rows=row_group_rows)
    return 0 if facts["is_ok"] else max(1, facts["report"]["differences_total"])


def _run(work: str, path: Path, *, folder: str = LAZY_FOLDER, row_group_rows: int = 0) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.sidecar_builder", work, str(path), "--folder", folder]
    command += ["--row-group-rows", str(row_group_rows)] if row_group_rows else []
    modules = os.pathsep.join([str(REPOSITORY), *filter(None, [os.environ.get("PYTHONPATH")])])
    there = os.environ | {"PYTHONPATH": modules}
    done = run_watched(command, timeout_s=_TIMEOUT_S, memory_max_kb=memory_fence_kb(), env=there)
    facts = printed_facts(done)
    if done.stopped or done.exit_code or facts is None:
        sys.exit(f"{work} of {path} failed: {done.stopped or last_words(done)}\n{done.stderr[-4000:]}")
    return facts


def _linked(table: CachedTable, scratch: Path) -> Path:
    """A table of links to the cached bytes, which others may go on using."""
    path = scratch / table.path.name
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(table.path, path, copy_function=os.link)
    hint = path / "_delta_log" / "_last_checkpoint"
    content = hint.read_bytes()
    hint.unlink()  # Spark overwrites it in place
    hint.write_bytes(content)
    return path


def _told(build: Build) -> str:
    what = f"{build.feeder}, {build.kind}: {build.seconds:.1f} s, CPU {build.cpu_s:.1f} s"
    wrote = f"{build.peak_mb:,.0f} MB of memory, {build.bytes_written:,} bytes written"
    return f"{what}, {wrote}, {build.sidecar.parts} parts, last hour {build.sidecar.last_hour_bytes:,} bytes"
