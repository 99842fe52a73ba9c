"""Rows of a table as delta-rs and DuckDB's delta extension read them.

Contract: a peer that cannot read a table raises `CannotReadError` with the peer's own words. DuckDB's
extension is built for an older DuckDB, so it runs in a process of its own, kept from table to table; rows
come back as a Parquet file.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq

from bench.environments import python_of

_WORKER = """
import json, pathlib, sys, duckdb, duckdb_extension_delta
folder = pathlib.Path(duckdb_extension_delta.__file__).parent / "extensions" / f"v{duckdb.__version__}"
connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
connection.execute(f"LOAD '{folder / 'delta.duckdb_extension'}'")
connection.execute("SET TimeZone = 'UTC'")
for line in sys.stdin:
    table, target = json.loads(line)
    try:
        connection.execute(f"COPY (SELECT * FROM delta_scan('{table}')) TO '{target}' (FORMAT parquet)")
        answer = None
    except Exception as error:
        answer = f"{type(error).__name__}: {error}"
    print(json.dumps(answer), flush=True)
"""


class CannotReadError(Exception):
    """A peer said why it does not read a table."""


def delta_rs_rows(folder: Path, version: int) -> pa.Table:
    """All rows of a version, by delta-rs."""
    try:
        table = deltalake.DeltaTable(str(folder), version=version)
        reader = deltalake.QueryBuilder().register("t", table).execute("select * from t")
        return pa.table(reader.read_all())
    except BaseException as error:  # a panic of Rust is none of Python's own errors
        if isinstance(error, KeyboardInterrupt):
            raise
        raise CannotReadError(f"{type(error).__name__}: {error}") from error


class DuckDelta:
    """DuckDB with its delta extension, in a process of its own."""

    def __init__(self, scratch: Path) -> None:
        self._target = scratch / "rows.parquet"
        self._process = subprocess.Popen(
            [str(python_of("duckdb")), "-c", _WORKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def rows(self, folder: Path) -> pa.Table:
        """All rows of the newest version."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._target.unlink(missing_ok=True)
        self._process.stdin.write(json.dumps([str(folder), str(self._target)]) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        failure = json.loads(line) if line else "the process ended"
        if failure is not None:
            raise CannotReadError(failure)
        return pq.ParquetFile(self._target).read()

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()
