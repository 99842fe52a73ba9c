"""Scans that share too little memory wait for each other, and none of them for ever."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lazydelta as ld
from lazydelta import limits
from tests.support.actions import add
from tests.support.table_builder import TableBuilder

FILES, ROWS_A_FILE, ROWS_A_GROUP = 12, 400, 200
SCANS = 16
LITTLE_BYTES = 4096  # a piece of a log or of rows takes a quarter of it


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Half of the files in a checkpoint, half in the tail; several row groups each."""
    made = tmp_path_factory.mktemp("table")
    table = TableBuilder(made, schema={"value": "long", "other": "long"}, partition_columns=())
    for number in range(FILES):
        path = made / f"part-{number}.parquet"
        pq.write_table(
            pa.table(dict.fromkeys(("value", "other"), range(ROWS_A_FILE))), path, row_group_size=ROWS_A_GROUP
        )
        table.commit([add(path.name, partition={}, size=path.stat().st_size)])
        if number == FILES // 2:
            table.checkpoint(row_group_rows=2)
    return made


@pytest.fixture
def opened(folder: Path) -> Iterator[ld.Table]:
    """The table, while the process has little memory; whoever waits is given up after a while."""
    options = {"delta.cache.bytes": "0", "delta.scan.timeout_seconds": "30"}
    yield ld.open(folder, storage_options=options | {"delta.memory.bytes": str(LITTLE_BYTES)})
    ld.open(folder, storage_options=options | {"delta.memory.bytes": str(limits.MEMORY_BYTES)})


@pytest.mark.parametrize(
    ("columns", "prefetch_size"),
    [
        pytest.param(None, 0, id="whole files"),
        pytest.param(["value"], 0, id="one column"),
        pytest.param(["value"], 2, id="one column, read ahead"),
        pytest.param(None, 2, id="whole files, read ahead"),
    ],
)
def test_many_scans_of_rows_in_little_memory_all_come_to_their_end(
    opened: ld.Table, columns: list[str] | None, prefetch_size: int
) -> None:
    """Each holds memory of rows while it waits for that of its files, and the other way round."""
    begin = threading.Barrier(SCANS)
    scans = [
        opened.scan(batch_size=100, strategy=("forward", "reverse")[number % 2]) for number in range(SCANS)
    ]
    counts = [0] * SCANS
    errors: list[BaseException] = []

    def read(number: int) -> None:
        begin.wait()
        try:
            for rows in scans[number].batches(columns, prefetch_size=prefetch_size):
                counts[number] += rows.num_rows
        except BaseException as error:  # noqa: BLE001 - looked at below
            errors.append(error)

    threads = [threading.Thread(target=read, args=(number,), daemon=True) for number in range(SCANS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert counts == [FILES * ROWS_A_FILE] * SCANS
    reports = [scan.explain() for scan in scans]
    assert sum(report.memory_waits for report in reports) > 0, "files were waited for"
    assert sum(report.rows.memory_waits for report in reports if report.rows) > 0, "rows were waited for"
