"""The ladder drawn: bars of text as the seeds draw them, and a picture of the same."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.ladder_cells import Cell, find
from bench.ladder_levels import LEVELS, Level

_WIDTH = 52  # characters of the longest bar
_PANELS = (
    ("Peak memory over import", "peak_mb", "MB", "memory_mb"),
    ("Time to first file", "first_s", "s", "first_s"),
    ('Time to complete ("the last hour")', "all_s", "s", "complete_s"),
)


def bars(given: Sequence[Cell], place: str = "disk") -> str:
    """A bar for each level in three panels; a figure too small for a block has a sliver."""
    return "\n\n".join(_text_panel(given, place, *panel[:3]) for panel in _PANELS)


def picture(path: Path, given: Sequence[Cell], files: int) -> Path:
    """The three panels on the disk and behind latency, on a logarithmic scale, with the seeds' promises."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    places = [place for place in ("disk", "store") if any(cell.place == place for cell in given)]
    size = (17, 4.2 * len(places) + 0.6)
    figure, axes = plt.subplots(len(places), 3, figsize=size, layout="constrained", squeeze=False)
    titles = {"disk": "local disk", "store": "behind latency"}
    for row, place in enumerate(places):
        for column, (title, name, unit, promise) in enumerate(_PANELS):
            axis = axes[row, column]
            axis.set_title(f"{title}, {titles[place]}")
            values = [_value(given, level, place, name) for level in LEVELS]
            promised = [getattr(level.seeds, promise) for level in LEVELS]
            _draw(axis, values, promised, unit)
    figure.suptitle(f"The ladder on {files:,} files; | marks what the seeds promise for ten million")
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return path


def _text_panel(given: Sequence[Cell], place: str, title: str, name: str, unit: str) -> str:
    values = {level.name: _value(given, level, place, name) for level in LEVELS}
    longest = max((value for value in values.values() if value is not None), default=1.0)
    lines = [f"{title}:"]
    for level, value in values.items():
        filled = "" if value is None else "█" * round(_WIDTH * value / longest) or "▏"
        lines.append(f"  {level:<4} {filled:<{_WIDTH}}  {_label(value, unit)}")
    return "\n".join(lines)


def _draw(axis: Any, values: list[float | None], promised: list[float | None], unit: str) -> None:
    """Horizontal bars, the first level on top. Any: matplotlib's axes."""
    levels, values, promised = LEVELS[::-1], values[::-1], promised[::-1]
    known = [value for value in [*values, *promised] if value]
    least, most = min(known, default=1.0), max(known, default=1.0)
    drawn = [value if value else least / 3 for value in values]
    colours = ["tab:blue" if level.name == "L0" else "tab:orange" for level in levels]
    colours = [colour if value else "none" for colour, value in zip(colours, values, strict=True)]
    axis.barh([f"{level.name} {level.title}" for level in levels], drawn, color=colours)
    for at, (value, mark) in enumerate(zip(values, promised, strict=True)):
        beside = max(drawn[at], mark or 0.0) * 1.25
        axis.text(beside, at, _label(value, unit), va="center")
        if mark:
            axis.plot([mark], [at], "|", color="black", markersize=14)
    axis.set(xscale="log", xlabel=unit, xlim=(least / 3, most * 30))


def _value(given: Sequence[Cell], level: Level, place: str, name: str) -> float | None:
    cell = find(given, level=level.name, place=place)
    return None if cell is None else cell.median(name)


def _label(value: float | None, unit: str) -> str:
    if value is None:
        return "not measured"
    if unit == "s":
        return f"{value:,.1f} s" if value >= 1 else f"{value * 1000:,.3g} ms"
    return f"{value / 1000:,.1f} GB" if value >= 1000 else f"{value:,.3g} MB"
