"""What the ladder found, as a page, a picture and JSON.

Contract: the page follows from the saved results alone: `python -m bench.ladder_page RESULTS.json` writes it
anew.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bench.ladder_cells import Cell, cells, find
from bench.ladder_levels import LEVELS, Level
from bench.ladder_notes import NOTES
from bench.ladder_picture import bars, picture
from bench.ladder_promises import Budget
from bench.ladder_runs import Run
from bench.ladder_tables import EVENT, QUERIES
from bench.pages import table_head, table_line, verdicts
from bench.promises import Check

_PLACES = {"disk": "On the local disk", "store": "Behind {latency:g} ms for every request"}
_RUNG_COLUMNS = (
    "level",
    "memory, MB",
    "the seeds",
    "first file",
    "the seeds",
    "complete",
    "the seeds",
    "requests",
    "round trips",
    "bytes",
    "row groups read",
)


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a run of the ladder found."""

    files: int
    row_groups: int
    sidecar_bytes: int
    checkpoint_bytes: int
    tail_commits: int
    wide_files: int
    latency_ms: float
    answers: dict[str, int]
    budget: Budget
    runs: list[Run]
    checks: list[Check]


def save_ladder(folder: Path, name: str, results: Results) -> Path:
    """Write `name.json`, `name.md` and `name.png`; returns the page."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_bytes(msgspec.json.format(msgspec.json.encode(results)))
    picture(folder / f"{name}.png", cells(results.runs), results.files)
    page = folder / f"{name}.md"
    page.write_text(ladder_page(results, picture_name=f"{name}.png"))
    return page


def ladder_page(results: Results, *, picture_name: str) -> str:
    """The page."""
    given = cells(results.runs)
    sections = [
        _head(results),
        f"![The ladder]({picture_name})",
        *(_rungs(given, place, results) for place in _PLACES if _was_run(given, place)),
        *(_windows(given, place, results) for place in _PLACES if _was_run(given, place)),
        _memory(given),
        _cache(given),
        _width(given, results),
        "## The ladder at a glance\n\nThe last hour, on the local disk, drawn as the seeds draw it.\n\n"
        + f"```text\n{bars(given)}\n```",
        _judged(results.checks),
        "## Notes\n\n" + "\n".join(f"- {note}" for note in NOTES),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _head(results: Results) -> str:
    budget = results.budget
    return f"""# The ladder

Written by `make ladder-full` (`bench/ladder.py`); do not edit.

One table of {results.files:,} files, partitioned by hours, with six columns of statistics:

- a checkpoint of {results.checkpoint_bytes:,} bytes, statistics as JSON;
- a sidecar of {results.sidecar_bytes:,} bytes in {results.row_groups:,} row groups;
- a tail of {results.tail_commits} commits, which began fifty minutes before its end.

Each level is the real code with what lies above it switched off; L0 is delta-rs. Each run has a process of
its own. The clock starts after the imports (of what is loaded at first use, too) and before the table is
opened; memory is the peak of resident memory over import. Figures are medians. What the seeds promise for ten
million files stands beside them.

The last hour may cost {budget.bytes_max:,} bytes: twice the {budget.projected_bytes:,} of its row groups'
projected columns, {budget.manifest_bytes:,} of the manifest, {budget.tail_bytes:,} of the tail."""


def _rungs(given: Sequence[Cell], place: str, results: Results) -> str:
    title = _PLACES[place].format(latency=results.latency_ms)
    counted = "as the server counted them" if place == "store" else "as `explain` counts them"
    lines = [
        f"## {title}: the last hour",
        "",
        f"{results.answers['hour']:,} files. Requests, round trips and bytes {counted}.",
        "",
        *table_head(_RUNG_COLUMNS),
        *(table_line(_rung(given, level, place)) for level in LEVELS),
    ]
    notes = _notes(given, place)
    return "\n".join([*lines, *(["", *notes] if notes else [])])


def _rung(given: Sequence[Cell], level: Level, place: str) -> list[str]:
    cell = find(given, level=level.name, place=place)
    name = f"**{level.name}** {level.title}"
    if cell is None:
        return [name, *["-"] * (len(_RUNG_COLUMNS) - 1)]
    seeds = level.seeds
    groups = "-"
    if (read := cell.median("row_groups_read")) is not None:
        skipped = cell.median("row_groups_skipped") or 0
        groups = f"{read:,.0f} of {read + skipped:,.0f}"
    return [
        name,
        _megabytes(cell.median("peak_mb")),
        seeds.memory,
        seconds(cell.median("first_s")),
        seeds.first,
        seconds(cell.median("all_s")),
        seeds.complete,
        _whole(cell.median("requests")),
        _whole(cell.median("round_trips")) if place == "store" else "-",
        _whole(cell.median("bytes_read")),
        groups,
    ]


def _windows(given: Sequence[Cell], place: str, results: Results) -> str:
    queries = [query for query in (*QUERIES, EVENT) if any(cell.query == query.name for cell in given)]
    title = _PLACES[place].format(latency=results.latency_ms)
    columns = ["level", *(f"{query.title} ({results.answers[query.name]:,} files)" for query in queries)]
    lines = [
        f"## {title}: every window",
        "",
        "Time to complete, and memory over import. Below L7 the consumer of `take 100` pulls everything.",
        "",
        *table_head(columns),
    ]
    for level in LEVELS:
        found = [find(given, level=level.name, query=query.name, place=place) for query in queries]
        told = [
            "-"
            if cell is None
            else f"{seconds(cell.median('all_s'))}, {_megabytes(cell.median('peak_mb'))} MB"
            for cell in found
        ]
        lines.append(table_line([f"**{level.name}** {level.title}", *told]))
    return "\n".join(lines)


def _memory(given: Sequence[Cell]) -> str:
    """Peaks of resident memory over import and of Arrow's own, on the local disk."""
    asked = (
        ("the tail alone", find(given, level="L2", query="tail")),
        ("the last hour", find(given, level="L7")),
        ("everything", find(given, level="L7", query="all")),
    )
    columns = ("L7 on the local disk", "resident, MB", "Arrow, MB", "CPU")
    lines = ["## Memory", "", *table_head(columns)]
    for words, cell in asked:
        if cell is not None:
            figures = [_megabytes(cell.median(name)) for name in ("peak_mb", "arrow_mb")]
            lines.append(table_line([words, *figures, seconds(cell.median("cpu_s"))]))
    return "\n".join(lines)


def _cache(given: Sequence[Cell]) -> str:
    """The first query of a process, and the second with and without the cache."""
    columns = (
        "place",
        "first query",
        "second, no cache",
        "second, cached",
        "with max_staleness",
        "cache holds",
    )
    lines = ["## The cache", "", *table_head(columns)]
    for place, words in (("disk", "local disk"), ("store", "store")):
        cached, stale = (find(given, level=name, place=place) for name in ("L8", "L8s"))
        again = find(given, level="L7", query="again", place=place)
        if cached is None:
            continue
        held = cached.median("cache_bytes")
        lines.append(
            table_line(
                [
                    words,
                    seconds(cached.median("cold_s")),
                    "-" if again is None else seconds(again.median("all_s")),
                    _with_requests(cached),
                    "-" if stale is None else _with_requests(stale),
                    "-" if held is None else f"{held:,.0f} bytes",
                ]
            )
        )
    return "\n".join(lines)


def _width(given: Sequence[Cell], results: Results) -> str:
    rows = []
    for place, words in (("disk", "local disk"), ("store", "store")):
        for table, width in (("narrow", "6"), ("wide", "150")):
            cell = find(given, level="L7", place=place, table=table)
            if cell is not None:
                figures = [_whole(cell.median(name)) for name in ("requests", "bytes_read")]
                times = [seconds(cell.median("all_s")), _megabytes(cell.median("peak_mb"))]
                rows.append(table_line([words, width, *times, *figures]))
    if not rows:
        return ""
    columns = ("place", "stat columns", "complete", "memory, MB", "requests", "bytes")
    about = f"The last hour of two tables of {results.wide_files:,} files without a tail, at L7."
    head = ["## Wide tables", "", about, "", *table_head(columns)]
    return "\n".join([*head, *rows])


def _judged(checks: Sequence[Check]) -> str:
    return f"## The promises\n\nThey are made for ten million files.\n\n```text\n{verdicts(checks)}\n```"


def _notes(given: Sequence[Cell], place: str) -> list[str]:
    """Failures and oddities of the rungs' cells."""
    told = []
    for cell in given:
        if cell.place == place and cell.query == "hour" and cell.level.startswith("L"):
            text = cell.failure or cell.note
            where = "" if cell.table == "ladder" else f", {cell.table} table"
            told += [f"- {cell.level}{where}: {text}"] if text else []
    others = [cell for cell in given if cell.place == place and cell.level in ("duckdb", "kernel-java")]
    for cell in others:
        memory = _megabytes(cell.median("peak_mb"))
        answer = f"{seconds(cell.median('all_s'))}, {memory} MB"
        told.append(f"- {cell.level}, for comparison: {cell.failure or answer}")
    return told


def seconds(value: float | None) -> str:
    """A time in the unit that reads best."""
    if value is None:
        return "-"
    return f"{value:,.2f} s" if value >= 1 else f"{value * 1000:,.3g} ms"


def _megabytes(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def _whole(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def _with_requests(cell: Cell) -> str:
    return f"{seconds(cell.median('all_s'))}, {_whole(cell.median('requests'))} requests"


def _was_run(given: Sequence[Cell], place: str) -> bool:
    return any(cell.place == place for cell in given)


def main() -> None:
    """Write the page of saved results anew, beside them."""
    path = Path(sys.argv[1])
    save_ladder(path.parent, path.stem, msgspec.json.decode(path.read_bytes(), type=Results))


if __name__ == "__main__":
    main()
