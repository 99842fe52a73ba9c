"""Rows of sensors, hour by hour: a daily wave, some noise, a few faults, one sensor that drifts at the end.

Contract: pure; the same seed gives the same rows. Times are whole milliseconds, as statistics tell them.
"""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa

LAST_HOUR = dt.datetime(2026, 2, 10, 23, tzinfo=dt.UTC)
DRIFTING = "sensor-042"  # its values rise over the last three hours
DEVICES = 100
_CITIES = ("Accra", "Bergen", "Cusco", "Dakar", "Hanoi", "Izmir", "Lagos", "Oslo", "Porto", "Quito")
_HOUR_MS = 3_600_000
_DRIFT_HOURS = 3
_FAULT_SHARE = 0.02

SCHEMA = pa.schema(
    [
        pa.field("device_id", pa.string()),
        pa.field("event_time", pa.timestamp("us", "UTC")),
        pa.field("value", pa.float64()),
        pa.field("status", pa.int32()),
        pa.field("city", pa.string()),
    ]
)


def hour_name(hour: dt.datetime) -> str:
    """`2026021023`: the period as the pipeline spells it."""
    return f"{hour:%Y%m%d%H}"


def hours_until_last(count: int) -> list[dt.datetime]:
    """The hours of a table, oldest first."""
    return [LAST_HOUR - dt.timedelta(hours=before) for before in reversed(range(count))]


def rows_of_file(hour: dt.datetime, *, number: int, rows: int, seed: int) -> pa.Table:
    """The rows of one file: events of one hour, by time."""
    hours_before = round((LAST_HOUR - hour).total_seconds() / 3600)
    rng = np.random.default_rng([seed, hours_before, number])
    start_ms = int(hour.timestamp() * 1000)
    times_ms = np.sort(start_ms + rng.integers(0, _HOUR_MS, rows))
    devices = rng.integers(0, DEVICES, rows)
    wave = 20 + 8 * np.sin((hour.hour - 9) / 24 * 2 * np.pi)
    values = wave + devices % 7 + rng.normal(0, 0.8, rows)
    drift = max(0, _DRIFT_HOURS - hours_before) * 15
    values = np.round(np.where(devices == _drifting_number(), values + drift, values), 2)
    faults = np.where(rng.random(rows) < _FAULT_SHARE, rng.integers(1, 4, rows), 0)
    return pa.table(
        [
            pa.array([f"sensor-{device:03d}" for device in devices], pa.string()),
            pa.array(times_ms * 1000, pa.int64()).cast(pa.timestamp("us", "UTC")),
            pa.array(values, pa.float64()),
            pa.array(faults.astype(np.int32), pa.int32()),
            pa.array([_CITIES[device % len(_CITIES)] for device in devices], pa.string()),
        ],
        schema=SCHEMA,
    )


def _drifting_number() -> int:
    return int(DRIFTING.rpartition("-")[2])
