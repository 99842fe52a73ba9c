"""Small tables of telemetry by the hour, their sidecars, and whether these are exact."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lazydelta.settings import build_settings
from lazydelta.sidecar import SidecarConfig
from lazydelta.storage import Storage, open_storage
from lazydelta.upkeep.build import BuildReport, build_sidecar
from tests.support.actions import add, remove, stats
from tests.support.keys import Action
from tests.support.sidecar_twin import comparable, expected_rows, sidecar_rows
from tests.support.table_builder import TableBuilder

SCHEMA = {"value": "double", "count": "integer", "_event_hour": "string", "date": "date"}
CONFIG = SidecarConfig(row_group_rows=4, row_groups_max=4, level_ratio=4)


def telemetry(folder: Path, **axes: Any) -> TableBuilder:
    """An empty table of telemetry by the hour."""
    return TableBuilder(folder, schema=SCHEMA, partition_columns=("_event_hour",), **axes)


def file_at(hour: int, name: str, **more: Any) -> Action:
    """A file of that hour."""
    bounds = {"value": float(hour)}
    return add(
        f"_event_hour={hour:010}/{name}.parquet",
        partition={"_event_hour": f"{hour:010}"},
        stats=stats(5, low=bounds, high=bounds, nulls={"value": 1}),
        **more,
    )


def removed(hour: int, name: str) -> Action:
    """The remove of it, with its partition values."""
    return remove(f"_event_hour={hour:010}/{name}.parquet", partitionValues={"_event_hour": f"{hour:010}"})


def storage_of(table: TableBuilder | Path) -> Storage:
    """The table's storage."""
    path = table.path if isinstance(table, TableBuilder) else table
    return open_storage(str(path), build_settings({}, environment={}))


def built(table: TableBuilder, **options: Any) -> BuildReport:
    """Build the sidecar of the newest checkpoint."""
    return build_sidecar(storage_of(table), **{"config": CONFIG} | options)


def assert_exact(table: TableBuilder, version: int) -> None:
    """The sidecar says what the log says, row by row."""
    found = comparable(sidecar_rows(table.path, version))
    truth = comparable(expected_rows(table.states[version]))
    assert {key: {n: v for n, v in row.items() if n in truth[key]} for key, row in found.items()} == truth


def forty_files(folder: Path) -> TableBuilder:
    """Forty files in twenty hours, with a checkpoint and its sidecar."""
    made = telemetry(folder)
    made.commit([file_at(number // 2, f"f{number}") for number in range(40)]).checkpoint()
    assert built(made).kind == "full"
    return made
