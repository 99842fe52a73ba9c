"""The table of the seeds' queries, with a sidecar, and what its queries give, worked out without KQL."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

import lazydelta as ld
from lazydelta.settings import Settings
from lazydelta.sidecar import SidecarConfig
from lazydelta.storage import open_storage
from lazydelta.upkeep.build import build_sidecar

TELEMETRY = "TelemetryDelta"
_FIRST = dt.datetime(2026, 2, 10, 18, tzinfo=dt.UTC)
_HOURS, _ROWS_AN_HOUR, _DEVICES = 8, 600, 60
TYPES = pa.table(
    {
        "b": pa.array([True, False, None]),
        "i": pa.array([-5, 2**31 - 1, None], pa.int32()),
        "l": pa.array([2**53 + 1, -(2**63), None], pa.int64()),
        "r": pa.array([1.0, 0.1, None], pa.float64()),
        "d": pa.array([Decimal("1.10"), Decimal("-0.01"), None], pa.decimal128(10, 2)),
        "t": pa.array([0, 1_770_761_701_123_456, None], pa.timestamp("us", "UTC")),
        "s": pa.array(['a"b\\c', "é\n😀", None]),
        "n": pa.array([{"x": 1, "y": ["a"]}, {"x": None, "y": []}, None]),
    }
)


def telemetry_table(folder: Path) -> str:
    """A file an hour, a checkpoint and its sidecar, and two hours after it."""
    url = str(folder / "telemetry")
    for hour in range(_HOURS):
        began = _FIRST + dt.timedelta(hours=hour)
        moments = [began + dt.timedelta(seconds=5 * at) for at in range(_ROWS_AN_HOUR)]
        rows = {
            "device_id": [f"sensor-{at % _DEVICES}" for at in range(_ROWS_AN_HOUR)],
            "value": [(hour * _ROWS_AN_HOUR + at) / 4 for at in range(_ROWS_AN_HOUR)],
            "timestamp": pa.array(moments, pa.timestamp("us", "UTC")),
            "_event_hour": [f"{began:%Y%m%d%H}"] * _ROWS_AN_HOUR,
        }
        write_deltalake(url, pa.table(rows), mode="append", partition_by=["_event_hour"])
        if hour == _HOURS - 3:
            DeltaTable(url).create_checkpoint()
            build_sidecar(open_storage(url, Settings()), config=SidecarConfig(row_group_rows=2))
    return url


def expected_of_seeds(url: str) -> tuple[list[Any], list[Any], list[Any]]:
    """By the scan in process: the rows that the first and the second may give, and those of the third."""
    table = ld.open(url)
    first = _rows(table.scan("_event_hour >= '2026021022' and device_id = 'sensor-42'"))
    second = _rows(table.scan())
    groups: dict[tuple[str, str], list[float]] = defaultdict(list)
    for device, value, moment, _ in _rows(
        table.scan("_event_hour >= '2026021000' and _event_hour <= '2026021023'")
    ):
        groups[f"{moment[:13]}:00:00.0000000Z", device].append(value)
    third = [[*key, sum(values) / len(values)] for key, values in groups.items()]
    return first, second, third


def check_seeds(found: list[list[Any]], url: str) -> None:
    """The rows that the three queries gave, against the scan's."""
    first, second, third = expected_of_seeds(url)
    assert len(found[0]) == min(100, len(first)) and _within(found[0], first)
    assert len(found[1]) == 100 and _within(found[1], second)
    told = {(row[0], row[1]): row[2] for row in found[2]}
    assert len(told) == len(found[2]) == len(third)
    assert all(abs(told[moment, device] - value) < 1e-9 for moment, device, value in third)


def _rows(scan: ld.Scan) -> list[Any]:
    found = []
    for batch in scan.batches(["device_id", "value", "timestamp", "_event_hour"]):
        for row in batch.to_pylist():
            moment = row["timestamp"].strftime("%Y-%m-%dT%H:%M:%S.%f0Z")
            found.append([row["device_id"], row["value"], moment, row["_event_hour"]])
    return found


def _within(rows: list[Any], whole: list[Any]) -> bool:
    known = {tuple(row) for row in whole}
    return len({tuple(row) for row in rows}) == len(rows) and all(tuple(row) in known for row in rows)
