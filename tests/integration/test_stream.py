"""Streams on the shared session: what arrives is in the table once, what cannot be is refused in words."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lazydelta as ld
from lazydelta import limits
from lazydelta.errors import InvalidRequestError, LazyDeltaError
from lazydelta.spark import ingest_stream
from tests.support.telemetry_rows import TelemetryFiles, appear

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lazydelta.spark.stream import StreamSummary

pytestmark = pytest.mark.spark


class Pipeline:
    """A source folder, a target and a checkpoint location."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.source = folder / "in"
        self.source.mkdir(exist_ok=True)
        self.target = folder / "table"
        self.location = folder / "stream"
        self.settings: dict[str, Any] = {
            "session": spark,
            "event_time": "timestamp",
            "format": "json",
            "write_sidecar": False,
        }
        self.events: list[tuple[str, dict[str, object]]] = []

    def run(self, **settings: Any) -> StreamSummary:
        """The stream until what is there is ingested; settings may name another source, target, location."""
        given: dict[str, Any] = {
            "source": str(self.source),
            "target": str(self.target),
            "checkpoint_location": str(self.location),
            "progress": self._listen,
        }
        return ingest_stream(**(given | self.settings | settings))

    def ids(self) -> list[str]:
        """Of every row in the table."""
        return sorted(row["id"] for row in ld.open(str(self.target)).to_arrow(["id"]).to_pylist())

    def rejected(self) -> list[str]:
        """Of every rejected record."""
        rows = ld.open(f"{self.target}_rejects").to_arrow(["record"]).to_pylist()
        return sorted(row["record"].split('"id": "')[1].split('"')[0] for row in rows)

    def _listen(self, event: str, /, **fields: object) -> None:
        self.events.append((event, fields))


@pytest.fixture
def pipeline(spark: SparkSession, tmp_path: Path) -> Pipeline:
    return Pipeline(spark, tmp_path)


ODD_NAMES = ["a[1].json", "a1.json", "b{x,y}.json", "bx.json", "c d%20.json", "e*.json", "ef.json", "g?.json"]


def test_what_arrives_between_runs_is_in_the_table_once_and_what_is_bad_beside_it(pipeline: Pipeline) -> None:
    assert pipeline.run().totals.batches == 0
    appear(pipeline.source / "empty.json", b"")
    assert pipeline.run().totals.commits == 0
    assert not pipeline.target.exists(), "no rows make no table"

    telemetry = TelemetryFiles(pipeline.source)
    for _ in range(2):
        telemetry.add(bad=3)
    one_file = {"options": {"maxFilesPerTrigger": "1"}}
    first = pipeline.run(**one_file, write_sidecar=True, checkpoint=True)
    assert (first.totals.files_read, first.totals.rows_read, first.totals.rows_rejected) == (2, 86, 6)
    assert (first.totals.checkpoint_version, first.totals.sidecar_version) == (2, 2)
    assert (first.totals.sidecars, first.totals.sidecar_error) == (1, None)

    # A file that arrives with an old time, and names that mean something in a glob.
    hidden = pipeline.source / ".late"
    late = telemetry.add(bad=3)
    late.rename(hidden)
    month_ago = time.time() - 30 * 86400
    os.utime(hidden, (month_ago, month_ago))
    hidden.rename(late)
    for name in ODD_NAMES:
        appear(pipeline.source / name, json.dumps({"id": name, "timestamp": "2026-02-10T22:00:00Z"}).encode())
    second = pipeline.run()
    third = pipeline.run()
    assert pipeline.ids() == sorted([*telemetry.good, *ODD_NAMES])
    assert pipeline.rejected() == sorted(telemetry.bad)
    assert [run.totals.batches for run in (first, second, third)] == [2, 1, 0]
    assert (second.totals.batch_first, second.totals.batch_last, second.totals.commits) == (3, 3, 1)
    assert {run.ended for run in (first, second, third)} == {"drained"}
    done = [fields for name, fields in pipeline.events if name == "batch_done"]
    assert [fields["batch_id"] for fields in done] == [0, 1, 2, 3]
    assert [fields["rows_written"] for fields in done] == [0, 40, 80, 48], "of the run so far"


def test_an_unknown_key_stops_the_stream_until_merging_is_requested(pipeline: Pipeline) -> None:
    telemetry = TelemetryFiles(pipeline.source)
    telemetry.add(rows=5, bad=0)
    pipeline.run()
    telemetry.add(rows=5, bad=1, firmware="1.2")
    with pytest.raises(InvalidRequestError, match="firmware"):
        pipeline.run()
    assert len(pipeline.ids()) == 5
    pipeline.run(merge_schema=True)
    assert pipeline.ids() == sorted(telemetry.good)
    assert pipeline.rejected() == sorted(telemetry.bad)
    found = ld.open(str(pipeline.target)).to_arrow(["firmware"])["firmware"].to_pylist()
    assert sorted(found, key=str) == ["1.2"] * 5 + [None] * 5


@pytest.mark.long("the same rule in another format")
def test_a_new_parquet_column_stops_the_stream_until_merging_is_requested(pipeline: Pipeline) -> None:
    def add(name: str, **more: object) -> None:
        columns = {
            "id": [name],
            "timestamp": ["2026-02-10T22:00:00Z"],
            **{key: [value] for key, value in more.items()},
        }
        hidden = pipeline.source / f".{name}"
        pq.write_table(pa.table(columns), hidden)
        hidden.rename(pipeline.source / f"{name}.parquet")

    pipeline.settings["format"] = "parquet"
    add("a")
    pipeline.run()
    add("b")
    add("c", firmware="1.2")
    with pytest.raises(InvalidRequestError, match="firmware"):
        pipeline.run()
    assert pipeline.ids() == ["a"]
    pipeline.run(merge_schema=True)
    assert pipeline.ids() == ["a", "b", "c"]


@pytest.mark.long("the same rule in another format")
def test_a_csv_column_is_found_by_its_name(pipeline: Pipeline) -> None:
    pipeline.settings["format"] = "csv"
    appear(pipeline.source / "a.csv", b"id,timestamp\na,2026-02-10T22:00:00Z\n")
    pipeline.run()
    appear(pipeline.source / "b.csv", b"timestamp,id\n2026-02-10T23:00:00Z,b\n")
    pipeline.run()
    assert pipeline.ids() == ["a", "b"]


def test_any_format_of_spark_passes_through_with_its_options(pipeline: Pipeline) -> None:
    summary = pipeline.run(source="", format="rate-micro-batch", options={"rowsPerBatch": "7"})
    assert (summary.totals.rows_written, summary.totals.files_read) == (7, 0)


def test_a_batch_that_fails_stays_undone_and_goes_on_with_the_settings_it_had(
    pipeline: Pipeline, capfd: pytest.CaptureFixture[str]
) -> None:
    telemetry = TelemetryFiles(pipeline.source)
    telemetry.add(rows=5, bad=2)
    with pytest.raises(InvalidRequestError, match="no event-time column 'moment'"):
        pipeline.run(event_time="moment")
    assert "Traceback" not in capfd.readouterr().err

    def cut_off(event: str, /, **_: object) -> None:
        if event == "writing":
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):  # a bug keeps its own type
        pipeline.run(progress=cut_off)
    assert (pipeline.ids(), pipeline.rejected()) == ([], sorted(telemetry.bad))
    with pytest.raises(InvalidRequestError, match=r"batch 0 .* \(event_time_format\)"):
        pipeline.run(event_time_format="yyyy")
    pipeline.run()
    assert (pipeline.ids(), pipeline.rejected()) == (sorted(telemetry.good), sorted(telemetry.bad))


def test_a_checkpoint_location_belongs_to_one_source_one_table_and_one_query(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    telemetry = TelemetryFiles(pipeline.source)
    telemetry.add(rows=5, bad=0)
    pipeline.run()
    elsewhere, foreign = tmp_path / "elsewhere", tmp_path / "foreign"
    elsewhere.mkdir()
    (foreign / "offsets").mkdir(parents=True)
    (foreign / "offsets" / "0").touch()
    other = {"checkpoint_location": str(tmp_path / "another")}
    refused: list[tuple[dict[str, Any], str]] = [
        ({"source": str(elsewhere)}, "belongs to a stream from"),
        ({"target": str(tmp_path / "new table")}, "there is no table now"),
        ({"checkpoint_location": str(foreign)}, "belongs to another streaming query"),
        ({"checkpoint_location": None}, "needs a checkpoint location"),
        ({"checkpoint_location": f"file:{pipeline.source}/progress"}, "would be read"),
        ({"checkpoint_location": f"file:{pipeline.target}/progress"}, "VACUUM"),
        ({"source": f"file://{pipeline.source}/", **other}, "rows of this source already"),
    ]
    for settings, words in refused:
        with pytest.raises(InvalidRequestError, match=words):
            pipeline.run(**settings)
    nowhere = {"source": str(tmp_path / "nowhere"), "checkpoint_location": str(tmp_path / "third")}
    with pytest.raises(LazyDeltaError, match="nowhere"):
        pipeline.run(**nowhere)
    assert len(pipeline.ids()) == 5
    pipeline.run(**other, read_again=True)
    assert pipeline.ids() == sorted([*telemetry.good, *telemetry.good])
    for file in (pipeline.location / "offsets").iterdir():
        file.unlink()
    with pytest.raises(InvalidRequestError, match="knows no batch"):
        pipeline.run()


def test_two_streams_into_one_table_do_not_take_each_other_for_a_replay(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    telemetry = TelemetryFiles(pipeline.source)
    telemetry.add(rows=5, bad=0)
    other = TelemetryFiles(tmp_path / "other", seed=8)
    other.add(rows=0, bad=0)
    other.add(rows=5, bad=0)
    pipeline.run()
    pipeline.run(source=str(other.folder), checkpoint_location=str(tmp_path / "other stream"))
    assert pipeline.ids() == sorted(telemetry.good | other.good)


def test_a_continuous_stream_takes_what_arrives_until_it_is_asked_to_stop(pipeline: Pipeline) -> None:
    telemetry = TelemetryFiles(pipeline.source)
    telemetry.add(rows=5, bad=1)
    stop = threading.Event()

    def listen(event: str, /, **fields: object) -> None:
        if event == "batch_done" and fields["batch_id"] == 0:
            telemetry.add(rows=5, bad=1)
        elif event == "counted" and telemetry.count == 2:
            stop.set()  # in the middle of a batch: it must still be finished

    summary = pipeline.run(
        stream="continuous", trigger_interval="100 milliseconds", stop=stop, progress=listen
    )
    assert (summary.ended, summary.totals.batches) in {("stopped", 1), ("stopped", 2)}
    assert len(pipeline.ids()) == 5 * summary.totals.batches
    pipeline.run()
    assert pipeline.ids() == sorted(telemetry.good)
    assert pipeline.rejected() == sorted(telemetry.bad)


def test_a_batch_that_takes_too_long_to_wait_for_is_given_up_and_done_again(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    telemetry = TelemetryFiles(pipeline.source)
    telemetry.add(rows=5, bad=1)
    stop = threading.Event()

    def dawdle(event: str, /, **_: object) -> None:
        if event == "counted":
            stop.set()
            (query,) = pipeline.spark.streams.active
            while query.isActive:  # until it is given up
                time.sleep(0.05)

    monkeypatch.setattr(limits, "STREAM_STOP_SECONDS", 0.2)
    assert pipeline.run(stop=stop, progress=dawdle).ended == "given up"
    pipeline.run()
    assert (pipeline.ids(), pipeline.rejected()) == (sorted(telemetry.good), sorted(telemetry.bad))
