"""Runs of one reader and query, summed up: medians with their spread, and ratios between readers.

Contract: pure. A figure that no run gave is None; a reader that failed keeps its reason.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import msgspec

from bench.readers import READERS, Kind, Result

# What is compared for each query: the event the clock is stopped at.
EVENTS = {
    "hundred": "hundred_s",
    "thousand": "thousand_s",
    "all": "all_s",
    "predicate": "all_s",
    "today": "hundred_s",
}


_FIGURES = (
    "first_s",
    "cpu_s",
    "peak_mb",
    "bytes_read",
    "requests",
    "round_trips",
    "commits_read",
    "row_groups_read",
)


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """Median and range of one number over the rounds."""

    median: float
    least: float
    most: float


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One reader's answer to one query on one table."""

    table: str
    files: int
    reader: str
    kind: Kind
    query: str
    seconds: Figure | None = None
    first_s: Figure | None = None
    cpu_s: Figure | None = None
    peak_mb: Figure | None = None
    bytes_read: Figure | None = None
    requests: Figure | None = None
    round_trips: Figure | None = None
    commits_read: Figure | None = None
    row_groups_read: Figure | None = None
    note: str = ""
    failure: str | None = None


def rows(results: Sequence[Result]) -> list[Row]:
    """One row for every reader, query and table that was run."""
    seen = dict.fromkeys((r.table, r.files, r.reader, r.query) for r in results)
    made = [_row([r for r in results if (r.table, r.files, r.reader, r.query) == key]) for key in seen]
    return [*made, *(_hundred_of(row) for row in made if _is_eager(row) and row.query == "all")]


def find(table: Sequence[Row], *, files: int, reader: str, query: str, name: str = "ladder") -> Row | None:
    """The row of that reader, if it was run."""
    wanted = (name, files, reader, query)
    return next((row for row in table if (row.table, row.files, row.reader, row.query) == wanted), None)


def fastest(table: Sequence[Row], *, files: int, query: str, kinds: tuple[Kind, ...]) -> Row | None:
    """The quickest reader of these kinds that answered."""
    answered = [
        row
        for row in table
        if row.table == "ladder"
        and row.files == files
        and row.query == query
        and row.kind in kinds
        and row.seconds
    ]
    return min(answered, key=_seconds, default=None)


def ratio(slow: Row, quick: Row) -> Figure:
    """How many times longer `slow` took; the range takes the unluckiest and the luckiest pair."""
    assert slow.seconds is not None and quick.seconds is not None
    return Figure(
        median=slow.seconds.median / quick.seconds.median,
        least=slow.seconds.least / quick.seconds.most,
        most=slow.seconds.most / quick.seconds.least,
    )


def _row(runs: list[Result]) -> Row:
    good = [run.facts for run in runs if run.failure is None]
    first = runs[0]
    row = Row(table=first.table, files=first.files, reader=first.reader, kind=first.kind, query=first.query)
    if not good:
        return msgspec.structs.replace(row, failure=first.failure)
    # Readers that only give rows answer "the first hundred files" with their first row.
    seconds = _figure(good, EVENTS[first.query]) or _figure(good, "first_s")
    figures = {name: _figure(good, name) for name in _FIGURES}
    failed = len(runs) - len(good)
    notes = [good[0].get("note"), f"failed {failed} of {len(runs)} times" if failed else None]
    note = "; ".join(text for text in notes if text)
    return msgspec.structs.replace(row, seconds=seconds, note=note, **figures)


def _hundred_of(row: Row) -> Row:
    return msgspec.structs.replace(row, query="hundred", note="loads all first")


def _is_eager(row: Row) -> bool:
    return any(reader.is_eager for reader in READERS if reader.name == row.reader)


def _figure(facts: list[dict[str, object]], name: str) -> Figure | None:
    values = [float(value) for fact in facts if isinstance(value := fact.get(name), int | float)]
    if not values:
        return None
    return Figure(median=statistics.median(values), least=min(values), most=max(values))


def _seconds(row: Row) -> float:
    assert row.seconds is not None
    return row.seconds.median
