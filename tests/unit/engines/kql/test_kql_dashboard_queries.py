"""Three queries as dashboards ask them: their answers, and how little they read."""

from __future__ import annotations

from pathlib import Path

import lazydelta as ld
from tests.support.kql_tables import telemetry_rows
from tests.unit.engines.kql.conftest import Ask

RECENT = """// Query 1: Recent data (hits 1 sidecar row group)
external_table('TelemetryDelta')
| where _event_hour >= '2026021022'
| where device_id == 'sensor-42'
| take 100"""
FIRST = """external_table('TelemetryDelta')
| take 100"""
WINDOW = """external_table('TelemetryDelta')
| where _event_hour between ('2026021003' .. '2026021005')
| summarize avg(value) by bin(timestamp, 1h), device_id"""


def test_recent_rows_of_a_device_are_read_from_two_files_of_twenty_four(ask: Ask) -> None:
    with ask(RECENT) as found:
        rows = found.read_all().to_pylist()
        report = found.report()
    expected = [
        row
        for row in telemetry_rows().to_pylist()
        if row["_event_hour"] >= "2026021022" and row["device_id"] == "sensor-42"
    ]
    assert sorted(rows, key=lambda row: row["number"]) == expected
    assert (report.files_read, report.row_groups_read) == (2, 2)
    assert report.pushed == [
        """TelemetryDelta: ("_event_hour" >= '2026021022' and "device_id" = 'sensor-42')"""
    ]


def test_a_limit_ends_the_scan_after_the_files_it_needs(ask: Ask) -> None:
    with ask(FIRST) as found:
        assert found.read_all().num_rows == 100
        assert found.report().files_read == 2


def test_averages_of_a_window_agree_with_sql_and_read_its_hours_alone(ask: Ask, telemetry: Path) -> None:
    with ask(WINDOW) as found:
        assert [column.name for column in found.columns] == ["timestamp", "device_id", "avg_value"]
        rows = found.fetchall()
        assert found.report().files_read == 3
    expected = ld.open(telemetry).sql(
        "select date_trunc('hour', timestamp), coalesce(device_id, ''), avg(value) from t "
        "where _event_hour between '2026021003' and '2026021005' group by all"
    )
    assert sorted(rows, key=str) == sorted(expected.fetchall(), key=str)
