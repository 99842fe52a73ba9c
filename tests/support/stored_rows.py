"""A small table with everything that a query may have to read, and the queries with their right answers.

Data files of several row groups, deletion vectors in a file and in the log, a checkpoint, a tail that deletes
more, and a sidecar that is built where the table is stored.
Contract: rows are numbered; `LIVE_IDS` are those that every reader must give, worked out here. A data file is
larger than what is read of its end, so that it takes several requests.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import lazydelta as ld
from lazydelta.sidecar import SidecarConfig
from lazydelta.upkeep.build import build_sidecar
from tests.support.actions import add, remove, stats
from tests.support.deletion_vector_writer import inline_vector, stored_vectors
from tests.support.servers import TableServer
from tests.support.table_builder import TableBuilder

FILES, ROWS_A_FILE = 8, 12_000
ROWS_A_GROUP = 4_000
CONFIG = SidecarConfig(row_group_rows=2, row_groups_max=8)
STORED, LATER, INLINE = (
    range(0, 9_000, 3),
    range(0, 9_000),
    [0, 5_000, 11_999],
)  # rows deleted of files 1, 2, 3
LAST_HOURS = "_event_hour >= '2026021006'"


def hour_of(number: int) -> str:
    """The hour of a file."""
    return f"20260210{number:02}"


PATHS = [f"_event_hour={hour_of(number)}/part-{number}.parquet" for number in range(FILES)]


def live_ids() -> list[int]:
    """The rows that are left."""
    gone = {ROWS_A_FILE * file + row for file, rows in ((1, STORED), (2, LATER), (3, INLINE)) for row in rows}
    return [id_ for id_ in range(FILES * ROWS_A_FILE) if id_ not in gone]


LIVE_IDS = live_ids()


def row_table(folder: Path) -> TableBuilder:
    """Six files in a checkpoint, two in the tail, which also deletes rows of a file below it."""
    table = TableBuilder(
        folder,
        schema={"id": "long", "value": "double", "_event_hour": "string"},
        partition_columns=("_event_hour",),
    )
    files = [_data_file(folder, number) for number in range(FILES)]
    stored, later = stored_vectors(folder, [STORED, LATER])
    files[1] |= {"deletionVector": stored}
    files[3] |= {"deletionVector": inline_vector(INLINE)}
    table.commit(files[:3]).commit(files[3:6]).checkpoint()
    table.commit([files[6]])
    table.commit([files[2] | {"deletionVector": later}], [remove(files[2]["path"])])
    return table.commit([files[7]]).crc()


def stored_table(server: TableServer, folder: Path) -> str:
    """The table on a server, its sidecar built there."""
    url = server.url("rows")
    server.upload(row_table(folder).path, url)
    build_sidecar(server.open(url), config=CONFIG)
    return url


def _data_file(folder: Path, number: int) -> dict[str, Any]:
    first = number * ROWS_A_FILE
    ids = np.arange(first, first + ROWS_A_FILE)
    rows = pa.table({"id": ids, "value": np.random.default_rng(number).random(ROWS_A_FILE)})
    path = PATHS[number]
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, folder / path, row_group_size=ROWS_A_GROUP, compression="none", use_dictionary=False)
    bounds = stats(ROWS_A_FILE, low={"id": first}, high={"id": first + ROWS_A_FILE - 1}, tight_bounds=False)
    size = (folder / path).stat().st_size
    return add(path, partition={"_event_hour": hour_of(number)}, size=size, stats=bounds)


def read_files(table: ld.Table) -> bool:
    """All live files, each once."""
    return sorted(file.path for file in table.scan().files()) == PATHS


def read_last_hours(table: ld.Table) -> bool:
    """Two files by the hour, through the sidecar."""
    return len(list(table.scan(LAST_HOURS).files())) == 2


def read_rows(table: ld.Table) -> bool:
    """Every row, each once."""
    found = [id_ for batch in table.scan().batches(["id"]) for id_ in batch["id"].to_pylist()]
    return sorted(found) == LIVE_IDS


def read_pages(table: ld.Table) -> bool:
    """Page after page, in order."""
    found: list[int] = []
    token = None
    while True:
        page = table.scan().page(rows=20_000, after=token, columns=["id"])
        found += page.rows["id"].to_pylist()
        token = page.next_token
        if token is None:
            return sorted(found) == LIVE_IDS


def read_sql(table: ld.Table) -> bool:
    """Counted and summed by DuckDB."""
    rows = table.sql("select count(*), sum(id) from t").fetchall()
    return rows == [(len(LIVE_IDS), sum(LIVE_IDS))]


READS: dict[str, Callable[[ld.Table], bool]] = {
    "files": read_files,
    "last hours": read_last_hours,
    "rows": read_rows,
    "pages": read_pages,
    "sql": read_sql,
}
