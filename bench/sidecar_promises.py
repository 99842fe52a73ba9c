"""The promises about sidecars as named checks.

Contract: pure. Every promise is told with the figure it was judged by. Full builds were measured at some of
the checkpoints; their sums are scaled to all of them, and the promise says so.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import msgspec

from bench.promises import Check
from bench.sidecar_runs import Build, SizeRun, Step

MEMORY_MB_MAX = 300
BYTES_TIMES_MIN, CPU_TIMES_MIN = 10, 5
PARTS_TIMES_MAX, LAST_HOUR_TIMES_MAX = 2, 2
CHECKPOINT_SHARE_MAX = 0.8


class Growth(msgspec.Struct, frozen=True, kw_only=True):
    """The sums over all checkpoints, incremental beside full."""

    checkpoints: int
    measured: int  # checkpoints at which a full build was measured, too
    incremental_bytes: int
    incremental_cpu_s: float
    full_bytes: float  # scaled
    full_cpu_s: float  # scaled
    parts_times: list[float]
    last_hour_times: list[float]

    @property
    def bytes_times(self) -> float:
        """How many times fewer bytes were written."""
        return self.full_bytes / max(self.incremental_bytes, 1)

    @property
    def cpu_times(self) -> float:
        """How many times less CPU was spent."""
        return self.full_cpu_s / max(self.incremental_cpu_s, 1e-9)


def sum_up(steps: Sequence[Step]) -> Growth:
    """The steps as sums and ratios."""
    pairs = [(step.incremental, step.full) for step in steps if step.full is not None]
    builds, full = [step.incremental for step in steps], [build for _, build in pairs]
    rows_per_part = max((build.sidecar.part_rows_max for build in full), default=0)
    scale = len(steps) / max(len(full), 1)
    return Growth(
        checkpoints=len(steps),
        measured=len(full),
        incremental_bytes=sum(build.bytes_written for build in builds),
        incremental_cpu_s=sum(build.cpu_s for build in builds),
        full_bytes=scale * sum(build.bytes_written for build in full),
        full_cpu_s=scale * sum(build.cpu_s for build in full),
        parts_times=[_parts_times(build, rows_per_part) for build in builds],
        last_hour_times=[
            ours.sidecar.last_hour_bytes / max(theirs.sidecar.last_hour_bytes, 1) for ours, theirs in pairs
        ],
    )


def judge_builds(sizes: Sequence[SizeRun]) -> list[Check]:
    """The promises about builds and sizes; the table with Delta's default statistics comes first."""
    local = [build for run in sizes for build in run.builds if build.feeder == "local"]
    spark = [build for run in sizes for build in run.builds if build.feeder == "spark"]
    peak = max((build.peak_mb for build in local), default=None)
    files = sizes[0].files if sizes else 0
    different = sum(run.differences for run in sizes)
    both = " and ".join(dict.fromkeys(build.feeder for build in [*local, *spark]))
    return [
        Check(
            promise=f"local feeder, {files:,} files: under {MEMORY_MB_MAX} MB over import",
            passed=peak is not None and peak < MEMORY_MB_MAX,
            measured="not measured" if peak is None else f"{peak:,.0f} MB at most",
        ),
        *(_share(run) for run in sizes[:1]),
        Check(
            promise="sidecars of both feeders hold every live file once, with equal statistics",
            passed=bool(local and spark) and not different,
            measured=f"{different} differences; built by {both or 'nobody'}",
        ),
    ]


def judge_growth(steps: Sequence[Step], differences: int) -> list[Check]:
    """The promises about incremental builds; `differences` is what `verify` found in the last sidecar."""
    if not any(step.full for step in steps):
        return [Check(promise="incremental builds", passed=False, measured="not measured")]
    growth = sum_up(steps)
    scaled = f"full builds measured at {growth.measured} of {growth.checkpoints} checkpoints and scaled"
    gb, full_gb = growth.incremental_bytes / 1e9, growth.full_bytes / 1e9
    others = [step.number for step in steps if step.incremental.kind != "incremental"]
    return [
        Check(
            promise=f"incremental: at least {BYTES_TIMES_MIN} times fewer bytes written than full builds",
            passed=growth.bytes_times >= BYTES_TIMES_MIN,
            measured=f"{growth.bytes_times:.1f} times: {gb:.2f} against {full_gb:.2f} GB; {scaled}",
        ),
        Check(
            promise=f"incremental: at least {CPU_TIMES_MIN} times less CPU than full builds",
            passed=growth.cpu_times >= CPU_TIMES_MIN,
            measured=f"{growth.cpu_times:.1f} times: {growth.incremental_cpu_s:,.0f} against"
            f" {growth.full_cpu_s:,.0f} s; {scaled}",
        ),
        Check(
            promise=f"incremental: at most {PARTS_TIMES_MAX} times the parts of a full build, always",
            passed=max(growth.parts_times) <= PARTS_TIMES_MAX,
            measured=_spread(growth.parts_times),
        ),
        Check(
            promise=f"incremental: a last-hour query reads at most {LAST_HOUR_TIMES_MAX} times the bytes",
            passed=max(growth.last_hour_times) <= LAST_HOUR_TIMES_MAX,
            measured=_spread(growth.last_hour_times),
        ),
        Check(
            promise="incremental: every build after the first one is incremental",
            passed=not others,
            measured=f"others at checkpoints {others}" if others else f"{len(steps)} of {len(steps)}",
        ),
        Check(
            promise="incremental: the last sidecar holds every live file once, with equal statistics",
            passed=not differences,
            measured=f"{differences} differences",
        ),
    ]


def _share(run: SizeRun) -> Check:
    sidecar = max(build.sidecar.total_bytes for build in run.builds)
    share = sidecar / run.checkpoint_bytes
    return Check(
        promise=f"sidecar at most {CHECKPOINT_SHARE_MAX} of the checkpoint that Delta on Spark wrote",
        passed=share <= CHECKPOINT_SHARE_MAX,
        measured=f"{share:.2f}: {sidecar:,} of {run.checkpoint_bytes:,} bytes ({run.files:,} files)",
    )


def _parts_times(build: Build, rows_per_part: int) -> float:
    """Parts beside those of a full build of as many files, which fills every part but the last."""
    needed = max(1, -(-build.sidecar.num_files // max(rows_per_part, 1)))
    return build.sidecar.parts / needed


def _spread(times: Sequence[float]) -> str:
    return f"{statistics.median(times):.2f} times at the median, {max(times):.2f} at worst"
