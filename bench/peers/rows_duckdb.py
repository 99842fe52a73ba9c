"""DuckDB's delta extension: `select * … limit 100`, row by row."""

from collections.abc import Iterator
from pathlib import Path

import duckdb
import duckdb_extension_delta
from rows_measure import first_rows

folder = Path(duckdb_extension_delta.__file__).parent / "extensions" / f"v{duckdb.__version__}"
connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
connection.execute(f"LOAD '{folder / 'delta.duckdb_extension'}'")


def rows(table: str) -> Iterator[int]:
    # As a number, because DuckDB's Python client needs another package for moments with a zone.
    every_column = "* REPLACE (epoch_us(event_time) AS event_time)"
    found = connection.execute(f"SELECT {every_column} FROM delta_scan('{table}') LIMIT 100")
    while found.fetchone() is not None:
        yield 1


first_rows("duckdb", rows)
