"""Runs of the ladder, summed up: one cell for each table, place, level and query.

Contract: pure. A figure is the median over the rounds, with its range; one that no run gave is not there. A
cell whose every run failed keeps the reason.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import msgspec

from bench.ladder_runs import PlaceName, Run
from bench.summary import Figure

FIGURES = (
    "first_s",
    "all_s",
    "cpu_s",
    "peak_mb",
    "arrow_mb",
    "files",
    "requests",
    "round_trips",
    "bytes_read",
    "own_requests",
    "own_round_trips",
    "own_bytes_read",
    "parts_read",
    "row_groups_read",
    "row_groups_skipped",
    "cold_s",
    "cold_requests",
    "cache_bytes",
)


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One query at one level."""

    table: str
    place: PlaceName
    level: str
    query: str
    figures: dict[str, Figure] = {}
    rounds: int = 0
    note: str = ""
    failure: str | None = None

    def median(self, name: str) -> float | None:
        """A figure, or None where no run gave it."""
        figure = self.figures.get(name)
        return None if figure is None else figure.median


def cells(runs: Sequence[Run]) -> list[Cell]:
    """In the order in which they were first met."""
    keys = dict.fromkeys((run.table, run.place, run.level, run.query) for run in runs)
    return [_cell([r for r in runs if (r.table, r.place, r.level, r.query) == key]) for key in keys]


def find(
    given: Sequence[Cell], *, level: str, query: str = "hour", place: str = "disk", table: str = "ladder"
) -> Cell | None:
    """The cell, if it was run and did not fail."""
    wanted = (table, place, level, query)
    found = next((c for c in given if (c.table, c.place, c.level, c.query) == wanted), None)
    return None if found is None or found.failure is not None else found


def _cell(runs: list[Run]) -> Cell:
    good = [run for run in runs if run.failure is None]
    first = runs[0]
    cell = Cell(table=first.table, place=first.place, level=first.level, query=first.query)
    if not good:
        return msgspec.structs.replace(cell, failure=first.failure)
    figures = {name: figure for name in FIGURES if (figure := _figure(good, name)) is not None}
    failed = f"failed {len(runs) - len(good)} of {len(runs)} times" if len(good) < len(runs) else ""
    note = "; ".join(filter(None, [good[0].note, good[0].facts.get("note"), failed]))
    return msgspec.structs.replace(cell, figures=figures, rounds=len(good), note=note)


def _figure(runs: list[Run], name: str) -> Figure | None:
    values = [float(value) for run in runs if isinstance(value := run.facts.get(name), int | float)]
    if not values:
        return None
    return Figure(median=statistics.median(values), least=min(values), most=max(values))
