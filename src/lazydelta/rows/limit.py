"""Limit: at most so many rows, then nothing below is pulled any more."""

from __future__ import annotations

from lazydelta.log.file_rows import Batches


def limited(batches: Batches, limit: int | None) -> Batches:
    """The first `limit` rows; closes what is below as soon as they are there."""
    if limit is None:
        yield from batches
        return
    missing = limit
    while missing > 0 and (rows := next(batches, None)) is not None:
        yield rows.slice(0, missing)
        missing -= rows.num_rows
    batches.close()
