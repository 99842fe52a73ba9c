"""Small tables of readings with real data files, and their rows worked out without lazydelta."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, WriterProperties, write_deltalake

import lazydelta as ld
from lazydelta.settings import Settings
from lazydelta.sidecar import SidecarConfig
from lazydelta.storage import open_storage
from lazydelta.upkeep.build import build_sidecar

Row = dict[str, Any]
HOURS = 8
ROWS_A_FILE = 30
ROWS_A_GROUP = 7


def reading(id_: int) -> Row:
    """One row: an id, its hour, a value that repeats, a text that is sometimes null."""
    return {
        "id": id_,
        "_event_hour": f"20260210{id_ // ROWS_A_FILE:02}",
        "value": (id_ * 37 % 101) / 10,
        "device": None if id_ % 11 == 0 else f"sensor-{id_ % 5}",
    }


def all_readings(hours: int = HOURS) -> list[Row]:
    """Every row of the table, by id."""
    return [reading(id_) for id_ in range(hours * ROWS_A_FILE)]


def readings_table(
    folder: Path, *, hours: int = HOURS, checkpoint_at: int | None = None, sidecar: bool = False
) -> str:
    """One file an hour, written in another order than that of the hours; several row groups a file."""
    table = str(folder / "readings")
    for written, hour in enumerate(sorted(range(hours), key=lambda hour: hour * 5 % hours)):
        first = hour * ROWS_A_FILE
        rows = pa.Table.from_pylist([reading(id_) for id_ in range(first, first + ROWS_A_FILE)])
        write_deltalake(
            table,
            rows,
            mode="append",
            partition_by=["_event_hour"],
            writer_properties=WriterProperties(max_row_group_size=ROWS_A_GROUP),
        )
        if written == checkpoint_at:
            DeltaTable(table).create_checkpoint()
            if sidecar:
                build_sidecar(open_storage(table, Settings()), config=SidecarConfig(row_group_rows=2))
    return table


def rows_of(scan: ld.Scan, columns: list[str] | None = None, **how: Any) -> list[Row]:
    """The rows that a scan gives, in its order."""
    return [row for batch in scan.batches(columns, **how) for row in batch.to_pylist()]


def by_id(rows: list[Row]) -> list[Row]:
    """In an order of their own."""
    return sorted(rows, key=lambda row: row["id"])


def eventually(is_so: Callable[[], bool], seconds: float = 60.0) -> bool:
    """Whether something becomes true; a busy machine takes its time."""
    until = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True
