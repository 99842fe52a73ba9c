"""Limit: at most so many rows, then nothing below is pulled any more; and at most so many at a time.

Contract: rows are counted and sliced, never looked at; none is copied.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from typing import Protocol, TypeVar


class Sliceable(Protocol):
    """Rows in a row: a `pa.RecordBatch` is such a thing."""

    @property
    def num_rows(self) -> int:
        """How many."""
        ...

    def slice(self, offset: int = 0, length: int | None = None) -> Sliceable:
        """Some of them."""
        ...


Rows = TypeVar("Rows", bound=Sliceable)
Stage = Generator[Rows, None, None]


def limited(stage: Stage[Rows], limit: int | None) -> Stage[Rows]:
    """The first `limit` rows. What is below is closed before the last of them goes out."""
    missing = limit
    with closing(stage):
        while missing is None or missing > 0:
            rows = next(stage, None)
            if rows is None:
                return
            if missing is not None:
                rows = _slice(rows, 0, missing)
                missing -= rows.num_rows
                if missing == 0:
                    stage.close()
            yield rows


def without_first(stage: Stage[Rows], count: int) -> Stage[Rows]:
    """The rows after the first `count`."""
    with closing(stage):
        for rows in stage:
            if count < rows.num_rows:
                yield _slice(rows, count, rows.num_rows)
            count = max(0, count - rows.num_rows)


def sliced(stage: Stage[Rows], rows_max: int) -> Stage[Rows]:
    """The same rows, at most so many at a time."""
    with closing(stage):
        for rows in stage:
            for first in range(0, rows.num_rows, rows_max):
                yield _slice(rows, first, rows_max)


def _slice(rows: Rows, offset: int, length: int) -> Rows:
    if offset == 0 and rows.num_rows <= length:
        return rows
    part: Rows = rows.slice(offset, length)  # type: ignore[assignment]  # a slice is of the same kind
    return part
