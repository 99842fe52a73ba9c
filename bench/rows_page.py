"""What the benchmark of rows found, as a page, a picture and JSON.

Contract: the page follows from the saved results alone: `python -m bench.rows_page RESULTS.json` writes it
anew.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from bench.ladder_page import seconds
from bench.pages import table_head, table_line, verdicts
from bench.promises import Check
from bench.rows_promises import Cell, cases, cells, fastest_pyarrow, find, hidden_share, judge_rows
from bench.rows_runs import Run
from bench.summary import Figure

_COLUMNS = ("reader", "seconds", "range", "MB over import", "times lazydelta", "note")
_COLOURS = {"lazydelta": "tab:orange", "lazydelta SQL": "tab:orange", "prefetch": "tab:orange"}


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a run found."""

    log_files: int
    grouped_bytes: int
    grouped_rows: int
    memory_limit: str
    latency_ms: float
    work_ms: float
    is_full: bool
    runs: list[Run]

    @property
    def checks(self) -> list[Check]:
        """Every promise, judged."""
        return judge_rows(cells(self.runs))


def save_rows(folder: Path, name: str, results: Results) -> Path:
    """Write `name.json`, `name.md` and `name.png`; returns the page."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_bytes(msgspec.json.format(msgspec.json.encode(results)))
    picture(folder / f"{name}.png", cells(results.runs))
    page = folder / f"{name}.md"
    page.write_text(rows_page(results, picture_name=f"{name}.png"))
    return page


def rows_page(results: Results, *, picture_name: str) -> str:
    """The page."""
    given = cells(results.runs)
    sections = [
        _head(results),
        f"![Rows]({picture_name})",
        _limit(given),
        _groups(given, results),
        _scans(given),
        _prefetch(given, results),
        f"## The promises\n\n```text\n{verdicts(results.checks)}\n```",
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def picture(path: Path, given: Sequence[Cell]) -> Path:
    """A panel for each part; where a part has several cases, their bars stand together."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    titles = {
        "limit": "select * limit 100: seconds to the first row",
        "groups": "GROUP BY: seconds",
        "scan": "every row: seconds",
        "prefetch": "behind latency: seconds of waiting",
    }
    figure, axes = plt.subplots(2, 2, figsize=(17, 11), layout="constrained")
    for axis, (part, title) in zip(axes.flat, titles.items(), strict=True):
        axis.set_title(title)
        _bars(axis, [cell for cell in given if cell.part == part], is_log=part == "limit")
    figure.savefig(path, dpi=100)
    plt.close(figure)
    return path


def _head(results: Results) -> str:
    command = "make bench-rows-full" if results.is_full else "make bench-rows"
    return f"""# Rows: the figures

Written by `{command}` (`bench/rows.py`); do not edit.

Each run has a process of its own; rounds alternate the order of readers. The clock starts after the imports
and before the table is opened; memory is the peak of resident memory over import. Figures are medians.
Seconds belong to the machine they were measured on, ratios are what counts. Data lies in the page cache.
A reader that takes more memory than the machine can spare is stopped, and told with the time until then."""


def _limit(given: Sequence[Cell]) -> str:
    told = ["## `select * limit 100`: the first row", "", "All columns of a table whose newest files exist."]
    return "\n".join([*told, *_tables(given, "limit")]) if cases(given, "limit") else ""


def _groups(given: Sequence[Cell], results: Results) -> str:
    if not cases(given, "groups"):
        return ""
    about = f"""## GROUP BY over more than memory holds

{results.grouped_rows:,} rows in {results.grouped_bytes:,} bytes of Parquet. DuckDB may hold
{results.memory_limit}, by itself and inside lazydelta. Where files have deletion vectors, rows go to DuckDB
as Arrow; that is told, and not judged."""
    return "\n".join([about, *_tables(given, "groups")])


def _scans(given: Sequence[Cell]) -> str:
    if not cases(given, "scan"):
        return ""
    columns = (
        "files",
        "lazydelta",
        "ParquetFile",
        "dataset",
        "share of the fastest",
        "CPU s, ours / theirs",
        "MB over import, ours / theirs",
    )
    lines = ["## Every row", "", "`scan.batches()` beside pyarrow on the same files, all columns.", ""]
    lines += table_head(columns)
    for case in cases(given, "scan"):
        found = [find(given, "scan", case, name) for name in ("lazydelta", "ParquetFile", "dataset")]
        ours, best = found[0], fastest_pyarrow(given, case)
        share = "-" if (ratio := _ratio(best, ours)) is None else f"{ratio:.2f}"
        both = [" / ".join(told(cell) for cell in (ours, best)) for told in (_cpu, _megabytes)]
        lines.append(table_line([case, *(_seconds(cell) for cell in found), share, *both]))
    return "\n".join(lines)


def _prefetch(given: Sequence[Cell], results: Results) -> str:
    if not cases(given, "prefetch"):
        return ""
    about = f"""## Prefetch

Every request takes {results.latency_ms:g} ms; the consumer works {results.work_ms:g} ms on each segment.
Told is for how long it stood still, from its first `next` on, with the default read-ahead and with none."""
    columns = ("table", "waiting, prefetch", "waiting, none", "hidden")
    lines = [about, "", *table_head(columns)]
    for case in cases(given, "prefetch"):
        ahead, none = (find(given, "prefetch", case, name) for name in ("prefetch", "no prefetch"))
        hidden = "-"
        if ahead is not None and none is not None and ahead.seconds and none.seconds:
            hidden = f"{hidden_share(ahead.seconds, none.seconds):.0%}"
        lines.append(table_line([case, _seconds(ahead), _seconds(none), hidden]))
    return "\n".join(lines)


def _tables(given: Sequence[Cell], part: str) -> list[str]:
    lines = []
    for case in cases(given, part):
        lines += ["", f"**{case}**", "", *table_head(_COLUMNS)]
        chosen = [cell for cell in given if (cell.part, cell.case) == (part, case)]
        ours = next((cell for cell in chosen if cell.reader == "lazydelta"), None)
        chosen.sort(key=lambda cell: cell.seconds.median if cell.seconds else float("inf"))
        lines += [table_line(_row(cell, ours)) for cell in chosen]
    return lines


def _row(cell: Cell, ours: Cell | None) -> list[str]:
    if cell.seconds is None:
        is_told = cell.failed_s is None or (cell.failure or "").startswith("stopped after")
        after = "" if is_told else f" (after {cell.failed_s:,.1f} s)"
        return [cell.reader, "-", "", "", "", f"{cell.failure}{after}".replace("|", "/")]
    spread = f"{cell.seconds.least:.3f} to {cell.seconds.most:.3f}"
    times = "" if (ratio := _ratio(cell, ours)) is None else f"{ratio:,.2f}"
    notes = {True: "files handed to DuckDB", False: "rows as Arrow", None: ""}[cell.handed_over]
    notes = "; ".join(filter(None, [notes, cell.failure]))
    return [cell.reader, f"{cell.seconds.median:.3f}", spread, _megabytes(cell), times, notes]


def _ratio(slow: Cell | None, quick: Cell | None) -> float | None:
    if slow is None or quick is None or slow.seconds is None or quick.seconds is None:
        return None
    return slow.seconds.median / quick.seconds.median


def _seconds(cell: Cell | None) -> str:
    if cell is None or cell.seconds is None:
        return "-" if cell is None else f"{cell.failure}"
    return seconds(cell.seconds.median)


def _cpu(cell: Cell | None) -> str:
    return "-" if cell is None or cell.cpu_s is None else f"{cell.cpu_s.median:,.2f}"


def _megabytes(cell: Cell | None) -> str:
    return "-" if cell is None or cell.peak_mb is None else f"{cell.peak_mb.most:,.0f}"


def _bars(axis: Any, shown: Sequence[Cell], *, is_log: bool) -> None:  # Any: matplotlib's axes
    shown = shown[::-1]
    several = len({cell.case for cell in shown}) > 1
    labels = [f"{cell.case}: {cell.reader}" if several else cell.reader for cell in shown]
    values = [cell.seconds.median if cell.seconds else 0.0 for cell in shown]
    colours = [_COLOURS.get(cell.reader, "tab:blue") for cell in shown]
    bars = axis.barh(labels, values, color=colours)
    axis.bar_label(bars, labels=[_word(cell.seconds) for cell in shown], padding=3)
    if is_log and any(values):
        axis.set(xscale="log", xlim=(min(value for value in values if value) / 2, max(values) * 10))
    else:
        axis.margins(x=0.15)


def _word(figure: Figure | None) -> str:
    return "failed" if figure is None else seconds(figure.median)


def main() -> None:
    """Write the page of saved results anew, beside them."""
    path = Path(sys.argv[1])
    save_rows(path.parent, path.stem, msgspec.json.decode(path.read_bytes(), type=Results))


if __name__ == "__main__":
    main()
