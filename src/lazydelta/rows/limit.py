"""Limit: at most so many rows, then nothing below is pulled any more."""

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
