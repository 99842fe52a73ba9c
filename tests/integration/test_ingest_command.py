"""`lazydelta ingest` as a real process: what it says on which stream, and how it ends."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lazydelta.spark import ingest_stream
from lazydelta.spark.config import SparkConfig
from lazydelta.spark.session import CACHE_VARIABLE, MAVEN_VARIABLE, get_session
from tests.support.ingesting import assert_one_period_per_file, rejects_of, write_json
from tests.support.spark import environment_of_commands

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

ROWS = [
    {"ts": "2026-02-10T23:59:59Z", "v": 1},
    {"ts": "2026-02-11T00:00:00Z", "v": 2},
    {"ts": "2026-02-11T00:00:01Z", "v": 3},
    {"ts": "whenever", "v": 4},
]
FAST = [
    text
    for setting in (
        "spark.master=local[1]",
        "spark.sql.shuffle.partitions=1",
        "spark.databricks.delta.snapshotPartitions=1",
        "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    )
    for text in ("--spark-conf", setting)
]


def lazydelta_ingest(*arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the command; the jars are those of the test run unless said."""
    command = [sys.executable, "-m", "lazydelta.cli", "ingest", *map(str, arguments)]
    kept = {
        name: value
        for name, value in environment_of_commands().items()
        if name == CACHE_VARIABLE or not name.startswith(("LAZYDELTA_", "DELTA_"))
    }
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        env=kept | variables,
        timeout=400,
        check=False,
        stdin=subprocess.DEVNULL,
    )


@contextmanager
def busy_repository() -> Iterator[tuple[str, list[str]]]:
    """A Maven repository that refuses everything; what it was asked for."""
    asked: list[str] = []

    class Busy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(503)

        do_HEAD = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Busy) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/maven2", asked
        server.shutdown()


def test_json_tells_events_and_the_summary_as_objects(spark: SparkSession, tmp_path: Path) -> None:
    source, target = write_json(tmp_path / "in", ROWS), tmp_path / "out"
    settings = tmp_path / "pipeline.toml"
    settings.write_text(f'[ingest]\ntarget = "{target}"\nevent_time = "nothing"\ncheckpoint = true\n')
    done = lazydelta_ingest(
        source, "--config", settings, "--json", *FAST, LAZYDELTA_INGEST_EVENT_TIME="ts"
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    lines: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    events = [line["event"] for line in lines if line["event"] != "running"]
    assert events[0] == "starting"
    assert events[-1] == "summary"
    assert {"counted", "rejects", "writing", "committed", "sidecar"} <= set(events)
    summary = lines[-1]
    assert (summary["rows_read"], summary["rows_written"], summary["rows_rejected"]) == (4, 3, 1)
    assert (summary["files"], summary["periods"], summary["version"]) == (2, 2, 1)
    assert (summary["checkpoint_version"], summary["sidecar_version"]) == (1, 1)
    assert summary["sidecar_error"] is None
    assert summary["target"] == str(target)
    assert assert_one_period_per_file(target) == 2
    assert rejects_of(spark, target) == [("event time cannot be read", json.dumps(ROWS[3]))]


def test_people_get_progress_on_stderr_and_a_summary_on_stdout(tmp_path: Path) -> None:
    source, target = write_json(tmp_path / "in", ROWS), tmp_path / "out"
    done = lazydelta_ingest(source, target, "--event-time", "ts", "--no-sidecar", *FAST)
    assert done.returncode == 0
    assert "rows        4 read, 3 written, 1 rejected" in done.stdout.splitlines()
    assert f"rejects     {target}_rejects: event time cannot be read 1" in done.stdout.splitlines()
    assert "periods     2, 2026021023 to 2026021100" in done.stdout.splitlines()
    assert "committed: version 1" in done.stderr
    noise = [
        line for line in done.stderr.splitlines() if "WARN" in line or "Exception" in line or "::" in line
    ]
    assert noise == []


@pytest.mark.long("another start of Java; the setting itself is in test_stream.py")
def test_a_stream_can_be_told_to_read_everything_again(spark: SparkSession, tmp_path: Path) -> None:
    source, target = write_json(tmp_path / "in", ROWS), tmp_path / "out"
    first = {"checkpoint_location": str(tmp_path / "one"), "format": "json", "write_sidecar": False}
    ingest_stream(str(source), str(target), event_time="ts", session=spark, **first)
    words = ("--event-time", "ts", "--format", "json", "--no-sidecar", "--stream", "available-now")
    place = ("--checkpoint-location", tmp_path / "two")
    done = lazydelta_ingest(source, target, *words, *place, "--read-again", "--json", *FAST)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["rows_written"] == 3
    assert spark.read.format("delta").load(str(target)).count() == 6


@pytest.mark.long("another start of Java; the error itself is in test_ingest_bad_input.py")
def test_a_wrong_source_ends_with_words_and_code_2(tmp_path: Path) -> None:
    done = lazydelta_ingest(tmp_path / "nowhere", tmp_path / "out", "--event-time", "ts", *FAST)
    assert (done.returncode, done.stdout) == (2, "")
    assert "error: the source does not exist" in done.stderr
    assert "Traceback" not in done.stderr
    assert "\tat " not in done.stderr


@pytest.mark.long("three starts of Java with pauses between them")
def test_jars_that_cannot_be_fetched_say_what_to_set(tmp_path: Path) -> None:
    with busy_repository() as (url, asked):
        variables = {CACHE_VARIABLE: str(tmp_path / "cache"), MAVEN_VARIABLE: url}
        done = lazydelta_ingest(tmp_path, tmp_path / "out", "--event-time", "ts", *FAST, **variables)
    assert len([path for path in asked if path.endswith("delta-spark_4.2_2.13-4.4.0.pom")]) >= 3, "tries"
    assert (done.returncode, done.stdout) == (7, "")
    assert "delta-spark_4.2_2.13" in done.stderr
    assert all(word in done.stderr for word in (MAVEN_VARIABLE, "spark.jars", "spark.jars.ivy"))
    assert "Traceback" not in done.stderr
    assert "::" not in done.stderr


def test_a_session_that_is_active_is_used_as_it_is(spark: SparkSession) -> None:
    assert get_session(SparkConfig(spark={"spark.master": "local[7]"})) is spark
    assert spark.sparkContext.master == "local[2]"
