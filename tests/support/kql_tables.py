"""A table as the pipeline writes it: telemetry by hour, with the properties that tell of the event time."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from lazydelta.engines.kql.pruning import Needed

START = dt.datetime(2026, 2, 10, tzinfo=dt.UTC)
HOURS = 24
ROWS_AN_HOUR = 60
DEVICES = 5
TIME_PROPERTIES = {
    "lazydelta.time.source": "timestamp",
    "lazydelta.time.column": "_event_hour",
    "lazydelta.time.format": "yyyyMMddHH",
    "lazydelta.time.zone": "UTC",
}


def telemetry_rows(*, hours: int = HOURS) -> pa.Table:
    """A row a minute; every eleventh value and every seventh device is null."""
    numbers = range(hours * ROWS_AN_HOUR)
    times = [START + dt.timedelta(minutes=number) for number in numbers]
    return pa.table(
        {
            "device_id": pa.array(
                [None if number % 7 == 6 else f"sensor-{40 + number % DEVICES}" for number in numbers]
            ),
            "value": pa.array(
                [None if number % 11 == 10 else number / 4 for number in numbers], pa.float64()
            ),
            "number": pa.array(numbers, pa.int32()),
            "timestamp": pa.array(times, pa.timestamp("us", "UTC")),
            "_event_hour": pa.array([time.strftime("%Y%m%d%H") for time in times]),
        }
    )


def telemetry_table(folder: Path, *, hours: int = HOURS, has_periods: bool = True) -> Path:
    """The table, a file for each hour; `has_periods`: its properties tell how the hours were made."""
    write_deltalake(folder, telemetry_rows(hours=hours), partition_by=["_event_hour"])
    if has_periods:
        _tell_periods(folder / "_delta_log" / f"{0:020}.json")
    return folder


def all_rows(query: Any, *_: Any) -> Needed:  # Any: a tree of the translation library, and what goes with it
    """In place of `pruning.needed_rows`: nothing is pushed."""
    return Needed(None, tuple(query.operators))


def _tell_periods(commit: Path) -> None:
    """delta-rs writes no properties that it does not know."""
    actions = [json.loads(line) for line in commit.read_text().splitlines()]
    for action in actions:
        if "metaData" in action:
            action["metaData"]["configuration"] |= TIME_PROPERTIES
    commit.write_text("".join(json.dumps(action) + "\n" for action in actions))
