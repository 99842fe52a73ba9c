"""What a run found, as text, as a picture and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from bench.pages import table_lines, verdicts
from bench.promises import Check
from bench.readers import Result
from bench.summary import EVENTS, Figure, Row, fastest, find, ratio

_TITLES = {
    "hundred": "first 100 files",
    "thousand": "first 1,000 files",
    "all": "every file",
    "predicate": "files that `value < 100.05` cannot rule out (JSON statistics)",
    "today": "100 files of today's partition",
}
_COLOURS = {"ours": "tab:orange", "peer": "tab:blue", "kernel": "tab:cyan", "floor": "tab:gray"}
_COLUMNS = ("reader", "seconds", "range", "CPU s", "MB over import", "times lazydelta", "note")


def tables(rows: Sequence[Row]) -> str:
    """One Markdown table for each table and query."""
    keys = dict.fromkeys((row.table, row.files, row.query) for row in rows)
    order = sorted(keys, key=lambda key: (key[1], key[0], list(EVENTS).index(key[2])))
    return "\n\n".join(_table(rows, *key) for key in order)


def headline(rows: Sequence[Row], files: int) -> str:
    """Ratios against the fastest peer and the bare stream, in a line each."""
    lines = []
    for query in ("hundred", "all", "predicate"):
        ours = find(rows, files=files, reader="lazydelta", query=query)
        bare = find(rows, files=files, reader="bare stream", query=query)
        for other in (fastest(rows, files=files, query=query, kinds=("peer",)), bare):
            if ours and ours.seconds and other and other.seconds:
                told = ratio(other, ours)
                times = f"{told.median:,.2f} times as long ({told.least:,.2f} to {told.most:,.2f})"
                lines.append(f"{files:>10,} files, {_TITLES[query]}: {other.reader} takes {times}")
    return "\n".join(lines)


def save(
    folder: Path, name: str, results: Sequence[Result], rows: Sequence[Row], checks: Sequence[Check]
) -> Path:
    """Write `name.json`, `name.md` and `name.png`; returns the picture."""
    folder.mkdir(parents=True, exist_ok=True)
    whole = {"results": results, "rows": rows, "checks": checks}
    (folder / f"{name}.json").write_bytes(msgspec.json.format(msgspec.json.encode(whole)))
    (folder / f"{name}.md").write_text(f"{tables(rows)}\n\n```text\n{verdicts(checks)}\n```\n")
    return _picture(folder / f"{name}.png", rows)


def _table(rows: Sequence[Row], table: str, files: int, query: str) -> str:
    chosen = [row for row in rows if (row.table, row.files, row.query) == (table, files, query)]
    ours = next((row for row in chosen if row.kind == "ours"), None)
    chosen.sort(key=lambda row: row.seconds.median if row.seconds else float("inf"))
    title = f"**{files:,} files, {table}: {_TITLES[query]}**"
    return "\n".join([title, "", *table_lines(_COLUMNS, [_cells(row, ours) for row in chosen])])


def _cells(row: Row, ours: Row | None) -> list[str]:
    if row.seconds is None:
        return [row.reader, "-", "", "", "", "", row.failure or ""]
    spread = f"{row.seconds.least:.3f} to {row.seconds.most:.3f}"
    times = f"{ratio(row, ours).median:,.2f}" if ours is not None and ours.seconds else ""
    reads = ""
    if row.bytes_read and row.requests and row.round_trips:
        reads = (
            f"{row.bytes_read.median:,.0f} bytes in {row.requests.median:,.0f} requests, "
            f"{row.round_trips.median:,.0f} round trips"
        )
    figures = [f"{row.seconds.median:.3f}", spread, _number(row.cpu_s), _number(row.peak_mb)]
    return [row.reader, *figures, times, row.note or reads]


def _number(figure: Figure | None) -> str:
    return "" if figure is None else f"{figure.median:,.1f}"


def _picture(path: Path, rows: Sequence[Row]) -> Path:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    files = max(row.files for row in rows)
    titles = {"hundred": "first 100 files", "all": "every file", "predicate": "predicate on JSON statistics"}
    figure, axes = plt.subplots(2, len(titles), figsize=(16, 7.5), layout="constrained")
    for column, (query, title) in enumerate(titles.items()):
        shown = [r for r in rows if (r.table, r.files, r.query) == ("ladder", files, query)]
        shown.sort(key=lambda row: row.seconds.median if row.seconds else float("inf"), reverse=True)
        axes[0, column].set_title(title)
        _bars(axes[0, column], shown, "seconds", "seconds")
        _bars(axes[1, column], shown, "peak_mb", "MB over import")
    figure.suptitle(f"Delta readers on a log of {files:,} files")
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return path


def _bars(axis: Any, shown: Sequence[Row], name: str, unit: str) -> None:  # Any: matplotlib's axes
    """A bar for each reader; one that gave no answer has a word instead."""
    figures: list[Figure | None] = [getattr(row, name) for row in shown]
    least = min((figure.median for figure in figures if figure), default=1.0)
    values = [figure.median if figure else least / 2 for figure in figures]
    colours = ["none" if row.seconds is None else _COLOURS[row.kind] for row in shown]
    bars = axis.barh([row.reader for row in shown], values, color=colours)
    words = [_word(row, figure) for row, figure in zip(shown, figures, strict=True)]
    axis.bar_label(bars, labels=words, padding=3)
    axis.set(xscale="log", xlabel=unit, xlim=(least / 2, max(values) * 30))


def _word(row: Row, figure: Figure | None) -> str:
    if figure is None:
        return "cannot" if (row.failure or "").startswith("cannot") else (row.failure or "")
    return f"{figure.median:,.0f}" if figure.median >= 100 else f"{figure.median:.3g}"
