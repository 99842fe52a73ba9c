"""Limit: at most so many rows, then nothing below is pulled any more; and at most so many at a time."""

from __future__ import annotations

from contextlib import closing

from lazydelta.log.file_rows import Batches


def limited(batches: Batches, limit: int | None) -> Batches:
    """The first `limit` rows. What is below is closed before the last of them goes out."""
    missing = limit
    with closing(batches):
        while missing is None or missing > 0:
            rows = next(batches, None)
            if rows is None:
                return
            if missing is not None:
                rows = rows.slice(0, missing)
                missing -= rows.num_rows
                if missing == 0:
                    batches.close()
            yield rows


def without_first(batches: Batches, count: int) -> Batches:
    """The rows after the first `count`."""
    with closing(batches):
        for rows in batches:
            if count < rows.num_rows:
                yield rows.slice(count) if count else rows
            count = max(0, count - rows.num_rows)


def sliced(batches: Batches, batch_rows: int) -> Batches:
    """The same rows, at most so many in a batch; nothing is copied."""
    with closing(batches):
        for rows in batches:
            for first in range(0, rows.num_rows, batch_rows):
                yield rows if rows.num_rows <= batch_rows else rows.slice(first, batch_rows)
