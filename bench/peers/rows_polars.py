"""Polars: `scan_delta(…).head(100).collect()`."""

from collections.abc import Iterator

import polars
from rows_measure import first_rows


def rows(table: str) -> Iterator[int]:
    yield polars.scan_delta(table).head(100).collect().height


first_rows("polars", rows)
