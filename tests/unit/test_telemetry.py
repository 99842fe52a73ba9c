"""Metrics: the seeds' names as plain numbers and through OpenTelemetry; logs at debug carry their fields."""

from __future__ import annotations

import gc
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import lazydelta as ld
from lazydelta import telemetry
from lazydelta.sidecar import SidecarConfig
from lazydelta.upkeep.build import build_sidecar
from tests.support.sidecar_damage import lazy_folder, storage_of
from tests.support.table_builder import TableBuilder

SEEDS = (
    "delta.lazy.commits_scanned",
    "delta.lazy.files_emitted",
    "delta.lazy.fallback_triggered",
    "delta.lazy.remove_set_size",
    "delta.lazy.time_to_first_file_ms",
)


@pytest.fixture(autouse=True)
def _fresh_numbers() -> Iterator[None]:
    gc.collect()  # a scan that another test left half-way is counted, and logged, when it is collected
    telemetry.reset()
    yield
    telemetry.reset()


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    builder = TableBuilder(tmp_path).commit(adds=["a", "b"]).checkpoint()
    return builder.commit(adds=["c"], removes=["a"]).commit(adds=["d"])


def test_a_scan_records_the_seeds_five_metrics(table: TableBuilder) -> None:
    assert ld.metrics() == {}
    files = list(ld.open(table.path).scan(strategy="reverse").files())
    numbers = ld.metrics()
    assert [name for name in SEEDS if name not in numbers] == []
    assert numbers["delta.lazy.files_emitted"] == len(files) == 3
    assert numbers["delta.lazy.commits_scanned"] == 2
    assert numbers["delta.lazy.fallback_triggered"] == 0
    assert numbers["delta.lazy.remove_set_size"] == 3
    assert numbers["delta.lazy.time_to_first_file_ms"] > 0


def test_the_numbers_are_those_of_the_report(table: TableBuilder) -> None:
    report = ld.open(table.path).scan(where="date = '2026-02-09'").explain()
    numbers = ld.metrics()
    assert numbers["delta.lazy.files_skipped"] == sum(report.files_skipped.values()) > 0
    assert numbers["delta.lazy.requests"] == report.requests > 0
    assert numbers["delta.lazy.bytes_read"] == report.bytes_read > 0
    assert "delta.lazy.time_to_first_file_ms" not in numbers, "no file came"


def test_sums_grow_and_latest_values_are_replaced() -> None:
    telemetry.record_scan({"files_emitted": 2, "remove_set_size": 9})
    telemetry.record_scan({"files_emitted": 3, "remove_set_size": 4, "time_to_first_file_ms": None})
    assert ld.metrics() == {"delta.lazy.files_emitted": 5, "delta.lazy.remove_set_size": 4}


def test_a_fallback_is_counted(table: TableBuilder) -> None:
    table.corrupt("*.checkpoint.parquet")
    assert len(list(ld.open(table.path).scan().files())) == 3
    assert ld.metrics()["delta.lazy.fallback_triggered"] >= 1


def test_a_scan_that_is_closed_early_is_recorded_too(table: TableBuilder) -> None:
    files = ld.open(table.path).scan(strategy="reverse").files()
    next(files)
    files.close()
    assert ld.metrics()["delta.lazy.files_emitted"] >= 1


def test_the_numbers_handed_out_are_a_copy() -> None:
    telemetry.record_scan({"files_emitted": 1})
    ld.metrics()["delta.lazy.files_emitted"] = 99
    assert ld.metrics() == {"delta.lazy.files_emitted": 1}


def test_opentelemetry_gets_the_same_numbers(table: TableBuilder) -> None:
    """In a process of its own: OpenTelemetry's meter provider can be set only once."""
    told = json.loads(_python(_THROUGH_OPENTELEMETRY, str(table.path)))
    assert set(told["sdk"]) >= set(SEEDS)
    sums = {name: value for name, value in told["plain"].items() if name not in SEEDS[3:]}
    assert {name: told["sdk"][name] for name in sums} == sums
    assert told["sdk"]["delta.lazy.files_emitted"] == 6, "two scans of three files"
    assert told["counts"] == {"delta.lazy.remove_set_size": 2, "delta.lazy.time_to_first_file_ms": 2}


def test_without_opentelemetry_the_plain_numbers_remain(table: TableBuilder) -> None:
    assert json.loads(_python(_WITHOUT_OPENTELEMETRY, str(table.path))) == 3


def test_debug_logs_carry_an_event_and_its_fields(
    table: TableBuilder, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, logger="lazydelta"):
        list(ld.open(table.path).scan(strategy="reverse").files())
    records = {record.event: record for record in caplog.records if hasattr(record, "event")}
    assert list(records) == ["opened", "scan", "scan ended"]
    assert records["opened"].fields["version"] == table.version
    assert records["scan"].fields["strategy"] == "reverse"
    assert records["scan"].fields["version"] == table.version
    assert records["scan ended"].fields["files"] == 3
    assert records["scan ended"].getMessage().startswith("scan ended files=3 ")


def test_nothing_is_logged_above_debug(table: TableBuilder, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="lazydelta"):
        list(ld.open(table.path).scan().files())
    assert caplog.records == []


_THROUGH_OPENTELEMETRY = """
import json, sys
from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
reader = InMemoryMetricReader()
metrics.set_meter_provider(MeterProvider(metric_readers=[reader]))
import lazydelta as ld
for _ in range(2):
    list(ld.open(sys.argv[1]).scan().files())
found, counts = {}, {}
for resource in reader.get_metrics_data().resource_metrics:
    for scope in resource.scope_metrics:
        assert scope.scope.name == "lazydelta"
        for metric in scope.metrics:
            (point,) = metric.data.data_points
            found[metric.name] = getattr(point, "value", None)
            if hasattr(point, "count"):
                counts[metric.name] = point.count
print(json.dumps({"sdk": found, "counts": counts, "plain": ld.metrics()}))
"""

_WITHOUT_OPENTELEMETRY = """
import sys
sys.modules["opentelemetry"] = None
import lazydelta as ld
list(ld.open(sys.argv[1]).scan().files())
print(ld.metrics()["delta.lazy.files_emitted"])
"""


def _python(code: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_fallbacks_are_counted_by_their_reason_and_sidecars_by_their_hits(table: TableBuilder) -> None:
    build_sidecar(storage_of(table), config=SidecarConfig())
    ld.open(table.path).scan().explain()
    assert ld.metrics()["delta.lazy.sidecar_hits"] == ld.metrics()["delta.lazy.floors_read"] == 1
    next(lazy_folder(table).glob("*.parquet")).write_bytes(b"torn")
    report = ld.open(table.path).scan().explain()
    numbers = ld.metrics()
    assert report.fallbacks_by_kind == {"sidecar_damaged": 1}
    assert numbers["delta.lazy.fallback_triggered.sidecar_damaged"] == 1
    assert numbers["delta.lazy.fallback_triggered"] == 1
    assert (numbers["delta.lazy.sidecar_hits"], numbers["delta.lazy.floors_read"]) == (1, 2)
