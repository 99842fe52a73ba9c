"""`select * limit 100` of one reader in its own process: the time to the first row, told as JSON.

Contract: standard library only, as `measure`. A reader that fails says why and after how many seconds:
its first row would have come later than that.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

from measure import Measurement, arguments

ROWS_WANTED = 100


def first_rows(reader: str, pull: Callable[[str], Iterable[int]], *, note: str = "") -> None:
    """`pull` opens the table and yields how many rows came, each time some did; prints the figures."""
    table, query = arguments()
    run = Measurement(reader, query)
    run.start()
    rows = 0
    try:
        for count in pull(table):
            rows += count
            run.saw(rows)
            if rows >= ROWS_WANTED:
                break
    except Exception as error:  # noqa: BLE001 - whatever another project raises is told as its failure
        words = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        print(json.dumps({"reader": reader, "failed": words, "failed_s": run.elapsed()}), flush=True)
        return
    run.finish(files=None, complete=False, rows=rows, note=note)
