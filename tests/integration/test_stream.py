"""The stream on the shared session: what arrives is in the table once, what cannot be is refused in words."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lazydelta import limits
from lazydelta.errors import InvalidRequestError, LazyDeltaError
from lazydelta.spark.config import IngestConfig
from lazydelta.spark.stream import StreamSummary, run_stream
from tests.support.telemetry_rows import TelemetryFiles, appear

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]


class Pipeline:
    """A source folder, a target and a checkpoint location."""

    def __init__(self, spark: SparkSession, folder: Path, **settings: Any) -> None:
        self.spark = spark
        self.source = folder / "in"
        self.source.mkdir(exist_ok=True)
        self.events: list[tuple[str, dict[str, object]]] = []
        self.config = IngestConfig(
            source=str(self.source),
            target=str(folder / "table"),
            event_time="timestamp",
            format="json",
            checkpoint_location=str(folder / "stream"),
            write_sidecar=False,
        )
        self.set(**settings)

    def set(self, **settings: Any) -> None:
        self.config = msgspec.structs.replace(self.config, **settings)

    def run(self, **arguments: Any) -> StreamSummary:
        settings: dict[str, Any] = {"mode": "available-now", "progress": self._listen} | arguments
        return run_stream(self.spark, self.config, **settings)

    def ids(self) -> list[str]:
        rows = self.spark.read.format("delta").load(self.config.target).select("id").collect()
        return sorted(row.id for row in rows)

    def rejected(self) -> list[str]:
        rows = self.spark.read.format("delta").load(self.config.rejects_path).select("record").collect()
        return sorted(row.record.split('"id": "')[1].split('"')[0] for row in rows)

    def names(self) -> list[str]:
        return [name for name, _ in self.events]

    def _listen(self, event: str, /, **fields: object) -> None:
        self.events.append((event, fields))


@pytest.fixture
def pipeline(spark: SparkSession, tmp_path: Path) -> Pipeline:
    return Pipeline(spark, tmp_path)


def test_what_arrives_between_runs_is_in_the_table_once_and_what_is_bad_beside_it(pipeline: Pipeline) -> None:
    telemetry = TelemetryFiles(pipeline.source)
    for _ in range(2):
        telemetry.add(bad=3)
    pipeline.set(options={"maxFilesPerTrigger": "1"})
    first = pipeline.run()
    telemetry.add(bad=3)
    second = pipeline.run()
    third = pipeline.run()
    assert pipeline.ids() == sorted(telemetry.good)
    assert pipeline.rejected() == sorted(telemetry.bad)
    assert [run.totals.batches for run in (first, second, third)] == [2, 1, 0]
    assert (first.totals.files_read, first.totals.rows_read, first.totals.rows_rejected) == (2, 86, 6)
    assert (second.totals.batch_first, second.totals.batch_last, second.totals.commits) == (2, 2, 1)
    assert {run.ended for run in (first, second, third)} == {"drained"}
    told = [fields for name, fields in pipeline.events if name == "batch_done"]
    assert [fields["batch_id"] for fields in told] == [0, 1, 2]
    assert told[1]["rows_written"] == 80


def test_a_checkpoint_asked_for_comes_with_its_sidecar_at_the_end(pipeline: Pipeline) -> None:
    telemetry = TelemetryFiles(pipeline.source)
    for _ in range(2):
        telemetry.add(rows=5, bad=0)
    pipeline.set(options={"maxFilesPerTrigger": "1"}, write_sidecar=True, checkpoint=True)
    totals = pipeline.run().totals
    assert (totals.checkpoint_version, totals.sidecar_version, totals.sidecars) == (2, 2, 1)
    assert totals.sidecar_error is None


def test_names_with_glob_characters_blanks_and_percent_signs_are_read_once(pipeline: Pipeline) -> None:
    names = ["a[1].json", "a1.json", "b{x,y}.json", "bx.json", "c d%20.json", "e*.json", "ef.json", "g?.json"]
    for number, name in enumerate(names):
        row = {"id": str(number), "timestamp": "2026-02-10T22:00:00Z"}
        appear(pipeline.source / name, json.dumps(row).encode())
    pipeline.run()
    assert pipeline.ids() == [str(number) for number in range(len(names))]


def test_a_file_that_arrives_with_an_old_time_is_read_all_the_same(pipeline: Pipeline) -> None:
    telemetry = TelemetryFiles(pipeline.source)
    telemetry.add(rows=5, bad=0)
    pipeline.run()
    hidden = pipeline.source / ".late"
    telemetry.add(rows=5, bad=0).rename(hidden)
    month_ago = time.time() - 30 * 86400
    os.utime(hidden, (month_ago, month_ago))
    hidden.rename(pipeline.source / "late.json")
    pipeline.run()
    assert pipeline.ids() == sorted(telemetry.good)


def test_empty_files_and_an_empty_folder_make_no_table(pipeline: Pipeline) -> None:
    assert pipeline.run().totals.batches == 0
    appear(pipeline.source / "empty.json", b"")
    assert pipeline.run().totals.commits == 0
    assert not Path(pipeline.config.target).exists()


def test_an_unknown_key_stops_the_stream_until_merging_is_asked_for(pipeline: Pipeline) -> None:
    telemetry = TelemetryFiles(pipeline.source)
    telemetry.add(rows=5, bad=0)
    pipeline.run()
    telemetry.add(rows=5, bad=1, firmware="1.2")
    with pytest.raises(InvalidRequestError, match="firmware"):
        pipeline.run()
    assert len(pipeline.ids()) == 5
    pipeline.set(merge_schema=True)
    pipeline.run()
    assert pipeline.ids() == sorted(telemetry.good)
    assert pipeline.rejected() == sorted(telemetry.bad)
    rows = pipeline.spark.read.format("delta").load(pipeline.config.target).groupBy("firmware").count()
    assert {row.firmware: row["count"] for row in rows.collect()} == {None: 5, "1.2": 5}


def test_a_new_parquet_column_stops_the_stream_until_merging_is_asked_for(pipeline: Pipeline) -> None:
    def add(name: str, **more: object) -> None:
        columns = {
            "id": [name],
            "timestamp": ["2026-02-10T22:00:00Z"],
            **{key: [value] for key, value in more.items()},
        }
        hidden = pipeline.source / f".{name}"
        pq.write_table(pa.table(columns), hidden)
        hidden.rename(pipeline.source / f"{name}.parquet")

    pipeline.set(format="parquet")
    add("a")
    pipeline.run()
    add("b")
    add("c", firmware="1.2")
    with pytest.raises(InvalidRequestError, match="firmware"):
        pipeline.run()
    assert pipeline.ids() == ["a"]
    pipeline.set(merge_schema=True)
    pipeline.run()
    assert pipeline.ids() == ["a", "b", "c"]


def test_a_csv_column_is_found_by_its_name(pipeline: Pipeline) -> None:
    pipeline.set(format="csv")
    appear(pipeline.source / "a.csv", b"id,timestamp\na,2026-02-10T22:00:00Z\n")
    pipeline.run()
    appear(pipeline.source / "b.csv", b"timestamp,id\n2026-02-10T23:00:00Z,b\n")
    pipeline.run()
    assert pipeline.ids() == ["a", "b"]


def test_any_format_of_spark_passes_through_with_its_options(pipeline: Pipeline) -> None:
    pipeline.set(source="", format="rate-micro-batch", options={"rowsPerBatch": "7"})
    summary = pipeline.run()
    assert (summary.totals.rows_written, summary.totals.files_read) == (7, 0)


def test_the_error_of_a_batch_comes_out_as_it_was_and_the_batch_stays_undone(
    pipeline: Pipeline, capfd: pytest.CaptureFixture[str]
) -> None:
    telemetry = TelemetryFiles(pipeline.source)
    telemetry.add(rows=5, bad=0)
    pipeline.set(event_time="moment")
    with pytest.raises(InvalidRequestError, match="no event-time column 'moment'"):
        pipeline.run()
    assert "Traceback" not in capfd.readouterr().err
    pipeline.set(event_time="timestamp")
    pipeline.run()
    assert pipeline.ids() == sorted(telemetry.good)


def test_a_batch_cut_off_after_its_rejects_goes_on_with_the_settings_it_had(pipeline: Pipeline) -> None:
    telemetry = TelemetryFiles(pipeline.source)
    telemetry.add(rows=5, bad=2)

    def cut_off(event: str, /, **_: object) -> None:
        if event == "writing":
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):  # a bug keeps its own type
        pipeline.run(progress=cut_off)
    assert (pipeline.ids(), pipeline.rejected()) == ([], sorted(telemetry.bad))
    pipeline.set(event_time_format="yyyy")
    with pytest.raises(InvalidRequestError, match=r"batch 0 .* \(event_time_format\)"):
        pipeline.run()
    pipeline.set(event_time_format=None)
    pipeline.run()
    assert (pipeline.ids(), pipeline.rejected()) == (sorted(telemetry.good), sorted(telemetry.bad))


def test_two_streams_into_one_table_do_not_take_each_other_for_a_replay(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    telemetry = TelemetryFiles(pipeline.source)
    telemetry.add(rows=5, bad=0)
    other = TelemetryFiles(tmp_path / "other", seed=8)
    other.add(rows=0, bad=0)
    other.add(rows=5, bad=0)
    pipeline.run()
    pipeline.set(source=str(other.folder), checkpoint_location=str(tmp_path / "other stream"))
    pipeline.run()
    assert pipeline.ids() == sorted(telemetry.good | other.good)


def test_a_new_checkpoint_location_for_a_source_the_table_has_is_refused_unless_told(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    telemetry = TelemetryFiles(pipeline.source)
    telemetry.add(rows=5, bad=0)
    pipeline.run()
    pipeline.set(source=f"file://{pipeline.source}/", checkpoint_location=str(tmp_path / "another"))
    with pytest.raises(InvalidRequestError, match="rows of this source already"):
        pipeline.run()
    pipeline.run(read_again=True)
    assert pipeline.ids() == sorted([*telemetry.good, *telemetry.good])


def test_a_checkpoint_location_that_lost_its_batches_is_refused(pipeline: Pipeline) -> None:
    telemetry = TelemetryFiles(pipeline.source)
    telemetry.add(rows=5, bad=0)
    pipeline.run()
    for file in (Path(pipeline.config.checkpoint_location or "") / "offsets").iterdir():
        file.unlink()
    with pytest.raises(InvalidRequestError, match="knows no batch"):
        pipeline.run()


def test_a_checkpoint_location_of_another_source_table_or_query_is_refused(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    TelemetryFiles(pipeline.source).add(rows=5, bad=0)
    pipeline.run()
    original = pipeline.config
    (tmp_path / "elsewhere").mkdir()
    pipeline.set(source=str(tmp_path / "elsewhere"))
    with pytest.raises(InvalidRequestError, match="belongs to a stream from"):
        pipeline.run()
    pipeline.config = msgspec.structs.replace(original, target=str(tmp_path / "new table"))
    with pytest.raises(InvalidRequestError, match="there is no table now"):
        pipeline.run()
    foreign = tmp_path / "foreign" / "offsets"
    foreign.mkdir(parents=True)
    (foreign / "0").touch()
    pipeline.config = msgspec.structs.replace(original, checkpoint_location=str(foreign.parent))
    with pytest.raises(InvalidRequestError, match="belongs to another streaming query"):
        pipeline.run()


def test_a_checkpoint_location_that_is_missing_or_lies_among_data_is_refused(pipeline: Pipeline) -> None:
    pipeline.set(checkpoint_location=None)
    with pytest.raises(InvalidRequestError, match="needs a checkpoint location"):
        pipeline.run()
    for folder, match in ((pipeline.config.source, "would be read"), (pipeline.config.target, "VACUUM")):
        pipeline.set(checkpoint_location=f"file:{folder}/progress")
        with pytest.raises(InvalidRequestError, match=match):
            pipeline.run()


def test_a_source_that_does_not_exist_is_told_in_words(pipeline: Pipeline, tmp_path: Path) -> None:
    pipeline.set(source=str(tmp_path / "nowhere"))
    with pytest.raises(LazyDeltaError, match="nowhere"):
        pipeline.run()


def test_a_continuous_stream_takes_what_arrives_until_it_is_asked_to_stop(pipeline: Pipeline) -> None:
    telemetry = TelemetryFiles(pipeline.source)
    telemetry.add(rows=5, bad=1)
    stop = threading.Event()

    def listen(event: str, /, **fields: object) -> None:
        if event == "batch_done" and fields["batch_id"] == 0:
            telemetry.add(rows=5, bad=1)
        elif event == "counted" and telemetry.count == 2:
            stop.set()  # in the middle of a batch: it must still be finished

    pipeline.set(trigger_interval="100 milliseconds")
    summary = pipeline.run(mode="continuous", stop=stop, progress=listen)
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
            time.sleep(3)

    monkeypatch.setattr(limits, "STREAM_STOP_SECONDS", 0.2)
    assert pipeline.run(stop=stop, progress=dawdle).ended == "given up"
    pipeline.run()
    assert (pipeline.ids(), pipeline.rejected()) == (sorted(telemetry.good), sorted(telemetry.bad))
