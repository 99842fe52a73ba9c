"""The pipeline on an object store: Spark writes to Azurite, lazydelta reads it, and the store may refuse."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from lazydelta.errors import AccessDeniedError
from lazydelta.sidecar import SidecarConfig
from lazydelta.spark import IngestSummary, ingest, ingest_stream, read
from lazydelta.spark.checkpoint import ensure_sidecar
from lazydelta.spark.session import CACHE_VARIABLE
from lazydelta.spark.table_url import spark_url
from lazydelta.upkeep.verify import verify_sidecar
from tests.support.ingesting import write_json
from tests.support.lake import Lake, hadoop_settings
from tests.support.sidecar_twin import comparable, sidecar_rows
from tests.support.spark import AZURE_PACKAGE, FAST_SETTINGS, cache_folder, run_command

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
FIRST = [
    {"ts": "2026-02-10T22:10:00Z", "v": 1},
    {"ts": "2026-02-10T23:59:59Z", "v": 2},
    {"ts": "2026-02-11T00:00:00Z", "v": 3},
]
BAD = {"ts": "whenever", "v": 4}
LATE = [
    {"ts": "2026-02-11T00:30:00Z", "v": 5},
    {"ts": "2026-02-10T22:20:00Z", "v": 6},
    {"ts": "2026-02-09T01:00:00Z", "v": 7},
]
AFTER_FIRST = {"2026021022": [1], "2026021023": [2], "2026021100": [3]}
AFTER_LATE = {"2026020901": [7], "2026021022": [1, 6], "2026021023": [2], "2026021100": [3, 5]}


class Telemetry(NamedTuple):
    """A table that tests share: two batches, the second with late rows, nothing of it taken away."""

    url: str
    first: IngestSummary
    late: IngestSummary
    files: int  # of the newest version


@pytest.fixture(autouse=True)
def no_faults(lake: Lake) -> None:
    """Every test begins with a store that refuses nothing."""
    lake.proxy.reset()


@pytest.fixture(scope="module")
def telemetry(spark: SparkSession, lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> Telemetry:
    sources = tmp_path_factory.mktemp("arrived")
    url = lake.url("tele%20metry")
    first = run(spark, lake, write_json(sources / "first", [*FIRST, BAD]), url)
    assert_all_agree(spark, lake, url, AFTER_FIRST)
    late = run(spark, lake, write_json(sources / "late", LATE), url)
    return Telemetry(url, first, late, len(lake.paths(url)))


def run(spark: SparkSession, lake: Lake, source: Path, url: str, **settings: Any) -> IngestSummary:
    given = {"event_time": "ts", "storage_options": lake.options, "checkpoint": True, **settings}
    return ingest(str(source), url, session=spark, **given)


def command(lake: Lake, *arguments: str) -> dict[str, Any]:
    """A command of the CLI on the shared session; its answer."""
    options = [text for key, value in lake.options.items() for text in ("--storage-option", f"{key}={value}")]
    answer: dict[str, Any] = json.loads(run_command(*arguments, *options, "--json").stdout)
    return answer


def by_hour(rows: Iterable[Any]) -> dict[str, list[int]]:
    """The column `v` of each hour's rows, sorted."""
    found: dict[str, list[int]] = {}
    for hour, value in sorted((row["_event_hour"], row["v"]) for row in rows):
        found.setdefault(hour, []).append(value)
    return found


def assert_all_agree(spark: SparkSession, lake: Lake, url: str, wanted: dict[str, list[int]]) -> None:
    """The same files and rows by lazydelta, Delta on Spark and delta-rs; the newest sidecar is true."""
    assert lake.rows_by_hour(url) == wanted
    frame = spark.read.format("delta").load(spark_url(url))
    scan = lake.open(url).scan()
    assert by_hour(scan.to_arrow(["_event_hour", "v"]).to_pylist()) == wanted
    assert by_hour(frame.collect()) == wanted
    assert lake.delta_rs_paths(url) == lake.paths(url)
    assert len(frame.inputFiles()) == len(lake.paths(url))


def test_batches_arrive_in_their_hours_and_every_reader_agrees(
    spark: SparkSession, lake: Lake, telemetry: Telemetry
) -> None:
    url, first, late, files = telemetry
    assert first.target == spark_url(url)
    assert (first.batch.rows_written, first.batch.rows_rejected, first.batch.files) == (3, 1, 3)
    assert (first.sidecar.sidecar_kind, first.sidecar.sidecar_error) == ("full", None)
    assert (late.batch.rows_written, late.sidecar.sidecar_kind) == (3, "incremental")
    assert files == 6
    assert_all_agree(spark, lake, url, AFTER_LATE)
    for native in (True, False):  # Spark by its own credentials, then executors by ours
        lazily = read(spark, url, storage_options=lake.options, native=native)
        assert by_hour(lazily.collect()) == AFTER_LATE
    rejects = spark.read.format("delta").load(late.rejects).collect()
    assert [row["record"] for row in rejects] == [json.dumps(BAD)]


def test_both_feeders_write_the_same_sidecar(
    spark: SparkSession, lake: Lake, telemetry: Telemetry, tmp_path: Path
) -> None:
    url, live = telemetry.url, len(lake.paths(telemetry.url))
    told: dict[str, Any] = {}
    by_job = ensure_sidecar(
        spark,
        url,
        storage_options=lake.options,
        config=SidecarConfig(folder="_delta_log/_by_spark"),
        full=True,
        spark_files_min=0,
        progress=lambda event, /, **facts: told.update({event: facts}),
    )
    assert told["writing"]["by"] == "spark"
    assert "without_spark" not in told
    assert by_job is not None
    command(lake, "sidecar", "build", url, "--full", "--directory", "_delta_log/_locally")
    versions = {by_job.version}
    for folder in ("_by_spark", "_locally", "_lazy"):
        checked = command(lake, "sidecar", "verify", url, "--directory", f"_delta_log/{folder}")
        assert (checked["is_ok"], checked["files_checked"]) == (True, live)
        versions.add(checked["version"])
    (version,) = versions
    copy = lake.download(url, tmp_path / "copy")
    by_spark, locally, by_ingest = (
        comparable(sidecar_rows(copy, version, f"_delta_log/{folder}"))
        for folder in ("_by_spark", "_locally", "_lazy")
    )
    assert len(by_spark) == live
    assert by_spark == locally == by_ingest


def test_optimize_and_vacuum_leave_rows_and_sidecar_as_they_should_be(
    spark: SparkSession, lake: Lake, telemetry: Telemetry
) -> None:
    url = telemetry.url
    report = command(lake, "optimize", url)
    assert (report["files_removed"], report["files_added"]) == (4, 2)
    assert (report["sidecar"]["version"], report["sidecar_error"]) == (report["version"], None)
    data = {name for name in lake.names(url) if name.startswith("_event_hour=")}
    assert len(data) == 8
    assert command(lake, "vacuum", url, "--retention-hours", "0", "--force")["files_deleted"] in (4, None)
    assert sorted(data & set(lake.names(url))) == lake.paths(url)
    assert command(lake, "sidecar", "verify", url)["files_checked"] == 4
    assert_all_agree(spark, lake, url, AFTER_LATE)


def test_a_store_that_refuses_writes_leaves_the_table_at_its_last_commit(
    spark: SparkSession, lake: Lake, tmp_path: Path
) -> None:
    url = lake.url()
    run(spark, lake, write_json(tmp_path / "first", FIRST), url)
    before = (lake.open(url).version, lake.paths(url))
    late = write_json(tmp_path / "late", LATE)
    for refused in ("/_event_hour", "/_delta_log/"):  # data files, then the commit
        lake.refuse("PUT", url.rpartition("/")[2], refused)
        with pytest.raises(AccessDeniedError, match="the batch failed") as caught:
            run(spark, lake, late, url, run_id="late")
        assert "run it again" in caught.value.fix
        lake.proxy.reset()
        assert (lake.open(url).version, lake.paths(url)) == before
    assert_all_agree(spark, lake, url, AFTER_FIRST)
    assert run(spark, lake, late, url, run_id="late").sidecar.sidecar_kind == "incremental"
    assert run(spark, lake, late, url, run_id="late").batch.is_replay
    assert_all_agree(spark, lake, url, AFTER_LATE)
    assert verify_sidecar(lake.storage(url), config=SidecarConfig()).is_ok


@pytest.mark.long("the same on a store; local folders are in test_ingest_bad_input.py")
def test_a_sidecar_folder_that_cannot_be_written_costs_the_sidecar_not_the_rows(
    spark: SparkSession, lake: Lake, tmp_path: Path
) -> None:
    url = lake.url()
    told: dict[str, Any] = {}
    lake.refuse("PUT", "/_delta_log/_lazy/")
    summary = run(
        spark,
        lake,
        write_json(tmp_path / "first", FIRST),
        url,
        progress=lambda event, /, **facts: told.update({event: facts}),
    )
    assert summary.batch.rows_written == 3
    assert summary.sidecar.sidecar_version is None
    assert "_delta_log/_lazy/" in (summary.sidecar.sidecar_error or "")
    assert told["sidecar_failed"]["error"] == summary.sidecar.sidecar_error
    lake.proxy.reset()
    assert not [name for name in lake.names(url) if "/_lazy/" in name]
    assert_all_agree(spark, lake, url, AFTER_FIRST)
    late = run(spark, lake, write_json(tmp_path / "late", LATE), url)
    assert (late.sidecar.sidecar_kind, late.sidecar.sidecar_error) == ("full", None)
    assert verify_sidecar(lake.storage(url), config=SidecarConfig()).is_ok


def test_a_stream_keeps_its_place_in_the_store(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    url, place = lake.url(), lake.url("progress")
    for number, rows in enumerate((FIRST, LATE)):
        source = write_json(tmp_path / "in", rows, f"{number}.json")
        summary = ingest_stream(
            str(source), url, session=spark, checkpoint_location=place, event_time="ts",
            storage_options=lake.options, checkpoint=True,
        )  # fmt: skip
        assert summary.totals.rows_written == 3, "the first file is not read again"
    assert_all_agree(spark, lake, url, AFTER_LATE)
    assert verify_sidecar(lake.storage(url), config=SidecarConfig()).is_ok


@pytest.mark.long(
    "a Java of its own; settings files are in test_ingest_command.py and test_pipeline_settings.py"
)
def test_the_command_takes_connector_and_credentials_from_the_settings_file(
    lake: Lake, tmp_path: Path
) -> None:
    url = lake.url("tele%20metry%2541")  # %41, which is no A; delta-rs takes it for one
    settings = tmp_path / "pipeline.toml"
    spark = {"spark.jars.packages": AZURE_PACKAGE, "spark.master": "local[1]"}
    spark |= {f"spark.hadoop.{name}": value for name, value in hadoop_settings(lake.proxy.port).items()}
    spark |= {key: FAST_SETTINGS[key] for key in FAST_SETTINGS if "artitions" in key}
    spark |= {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    lines = ["[ingest]", f"target = {json.dumps(url)}", 'event_time = "ts"', "checkpoint = true"]
    lines += [
        "[ingest.storage_options]",
        *(f"{key} = {json.dumps(lake.options[key])}" for key in lake.options),
    ]
    lines += ["[spark]", *(f"{json.dumps(key)} = {json.dumps(value)}" for key, value in spark.items())]
    settings.write_text("\n".join(lines))
    source = write_json(tmp_path / "in", FIRST)
    done = subprocess.run(
        [sys.executable, "-m", "lazydelta.cli", "ingest", source, "--config", settings, "--json"],
        capture_output=True,
        text=True,
        env={**os.environ, CACHE_VARIABLE: str(cache_folder())},
        timeout=400,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert (done.returncode, done.stderr) == (0, "")
    summary = json.loads(done.stdout.splitlines()[-1])
    assert (summary["rows_written"], summary["sidecar_kind"]) == (3, "full")
    assert lake.rows_by_hour(url) == AFTER_FIRST
    assert verify_sidecar(lake.storage(url), config=SidecarConfig()).is_ok
