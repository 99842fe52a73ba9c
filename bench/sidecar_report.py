"""What the sidecar benchmark found, as text, as a picture and as JSON."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from bench.pages import table_lines, verdicts
from bench.promises import Check
from bench.sidecar_promises import sum_up
from bench.sidecar_runs import Build, SizeRun, Step

_BUILD_COLUMNS = ("built by", "seconds", "CPU s", "peak MB", "bytes", "parts", "row groups")


def sidecar_tables(sizes: Sequence[SizeRun], first: Build | None, steps: Sequence[Step]) -> str:
    """Markdown: one table for each checkpoint of Delta's, one for the growing table."""
    told = [_sizes_table(run) for run in sizes]
    if first is not None and steps:
        told.append(_growth_table(first, steps))
    return "\n\n".join(told)


def save_sidecars(
    folder: Path,
    name: str,
    *,
    sizes: Sequence[SizeRun],
    first: Build | None,
    steps: Sequence[Step],
    checks: Sequence[Check],
) -> Path:
    """Write `name.json`, `name.md` and `name.png`; returns the picture."""
    folder.mkdir(parents=True, exist_ok=True)
    whole = {"sizes": sizes, "first": first, "steps": steps, "checks": checks}
    (folder / f"{name}.json").write_bytes(msgspec.json.format(msgspec.json.encode(whole)))
    text = f"{sidecar_tables(sizes, first, steps)}\n\n```text\n{verdicts(checks)}\n```\n"
    (folder / f"{name}.md").write_text(text)
    return _picture(folder / f"{name}.png", steps) if steps else folder / f"{name}.md"


def _sizes_table(run: SizeRun) -> str:
    share = run.builds[0].sidecar.total_bytes / run.checkpoint_bytes
    title = f"**Sidecar of a checkpoint of {run.files:,} files (statistics: {run.stats})**"
    about = (
        f"Delta on Spark wrote {run.checkpoint_bytes:,} bytes of checkpoint in {run.checkpoint_s:.0f} s; "
        f"the sidecar has {share:.2f} of that. Memory: over import for the local feeder, JVM and workers for "
        "Spark, whose session starts before the clock."
    )
    table = table_lines(_BUILD_COLUMNS, map(_build_cells, run.builds))
    return "\n".join([title, "", about, "", *table])


def _build_cells(build: Build) -> list[str]:
    figures = [f"{build.seconds:.1f}", f"{build.cpu_s:.1f}", f"{build.peak_mb:,.0f}"]
    held = [f"{build.sidecar.total_bytes:,}", str(build.sidecar.parts), str(build.sidecar.row_groups)]
    return [build.feeder, *figures, *held]


def _growth_table(first: Build, steps: Sequence[Step]) -> str:
    growth = sum_up(steps)
    ours = [step.incremental for step in steps]
    full = [step.full for step in steps if step.full is not None]
    added = f"{growth.checkpoints} checkpoints, from {first.sidecar.num_files:,} files"
    title = f"**Incremental builds: {added} to {ours[-1].sidecar.num_files:,}**"
    about = (
        f"Full builds were measured at {growth.measured} of the checkpoints; their sums are scaled to all."
    )
    columns = ("", "incremental", "full", "times")
    rows = [
        ("bytes written, in all", f"{growth.incremental_bytes:,}", f"{growth.full_bytes:,.0f}",
         f"{growth.bytes_times:.1f}"),
        ("CPU seconds, in all", f"{growth.incremental_cpu_s:,.1f}", f"{growth.full_cpu_s:,.1f}",
         f"{growth.cpu_times:.1f}"),
        ("seconds of a build, median", _median(ours, "seconds"), _median(full, "seconds"), ""),
        ("peak MB of a build, at most", _most(ours, "peak_mb"), _most(full, "peak_mb"), ""),
        ("parts, at most", str(max(build.sidecar.parts for build in ours)),
         str(max(build.sidecar.parts for build in full)), f"{max(growth.parts_times):.2f}"),
        ("bytes of a last-hour query, median", *_last_hour(ours, full),
         f"{statistics.median(growth.last_hour_times):.2f}, at worst {max(growth.last_hour_times):.2f}"),
    ]  # fmt: skip
    return "\n".join([title, "", about, "", *table_lines(columns, rows)])


def _median(builds: Sequence[Build], name: str) -> str:
    return f"{statistics.median(getattr(build, name) for build in builds):,.2f}"


def _most(builds: Sequence[Build], name: str) -> str:
    return f"{max(getattr(build, name) for build in builds):,.0f}"


def _last_hour(ours: Sequence[Build], full: Sequence[Build]) -> tuple[str, str]:
    medians = [
        statistics.median(build.sidecar.last_hour_bytes for build in builds) for builds in (ours, full)
    ]
    return f"{medians[0]:,.0f}", f"{medians[1]:,.0f}"


def _picture(path: Path, steps: Sequence[Step]) -> Path:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(13, 8), layout="constrained")
    _lines(axes[0, 0], steps, "bytes written (MB)", lambda build: build.bytes_written / 1e6)
    _lines(axes[0, 1], steps, "CPU seconds", lambda build: build.cpu_s)
    _lines(axes[1, 0], steps, "parts", lambda build: build.sidecar.parts, log=False)
    _lines(
        axes[1, 1],
        steps,
        "last-hour query (KB)",
        lambda build: build.sidecar.last_hour_bytes / 1e3,
        log=False,
    )
    figure.suptitle(f"A sidecar for each of {len(steps)} checkpoints; {_optimized(steps)}")
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return path


def _lines(axis: Any, steps: Sequence[Step], title: str, of: Any, *, log: bool = True) -> None:
    """A line for incremental builds, dots for full ones. Any: matplotlib's axes; a figure of a build."""
    full = [(step.number, of(step.full)) for step in steps if step.full is not None]
    numbers = [step.number for step in steps]
    axis.plot(numbers, [of(step.incremental) for step in steps], color="tab:orange", label="incremental")
    axis.plot(*zip(*full, strict=True), "o", color="tab:blue", label="full build")
    axis.set(title=title, xlabel="checkpoint", yscale="log" if log else "linear")
    if not log:
        axis.set_ylim(bottom=0)
    axis.legend()


def _optimized(steps: Sequence[Step]) -> str:
    numbers = [str(step.number) for step in steps if step.has_optimize]
    return f"OPTIMIZE before checkpoint {', '.join(numbers)}" if numbers else "no OPTIMIZE"
