"""What cannot be ingested: each its own error, the table at its last commit, no stack trace of Java."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lazydelta as ld
from lazydelta.errors import InvalidRequestError, LazyDeltaError, StorageError
from lazydelta.spark.failures import explained
from tests.support.ingesting import commits_of, files_of, rows_by_period, run_ingest, write_json, write_text
from tests.support.skips import skip

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

NOON = "2026-02-10T12:00:00Z"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_json(tmp_path / "in", [{"ts": NOON, "event_ts": NOON, "v": 1, "flag": True, "tags": ["a"]}])


def refused(spark: SparkSession, source: Path | str, target: Path, **settings: Any) -> LazyDeltaError:
    """The error of an ingest that must not begin."""
    with pytest.raises(InvalidRequestError) as caught:
        run_ingest(spark, source, target, **settings)
    assert "\n" not in caught.value.what
    assert "at org." not in str(caught.value)
    return caught.value


def test_a_missing_source_is_told(spark: SparkSession, tmp_path: Path) -> None:
    error = refused(spark, tmp_path / "nowhere", tmp_path / "out")
    assert error.what == "the source does not exist"
    assert error.where == str(tmp_path / "nowhere")
    assert refused(spark, tmp_path / "nowhere" / "*.json", tmp_path / "out", format="json").what == error.what
    assert not (tmp_path / "out").exists()


def test_an_empty_source_is_told(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "_SUCCESS").touch()
    assert refused(spark, tmp_path / "in", tmp_path / "out").what == "the source holds no files"
    assert (
        refused(spark, tmp_path / "in", tmp_path / "out", format="json").what == "the source holds no files"
    )


def test_a_source_without_a_row_is_told_and_makes_no_table(spark: SparkSession, tmp_path: Path) -> None:
    source = write_text(tmp_path / "in", "\n", "a.json")
    summary = run_ingest(spark, source, tmp_path / "out")
    assert (summary.batch.rows_read, summary.batch.version) == (0, None)
    assert not (tmp_path / "out" / "_delta_log").exists()
    error = refused(spark, write_text(tmp_path / "text", "hello\n", "a.json"), tmp_path / "out")
    assert "no line of the source is a JSON object" in error.what


def test_an_event_time_that_is_not_there_gets_a_hint(
    spark: SparkSession, source: Path, tmp_path: Path
) -> None:
    error = refused(spark, source, tmp_path / "out", event_time="event_tss")
    assert "'event_tss'" in error.what
    assert error.fix == "did you mean event_ts?"
    assert "flag" in refused(spark, source, tmp_path / "out", event_time="zzzzzz").fix
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("column", "kind"), [("flag", "boolean"), ("tags", "array<string>")])
def test_an_event_time_that_is_no_time_is_told_with_its_type(
    spark: SparkSession, source: Path, tmp_path: Path, column: str, kind: str
) -> None:
    assert kind in refused(spark, source, tmp_path / "out", event_time=column).what


def test_a_number_needs_a_unit(spark: SparkSession, source: Path, tmp_path: Path) -> None:
    error = refused(spark, source, tmp_path / "out", event_time="v")
    assert "bigint" in error.what
    assert "--event-time-unit" in error.fix


def test_a_pattern_that_spark_does_not_know_is_told(
    spark: SparkSession, source: Path, tmp_path: Path
) -> None:
    with pytest.raises(LazyDeltaError) as caught:
        run_ingest(spark, source, tmp_path / "out", event_time_format="yyyy-bb")
    assert "yyyy-bb" in caught.value.what


def test_an_unknown_format_is_told(spark: SparkSession, source: Path, tmp_path: Path) -> None:
    error = refused(spark, source, tmp_path / "out", format="parkett")
    assert "parkett" in error.what
    assert "parquet" in error.fix


def test_files_of_several_formats_need_a_format(spark: SparkSession, source: Path, tmp_path: Path) -> None:
    write_text(source, "ts,v\n", "b.csv")
    error = refused(spark, source, tmp_path / "out")
    assert "b.csv" in error.what
    assert "--format" in error.fix


def test_a_schema_that_cannot_be_read_is_told(spark: SparkSession, source: Path, tmp_path: Path) -> None:
    assert "the schema" in refused(spark, source, tmp_path / "out", schema="ts of some kind").what
    assert "cannot be read" in refused(spark, source, tmp_path / "out", schema="missing.ddl").what


def test_a_source_column_may_not_be_called_as_the_time_column(spark: SparkSession, tmp_path: Path) -> None:
    source = write_json(tmp_path / "in", [{"ts": NOON, "_Event_Hour": "x"}])
    error = refused(spark, source, tmp_path / "out")
    assert "_Event_Hour" in error.what
    assert "--time-column" in error.fix


@pytest.mark.parametrize("name", ["_lazydelta_path", "_lazydelta_text", "_LazyDelta_x"])
def test_a_source_column_may_not_be_called_as_the_pipelines_own(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    other = write_json(tmp_path / "other", [{"ts": NOON, "v": "not in the source"}])
    given = write_json(tmp_path / "in", [{"ts": NOON, name: str(other)}])
    assert f"column {name}" in refused(spark, given, tmp_path / "out").what
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("row", "names"),
    [
        ({"ts": NOON, "Value": 1, "value": 2}, "Value and value"),
        ({"ts": NOON, "at": {"x": 1, "X": 2}}, "at.X and at.x"),
        ({"ts": NOON, "TS": NOON}, "TS and ts"),
    ],
)
def test_columns_that_only_their_cases_tell_apart_are_refused(
    spark: SparkSession, tmp_path: Path, row: dict[str, Any], names: str
) -> None:
    assert names in refused(spark, write_json(tmp_path / "in", [row]), tmp_path / "out").what
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("header", ["ts,a,a", "ts,a,A", "ts,a,"])
def test_a_csv_header_without_names_of_their_own_is_refused(
    spark: SparkSession, tmp_path: Path, header: str
) -> None:
    given = write_text(tmp_path / "in", f"{header}\n{NOON},1,2\n", "rows.csv")
    assert "none empty, none twice" in refused(spark, given, tmp_path / "out").fix


def test_a_zone_that_java_does_not_know_is_refused(spark: SparkSession, source: Path, tmp_path: Path) -> None:
    spark.read.json(str(source)).write.parquet(str(tmp_path / "parquet"))
    for given in (source, tmp_path / "parquet"):
        error = refused(spark, given, tmp_path / "out", time_zone="ROC")  # Taiwan, to everybody else
        assert "ROC" in error.what
        assert "--time-zone" in error.fix
        assert not (tmp_path / "out").exists()


def test_a_session_without_delta_is_told_what_it_lacks(
    spark: SparkSession, source: Path, tmp_path: Path
) -> None:
    plain = spark.newSession()
    plain.conf.unset("spark.sql.catalog.spark_catalog")
    with pytest.raises(LazyDeltaError, match="has no Delta Lake") as caught:
        run_ingest(plain, source, tmp_path / "out")
    assert (
        "spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog" in caught.value.fix
    )
    assert not (tmp_path / "out").exists()


def test_a_file_that_cannot_be_read_is_never_skipped(spark: SparkSession, tmp_path: Path) -> None:
    rows = {"ts": [NOON] * 2000, "v": [os.urandom(8).hex() for _ in range(2000)]}
    lines = "".join(json.dumps({"ts": NOON, "v": value}) + "\n" for value in rows["v"])
    places = {"parquet": tmp_path / "parquet", "json.gz": tmp_path / "json"}
    for kind, place in places.items():
        for name in ("whole", "torn"):
            place.mkdir(exist_ok=True)
            file = place / f"{name}.{kind}"
            if kind == "parquet":
                pq.write_table(pa.table(rows), file)
            else:
                file.write_bytes(gzip.compress(lines.encode()))
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    for is_lenient in ("false", "true"):
        session = spark.newSession()
        session.conf.set("spark.sql.files.ignoreCorruptFiles", is_lenient)
        for place in places.values():
            with pytest.raises(LazyDeltaError, match="torn"):
                run_ingest(session, place, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_log_without_a_commit_is_no_obstacle(spark: SparkSession, tmp_path: Path) -> None:
    given = write_json(tmp_path / "in", [{"ts": NOON, "v": 1}, {"ts": "never", "v": 2}])
    for name in ("out", "out_rejects"):  # killed before the first commit
        log = tmp_path / name / "_delta_log"
        log.mkdir(parents=True)
        (log / ".00000000000000000000.json.0f.tmp").write_text("{")
    summary = run_ingest(spark, given, tmp_path / "out")
    assert (summary.batch.rows_written, summary.batch.rows_rejected) == (1, 1)


def test_a_folder_that_is_no_table_is_left_alone(spark: SparkSession, source: Path, tmp_path: Path) -> None:
    target = write_text(tmp_path / "out", "precious", "notes.txt")
    assert "no Delta table" in refused(spark, source, target).what
    assert [path.name for path in target.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize(
    ("ddl", "partition", "word"),
    [
        ("ts TIMESTAMP, v BIGINT", "", "partitioned by nothing"),
        ("ts TIMESTAMP, v BIGINT, day DATE", "PARTITIONED BY (day)", "partitioned by day"),
        ("ts TIMESTAMP, _event_hour BIGINT", "PARTITIONED BY (_event_hour)", "_event_hour is bigint"),
    ],
)
def test_a_table_of_another_layout_is_refused(
    spark: SparkSession, source: Path, tmp_path: Path, *, ddl: str, partition: str, word: str
) -> None:
    target = tmp_path / "out"
    spark.sql(f"CREATE TABLE delta.`{target}` ({ddl}) USING delta {partition}")
    error = refused(spark, source, target)
    assert word in error.what
    assert "another target" in error.fix
    assert commits_of(target) == 1


def test_a_table_of_this_layout_without_properties_is_taken_over(
    spark: SparkSession, source: Path, tmp_path: Path
) -> None:
    target = tmp_path / "out"
    columns = "ts TIMESTAMP, event_ts STRING, v BIGINT, flag BOOLEAN, tags ARRAY<STRING>, _event_hour STRING"
    spark.sql(f"CREATE TABLE delta.`{target}` ({columns}) USING delta PARTITIONED BY (_event_hour)")
    run_ingest(spark, source, target)
    properties = spark.sql(f"DESCRIBE DETAIL delta.`{target}`").collect()[0]["properties"]
    assert properties["lazydelta.time.source"] == "ts"
    assert list(rows_by_period(target)) == ["2026021012"]


def test_a_rejects_table_of_another_kind_is_refused_before_anything_is_written(
    spark: SparkSession, source: Path, tmp_path: Path
) -> None:
    spark.sql("SELECT 1 AS a").write.format("delta").save(str(tmp_path / "out_rejects"))
    write_json(source, [{"ts": "bad"}], "bad.json")
    assert "--rejects" in refused(spark, source, tmp_path / "out").fix


def test_a_sidecar_that_cannot_be_written_does_not_fail_the_ingest(
    spark: SparkSession, source: Path, tmp_path: Path
) -> None:
    target = tmp_path / "out"
    run_ingest(spark, source, target)
    (target / "_delta_log" / "_lazy").touch()  # where the folder should be
    heard: list[str] = []

    def hear(event: str, /, **fields: object) -> None:
        heard.append(event)

    summary = run_ingest(
        spark, source, target, write_sidecar=True, checkpoint=True,
        progress=hear,
    )  # fmt: skip
    assert summary.batch.version is not None
    assert summary.sidecar.sidecar_error
    assert "sidecar_failed" in heard
    assert sum(map(len, rows_by_period(target).values())) == 2


def test_a_store_that_refuses_a_write_leaves_the_table_at_its_last_commit_and_the_next_run_goes_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    target = tmp_path / "out"
    run_ingest(spark, write_json(tmp_path / "one", [{"ts": NOON, "v": "1"}]), target)
    version = ld.open(str(target)).version
    obstacle = target / "_event_hour=2031010100"
    obstacle.touch()  # a file where the folder of the new hour should be
    late = write_json(tmp_path / "two", [{"ts": "2031-01-01T00:30:00Z", "v": "2"}, {"ts": NOON, "v": "3"}])
    with pytest.raises(LazyDeltaError) as caught:
        run_ingest(spark, late, target, run_id="two")
    assert "\tat " not in str(caught.value)
    assert ld.open(str(target)).version == version
    obstacle.unlink()
    assert run_ingest(spark, late, target, run_id="two").batch.rows_written == 2
    assert sum(map(len, rows_by_period(target).values())) == 3


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of two megabytes."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        skip("the right to mount is missing")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_full_disk_leaves_the_table_at_its_last_commit_and_the_next_run_goes_on(
    spark: SparkSession, tmp_path: Path, small_disk: Path
) -> None:
    target = small_disk / "out"
    run_ingest(spark, write_json(tmp_path / "one", [{"ts": NOON, "v": "1"}]), target)
    version = ld.open(str(target)).version
    noise = [{"ts": NOON, "v": os.urandom(512).hex()} for _ in range(4000)]
    with pytest.raises(StorageError, match="No space left") as caught:
        run_ingest(spark, write_json(tmp_path / "two", noise), target, run_id="two")
    assert "last commit" in caught.value.fix
    assert "\tat " not in str(caught.value)
    assert ld.open(str(target)).version == version
    assert len(files_of(target)) == 1
    subprocess.run(["mount", "-o", "remount,size=50m", str(small_disk)], check=True)
    assert run_ingest(spark, tmp_path / "two", target, run_id="two").batch.rows_written == 4000
    assert sum(map(len, rows_by_period(target).values())) == 4001


def test_what_java_raises_is_one_line_without_its_stack(spark: SparkSession) -> None:
    with pytest.raises(LazyDeltaError) as caught, explained("counting", "here"):
        spark.sql("SELECT raise_error('the cause')").collect()
    assert "the cause" in caught.value.what
    assert len(caught.value.what.splitlines()) == 1
    jvm: Any = spark._jvm
    with pytest.raises(LazyDeltaError, match="For input string") as caught, explained("counting", "here"):
        jvm.java.lang.Integer.parseInt("x")
    assert caught.value.what.startswith("counting failed: ")
