"""The demo's source holds the rows that it says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.telemetry import TelemetrySpec, make_telemetry, newest_hour

SPEC = TelemetrySpec(batches=3, hours_per_batch=2, rows_per_batch=500, late_rows=20, late_hours=3, bad_rows=8)


def rows_of(folder: Path) -> list[dict[str, object] | None]:
    """Every line of a batch; None where it is no JSON."""
    lines = [line for path in sorted(folder.iterdir()) for line in path.read_text().splitlines()]
    return [json.loads(line) if line.endswith("}") else None for line in lines]


def hour_of(row: dict[str, object] | None) -> str | None:
    """`2026-02-07T00` of a row with a time."""
    time = str((row or {}).get("timestamp"))
    return time[:13] if time.startswith("2026-02-0") else None


def test_batches_hold_as_many_rows_late_and_bad_ones_as_they_say(tmp_path: Path) -> None:
    source, batches = make_telemetry(SPEC, tmp_path)
    seen: set[str] = set()
    for number, batch in enumerate(batches):
        rows = rows_of(source / batch.name)
        hours = [hour_of(row) for row in rows]
        assert len(rows) == batch.rows == SPEC.rows_per_batch
        assert hours.count(None) == batch.bad_rows == SPEC.bad_rows
        late = sum(hour in seen for hour in hours if hour)
        # A late row may be one of the bad ones.
        assert batch.late_rows - SPEC.bad_rows <= late <= batch.late_rows == (20 if number else 0)
        seen |= {hour for hour in hours if hour}
    assert max(seen).replace("-", "").replace("T", "") == newest_hour(SPEC)


def test_a_row_has_every_column_and_bad_rows_are_of_every_kind(tmp_path: Path) -> None:
    source, (batch, *_) = make_telemetry(SPEC, tmp_path)
    rows = rows_of(source / batch.name)
    good = next(row for row in rows if hour_of(row))
    assert good is not None
    assert list(good) == ["device_id", "timestamp", "value", "city", "tags"]
    assert isinstance(good["value"], float) and isinstance(good["tags"], list)
    bad = {None if row is None else row["timestamp"] for row in rows if not hour_of(row)}
    assert bad == {None, "yesterday", "2026-02-31T25:00:00Z"}
    assert rows.count(None) == SPEC.bad_rows // 4


def test_a_source_is_made_once_and_the_same_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, batches = make_telemetry(SPEC, tmp_path / "first")
    other, again = make_telemetry(SPEC, tmp_path / "second")
    assert batches == again
    for batch in batches:
        assert [path.read_bytes() for path in sorted((source / batch.name).iterdir())] == [
            path.read_bytes() for path in sorted((other / batch.name).iterdir())
        ]
    monkeypatch.setattr("bench.telemetry._write_batch", None)
    assert make_telemetry(SPEC, tmp_path / "first") == (source, batches)
