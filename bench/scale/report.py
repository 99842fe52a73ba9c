"""What queries cost by the size of the table: as text, as a picture, and judged.

Contract: pure but for the picture. A figure is the median of its runs; a run that failed or miscounted makes
its figure a failure, and every promise about it broken.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from bench.ladder_runs import Run
from bench.pages import promises_kept, table_lines
from bench.promises import Check
from bench.scale.next_checkpoint import CheckpointCost

SMALLER, LARGER = 10_000_000, 1_000_000_000
TIMES_MAX = 2.0
MANIFEST_BYTES_MAX = 1_000_000
_COLUMNS = (
    "files",
    "query",
    "first, ms",
    "all, ms",
    "requests",
    "round trips",
    "bytes",
    "MB over import",
    "parts",
    "",
)
_COST_COLUMNS = (
    "files",
    "changed by its commits",
    "requests",
    "round trips",
    "bytes read",
    "bytes written",
    "CPU s",
    "MB over import",
    "parts written",
    "parts referenced",
    "",
)
_PANELS = {
    "all_s": "seconds to the last file",
    "requests": "requests",
    "bytes_read": "bytes read",
    "memory_mb": "MB over import",
}
_COST_TITLE = "sidecar of one more checkpoint"
_COST_MEASURES: dict[str, Callable[[CheckpointCost], float]] = {
    "requests": lambda cost: cost.requests,
    "bytes_read": lambda cost: cost.bytes_read,
    "memory_mb": lambda cost: cost.memory_mb,
}
_PROMISED = ("take 100", "the last hour")
_MEASURES = {"all_s": "time", "bytes_read": "bytes", "memory_mb": "memory"}


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """One query of one table."""

    files: int
    query: str
    manifest_bytes: int
    failure: str | None = None
    first_s: float = 0.0
    all_s: float = 0.0
    requests: float = 0.0
    round_trips: float = 0.0
    bytes_read: float = 0.0
    memory_mb: float = 0.0
    parts_read: float = 0.0
    parts_total: float = 0.0

    @classmethod
    def of(cls, files: int, query: str, runs: Sequence[Run], *, manifest_bytes: int) -> Figures:
        """The medians of these runs."""
        failure = next((run.failure or run.note for run in runs if run.failure or run.note), None)
        if failure is not None:
            return cls(files=files, query=query, manifest_bytes=manifest_bytes, failure=failure)

        def middle(name: str) -> float:
            return statistics.median(float(run.facts.get(name) or 0) for run in runs)

        return cls(
            files=files,
            query=query,
            manifest_bytes=manifest_bytes,
            first_s=middle("first_s"),
            all_s=middle("all_s"),
            requests=middle("requests"),
            round_trips=middle("round_trips"),
            bytes_read=middle("bytes_read"),
            memory_mb=middle("peak_mb"),
            parts_read=middle("parts_read"),
            parts_total=middle("parts_total"),
        )


def judged(figures: Sequence[Figures], costs: Sequence[CheckpointCost] = ()) -> list[Check]:
    """The promises, as far as the sizes that they speak of were measured."""
    wrong = [f"{one.files:,} files, {one.query}: {one.failure}" for one in figures if one.failure]
    checks = [
        Check(
            promise="every answer is right and from the sidecar",
            passed=not wrong,
            measured="; ".join(wrong) or "all",
        )
    ]
    by_key = {(one.files, one.query): one for one in figures}
    for query in _PROMISED:
        small, large = (by_key.get((files, query)) for files in (SMALLER, LARGER))
        if small is None or large is None:
            continue
        ratios = {
            told: getattr(large, name) / max(getattr(small, name), 1e-9) for name, told in _MEASURES.items()
        }
        is_kept = not small.failure and not large.failure and max(ratios.values()) <= TIMES_MAX
        checks.append(
            Check(
                promise=f"{query} of {LARGER:,} files takes at most {TIMES_MAX:g} times that of {SMALLER:,}",
                passed=is_kept,
                measured=", ".join(f"{told} {ratio:.2f} times" for told, ratio in ratios.items()),
            )
        )
    by_size = {cost.files: cost for cost in costs}
    if {SMALLER, LARGER} <= by_size.keys():
        checks.append(_one_more_checkpoint(by_size[SMALLER], by_size[LARGER]))
    largest = max((one.manifest_bytes for one in figures), default=0)
    checks.append(
        Check(
            promise=f"manifest and part list have less than {MANIFEST_BYTES_MAX:,} bytes",
            passed=largest < MANIFEST_BYTES_MAX,
            measured=f"{largest:,} at most",
        )
    )
    return checks


def _one_more_checkpoint(small: CheckpointCost, large: CheckpointCost) -> Check:
    wrong = small.failure or large.failure
    moved = [max(1, cost.bytes_read + cost.bytes_written) for cost in (small, large)]
    ratios = {"bytes": moved[1] / moved[0], "memory": large.memory_mb / max(small.memory_mb, 1e-9)}
    return Check(
        promise=f"one more checkpoint of {LARGER:,} files is at most {TIMES_MAX:g} times that of {SMALLER:,}",
        passed=wrong is None and max(ratios.values()) <= TIMES_MAX,
        measured=wrong or ", ".join(f"{told} {ratio:.2f} times" for told, ratio in ratios.items()),
    )


def scale_page(
    figures: Sequence[Figures],
    costs: Sequence[CheckpointCost],
    checks: Sequence[Check],
    *,
    latency_ms: float,
) -> str:
    """A table, and the promises."""
    lines = [
        f"# From {figures[0].files:,} to {figures[-1].files:,} files: the figures",
        "",
        "Written by `make scale` (`bench/scale/run.py`); do not edit. The simulated store answers after",
        f"{latency_ms:g} ms; each query has a process of its own. Seconds belong to the machine here.",
        "",
        "![By the number of files](scale-figures.png)",
        "",
        "## Queries",
        "",
        *table_lines(_COLUMNS, map(_cells, figures)),
        "",
        "## The sidecar of one more checkpoint",
        "",
        *table_lines(_COST_COLUMNS, map(_cost_cells, costs)),
        "",
        *promises_kept(checks),
    ]
    return "\n".join(lines) + "\n"


def scale_picture(path: Path, figures: Sequence[Figures], costs: Sequence[CheckpointCost]) -> Path:
    """A panel for each measure, a line for each query and for one more checkpoint, by the number of files."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    drawing, places = plt.subplots(2, 2, figsize=(12, 8), layout="constrained")
    for place, (name, title) in zip(places.flat, _PANELS.items(), strict=True):
        for query in dict.fromkeys(one.query for one in figures):
            line = [one for one in figures if one.query == query and one.failure is None]
            place.plot(
                [one.files for one in line], [getattr(one, name) for one in line], marker="o", label=query
            )
        if name in _COST_MEASURES:
            line = [cost for cost in costs if cost.failure is None]
            values = [_COST_MEASURES[name](cost) for cost in line]
            place.plot([cost.files for cost in line], values, marker="s", linestyle="--", label=_COST_TITLE)
        place.set_xscale("log")
        place.set_ylim(bottom=0)
        place.set_title(title, loc="left", fontsize=10)
        place.set_xlabel("files of the table")
        place.grid(visible=True, alpha=0.3)
    places.flat[1].legend()
    drawing.savefig(path, dpi=120)
    plt.close(drawing)
    return path


def _cells(one: Figures) -> list[str]:
    if one.failure is not None:
        return [f"{one.files:,}", one.query, *[""] * (len(_COLUMNS) - 3), one.failure]
    return [
        f"{one.files:,}",
        one.query,
        f"{1000 * one.first_s:.0f}",
        f"{1000 * one.all_s:.0f}",
        f"{one.requests:.0f}",
        f"{one.round_trips:.0f}",
        f"{one.bytes_read:,.0f}",
        f"{one.memory_mb:.1f}",
        f"{one.parts_read:.0f} of {one.parts_total:,.0f}",
        "",
    ]


def _cost_cells(cost: CheckpointCost) -> list[str]:
    figures = (cost.requests, cost.round_trips, cost.bytes_read, cost.bytes_written)
    return [
        f"{cost.files:,}",
        f"{cost.changes:,}",
        *(f"{figure:,}" for figure in figures),
        f"{cost.cpu_s:.1f}",
        f"{cost.memory_mb:.1f}",
        f"{cost.parts_written:,}",
        f"{cost.parts_referenced:,}",
        cost.failure or "",
    ]
