"""The figures of Kusto's protocol: judged, as a table of text, as a page and as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.pages import promises_kept, table_lines
from bench.promises import Check

Figures = dict[str, float]
RATIO_MIN, FIRST_MAX, GROWTH_MAX_MB = 3.0, 3.0, 32.0


def judge(figures: Figures) -> list[Check]:
    """Every promise beside what was measured."""
    extra = figures["ours: growth at three million, MB"] - figures["ours: growth at a million, MB"]
    checks = [
        Check(
            promise=f"a million rows{told}: at least {RATIO_MIN:g} times as fast as duckdb-kql's server",
            passed=figures[name] >= RATIO_MIN,
            measured=f"{figures[name]:.1f} times",
        )
        for name, told in (("speed by duckdb-kql", ""), ("speed by duckdb-kql, packed", " in gzip"))
    ]
    checks.append(
        Check(
            promise=f"three times the rows: the server grows by at most {GROWTH_MAX_MB:g} MB more",
            passed=extra <= GROWTH_MAX_MB,
            measured=f"{extra:.1f} MB",
        )
    )
    for number in (1, 2, 3):
        first = figures[f"query {number}: first frame by scan"]
        checks.append(
            Check(
                promise=f"query {number}: the first frame within {FIRST_MAX:g} times the scan in process",
                passed=first <= FIRST_MAX,
                measured=f"{first:.2f} times",
            )
        )
    return checks


def page(figures: Figures, checks: Sequence[Check], picture_name: str) -> str:
    """The figures for the documentation."""
    rows = [(name, f"{value:,.2f}") for name, value in figures.items() if name != "files"]
    lines = [
        "# Kusto's protocol: the figures",
        "",
        "Written by `make bench-kusto-full` (`bench/serve_kusto.py`); do not edit. A million rows of six",
        "columns over HTTP from this server and from duckdb-kql's own, which has them in memory; then the",
        f"three queries of the seeds on a table of {figures['files']:,.0f} files with a sidecar, beside",
        "scans in a process of their own that give the same rows. Seconds belong to the machine; what counts",
        "are ratios of one run.",
        "",
        f"![A million rows by each server, growth of memory, first frames]({picture_name})",
        "",
        *table_lines(("what", "median"), rows),
        "",
        *promises_kept(checks),
    ]
    return "\n".join(lines) + "\n"


def table_text(figures: Figures) -> str:
    """One figure a line."""
    return "\n".join(f"{name:<40}{value:>14,.2f}" for name, value in figures.items())


def picture(path: Path, figures: Figures) -> Path:
    """A million rows by each server, and the first frames beside the scans."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(15, 4.2), layout="constrained")
    servers = ["ours", "ours, packed", "duckdb-kql"]
    _bars(left, servers, [figures[f"{name}: s"] for name in servers], "s", "A million rows over HTTP")
    held = ["ours: growth at a million, MB", "ours: growth at three million, MB", "duckdb-kql: growth, MB"]
    labels = ["ours, 1,000,000", "ours, 3,000,000", "duckdb-kql, 1,000,000"]
    _bars(middle, labels, [figures[name] for name in held], "MB", "Growth of the server's memory")
    names, values = [], []
    for number in (1, 2, 3):
        for what in ("scan in process", "first frame"):
            names.append(f"query {number}, {what}")
            values.append(figures[f"query {number}: {what}, ms"])
    _bars(right, names, values, "ms", f"The seeds' queries on {figures['files']:,.0f} files")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return path


def _bars(axis: Any, names: list[str], values: list[float], unit: str, title: str) -> None:
    """Horizontal ones, the first on top. Any: matplotlib's axes."""
    places = range(len(names))
    axis.barh(
        places, values, color=["#2a6f97" if not name.startswith("duckdb") else "#adb5bd" for name in names]
    )
    axis.set_yticks(places, names)
    axis.invert_yaxis()
    axis.set_xlabel(unit)
    axis.set_title(title)
    for place, value in zip(places, values, strict=True):
        axis.annotate(f" {value:,.3g}", (value, place), va="center", fontsize=8)
    axis.margins(x=0.15)
