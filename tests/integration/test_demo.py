"""`make demo` on fewer rows: it shows the pipeline, its checks hold, and they can fail."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from bench.demo import main
from bench.demo_checks import one_row_group, run_checks
from bench.telemetry import TelemetrySpec, make_telemetry
from lazydelta.spark.config import IngestConfig

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 2_000
SMALL = ["--batches", "5", "--rows-per-batch", str(ROWS)]


@pytest.mark.spark
def test_the_demo_shows_the_pipeline_and_its_checks_can_fail(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LAZYDELTA_CACHE", str(tmp_path))
    code = main(SMALL)
    told = capsys.readouterr().out
    assert code == 0, told
    assert "10,000 = 9,800 + 200" in told
    assert "checkpoint 5 and its sidecar (full)" in told
    assert "can be in 1 of" in told
    assert "no difference" in told
    assert "a scan for the newest hour reads one row group of many: 1 of" in told
    assert "FAIL" not in told

    spec = msgspec.structs.replace(TelemetrySpec(), batches=5, rows_per_batch=ROWS)
    _, batches = make_telemetry(spec, tmp_path / "demo")
    config = IngestConfig(target=str(tmp_path / "demo" / "telemetry"), event_time="timestamp")
    one_more = [msgspec.structs.replace(batches[0], rows=ROWS + 1), *batches[1:]]
    outcomes = run_checks(spark, config, one_more, [], verified=False)
    # Only the rule that every file holds one hour does not depend on what was changed.
    assert [outcome.passed for outcome in outcomes] == [False, False, False, True, False]
    assert not one_row_group(config.target, "_event_hour >= '2026020600'").passed
    assert not one_row_group(config.target, "_event_hour = '1999123123'").passed
