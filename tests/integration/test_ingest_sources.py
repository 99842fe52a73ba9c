"""Where rows come from: formats, schemas given, inferred and kept, columns that come later."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lazydelta.errors import InvalidRequestError
from lazydelta.spark.known_schema import PROPERTY
from tests.support.ingesting import (
    assert_one_period_per_file,
    commits_of,
    rejects_of,
    rows_by_period,
    run_ingest,
    write_json,
    write_text,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

NOON = "2026-02-10T12:00:00Z"


def table(spark: SparkSession, target: Path, *columns: str) -> list[tuple[object, ...]]:
    """Rows as Spark reads them back, in order."""
    frame = spark.read.format("delta").load(str(target))
    return sorted((tuple(row) for row in frame.select(*columns).collect()), key=str)


def kept(spark: SparkSession, target: Path) -> dict[str, object]:
    """The kept schema: names and types."""
    text = spark.sql(f"DESCRIBE DETAIL delta.`{target}`").collect()[0]["properties"][PROPERTY]
    return {field["name"]: field["type"] for field in json.loads(text)["fields"]}


def test_json_infers_once_and_types_never_flip(spark: SparkSession, tmp_path: Path) -> None:
    target = tmp_path / "out"
    run_ingest(spark, write_json(tmp_path / "one", [{"ts": NOON, "v": 1}]), target)
    assert kept(spark, target) == {"ts": "string", "v": "long"}
    second = write_json(tmp_path / "two", [{"ts": NOON, "v": "text"}, {"ts": NOON, "v": 2}])
    run_ingest(spark, second, target)
    assert table(spark, target, "v") == [(1,), (2,)]
    assert rejects_of(spark, target) == [("malformed record", json.dumps({"ts": NOON, "v": "text"}))]
    assert kept(spark, target) == {"ts": "string", "v": "long"}


def test_json_keys_in_another_case_keep_their_values(spark: SparkSession, tmp_path: Path) -> None:
    target = tmp_path / "out"
    run_ingest(spark, write_json(tmp_path / "one", [{"ts": NOON, "v": 1, "at": {"Lat": 1}}]), target)
    second = write_json(tmp_path / "two", [{"TS": NOON, "V": 2, "At": {"lat": 2}}])
    assert run_ingest(spark, second, target).batch.rows_written == 1
    assert table(spark, target, "v", "at.Lat") == [(1, 1), (2, 2)]
    assert kept(spark, target).keys() == {"ts", "v", "at"}


def test_a_key_that_spark_uses_for_bad_lines_is_a_column_like_others(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = [{"ts": NOON, "_corrupt_record": "a"}, "no json", {"ts": NOON, "_corrupt_record": "b"}]
    summary = run_ingest(spark, write_json(tmp_path / "in", rows), tmp_path / "out")
    assert (summary.batch.rows_written, summary.batch.rows_rejected) == (2, 1)
    assert table(spark, tmp_path / "out", "_corrupt_record") == [("a",), ("b",)]


def test_new_json_keys_are_an_error_at_any_depth(spark: SparkSession, tmp_path: Path) -> None:
    target = tmp_path / "out"
    run_ingest(spark, write_json(tmp_path / "one", [{"ts": NOON, "d": {"x": 1}}]), target)
    before = commits_of(target)
    new = {"ts": NOON, "d": {"x": 1, "y": 2}, "city": "Oslo"}
    with pytest.raises(InvalidRequestError, match=r"city, d\.y") as caught:
        run_ingest(spark, write_json(tmp_path / "two", [new]), target)
    assert "--merge-schema" in caught.value.fix
    assert commits_of(target) == before
    run_ingest(spark, tmp_path / "two", target, merge_schema=True)
    assert table(spark, target, "city", "d.x", "d.y") == [("Oslo", 1, 2), (None, 1, None)]
    # What was merged is known from now on, and a source without it is welcome.
    run_ingest(spark, tmp_path / "two", target)
    run_ingest(spark, tmp_path / "one", target)
    assert len(table(spark, target, "city")) == 4
    assert_one_period_per_file(target)


def test_a_column_added_to_the_table_by_hand_is_known(spark: SparkSession, tmp_path: Path) -> None:
    target = tmp_path / "out"
    run_ingest(spark, write_json(tmp_path / "one", [{"ts": NOON, "v": 1}]), target)
    spark.sql(f"ALTER TABLE delta.`{target}` ADD COLUMNS (city STRING)")
    run_ingest(spark, write_json(tmp_path / "two", [{"ts": NOON, "v": 2, "city": "Oslo"}]), target)
    assert table(spark, target, "v", "city") == [(1, None), (2, "Oslo")]


def test_json_keeps_folders_as_columns(spark: SparkSession, tmp_path: Path) -> None:
    write_json(tmp_path / "in" / "site=a", [{"ts": NOON, "v": 1}])
    source = write_json(tmp_path / "in" / "site=b", [{"ts": NOON, "v": 2}])
    target = tmp_path / "out"
    run_ingest(spark, source.parent, target)
    run_ingest(spark, source.parent, target)
    assert table(spark, target, "site", "v") == [("a", 1), ("a", 1), ("b", 2), ("b", 2)]


def test_json_documents_over_several_lines_are_read_whole(spark: SparkSession, tmp_path: Path) -> None:
    rows = [{"ts": NOON, "v": number} for number in range(3)]
    source = write_text(tmp_path / "in", json.dumps(rows, indent=2), "rows.json")
    write_text(source, "{broken", "broken.json")
    target = tmp_path / "out"
    summary = run_ingest(spark, source, target, options={"multiLine": "true"})
    assert table(spark, target, "v") == [(0,), (1,), (2,)]
    assert summary.batch.rejected_by_reason == {"malformed record": 1}
    assert rejects_of(spark, target) == [("malformed record", "{broken")]


def test_a_byte_order_mark_spoils_nothing(spark: SparkSession, tmp_path: Path) -> None:
    source = write_text(tmp_path / "in", "\ufeff" + json.dumps({"ts": NOON, "v": 1}) + "\n", "rows.json")
    assert run_ingest(spark, source, tmp_path / "out").batch.rows_written == 1


def test_csv_columns_are_found_by_name_whatever_their_order(spark: SparkSession, tmp_path: Path) -> None:
    source = write_text(tmp_path / "in", "ts,v,city\n2026-02-10 12:00:00,1,Oslo\n", "a.csv")
    write_text(source, "city,ts,v\nRome,2026-02-10 13:00:00,2\n", "b with [glob] 100%.csv")
    target = tmp_path / "out"
    run_ingest(spark, source, target)
    assert table(spark, target, "v", "city", "_event_hour") == [
        (1, "Oslo", "2026021012"),
        (2, "Rome", "2026021013"),
    ]
    assert kept(spark, target) == {"ts": "string", "v": "long", "city": "string"}


def test_csv_lines_that_do_not_fit_are_kept_as_text(spark: SparkSession, tmp_path: Path) -> None:
    lines = ["ts,v", f"{NOON},1", f"{NOON},one", f"{NOON},2,3,4", "never,5", ",6"]
    source = write_text(tmp_path / "in", "\n".join(lines) + "\n", "a.csv")
    target = tmp_path / "out"
    summary = run_ingest(spark, source, target, schema="ts string, v bigint")
    assert table(spark, target, "v") == [(1,)]
    found = rejects_of(spark, target)
    assert [record for reason, record in found if reason == "malformed record"] == sorted(lines[2:4])
    assert [json.loads(record) for reason, record in found if "event time" in reason] == [
        {"ts": "never", "v": 5},
        {"ts": None, "v": 6},
    ]
    assert summary.batch.rows_read == 5


def test_new_csv_columns_need_merging(spark: SparkSession, tmp_path: Path) -> None:
    target = tmp_path / "out"
    run_ingest(spark, write_text(tmp_path / "one", f"ts,v\n{NOON},1\n", "a.csv"), target)
    source = write_text(tmp_path / "two", f"ts,v\n{NOON},2\n", "a.csv")
    write_text(source, f"ts,extra,v\n{NOON},2.5,3\n", "b.csv")
    with pytest.raises(InvalidRequestError, match="extra"):
        run_ingest(spark, source, target)
    run_ingest(spark, source, target, merge_schema=True)
    assert table(spark, target, "v", "extra") == [(1, None), (2, None), (3, 2.5)]


@pytest.mark.parametrize("header", [True, False])
def test_csv_keeps_folders_as_columns(spark: SparkSession, tmp_path: Path, header: bool) -> None:
    head = "ts,v\n" if header else ""
    write_text(tmp_path / "in" / "site=a", f"{head}{NOON},1\n", "a.csv")
    other = "v,ts\n2," if header else ""
    write_text(tmp_path / "in" / "site=b", f"{other}{NOON}{'' if header else ',2'}\n", "b.csv")
    target = tmp_path / "out"
    for _ in range(2):
        run_ingest(
            spark, tmp_path / "in", target, options={"header": str(header).lower()},
            event_time="ts" if header else "_c0",
        )  # fmt: skip
    value = "v" if header else "_c1"
    assert table(spark, target, "site", value) == [("a", 1), ("a", 1), ("b", 2), ("b", 2)]


def test_csv_without_a_header_takes_the_schema_by_position(spark: SparkSession, tmp_path: Path) -> None:
    source = write_text(tmp_path / "in", f"{NOON};1\n{NOON};2\n", "a.csv")
    target = tmp_path / "out"
    options = {"Header": "false", "sep": ";"}
    run_ingest(spark, source, target, options=options, schema="ts string, v int")
    assert table(spark, target, "v") == [(1,), (2,)]


def test_parquet_footers_are_merged_and_compared(spark: SparkSession, tmp_path: Path) -> None:
    def rows(folder: str, columns: str) -> Path:
        spark.sql(f"SELECT TIMESTAMP '{NOON}' AS ts, {columns}").write.mode("append").parquet(
            str(tmp_path / folder)
        )
        return tmp_path / folder

    target = tmp_path / "out"
    run_ingest(spark, rows("one", "BIGINT(1) AS v"), target)
    run_ingest(spark, rows("narrow", "2 AS v"), target)
    assert table(spark, target, "v") == [(1,), (2,)]
    rows("two", "BIGINT(3) AS v")
    source = rows("two", "BIGINT(4) AS v, 'Oslo' AS city")
    with pytest.raises(InvalidRequestError, match="city"):
        run_ingest(spark, source, target)
    run_ingest(spark, source, target, merge_schema=True)
    assert table(spark, target, "v", "city") == [(1, None), (2, None), (3, None), (4, "Oslo")]
    with pytest.raises(InvalidRequestError, match="'v' of the source is string now") as caught:
        run_ingest(spark, rows("text", "'x' AS v"), target)
    assert "cast" in caught.value.fix
    with pytest.raises(InvalidRequestError, match="is double now"):
        run_ingest(spark, rows("real", "DOUBLE(1) AS v"), target)
    assert len(table(spark, target, "v")) == 4


def test_nested_columns_may_arrive_narrower(spark: SparkSession, tmp_path: Path) -> None:
    target = tmp_path / "out"
    wide = f"SELECT TIMESTAMP '{NOON}' AS ts, array(named_struct('a', BIGINT(1), 'b', 'x')) AS l"
    narrow = f"SELECT TIMESTAMP '{NOON}' AS ts, array(named_struct('a', 2), NULL) AS l"
    spark.sql(wide).write.parquet(str(tmp_path / "wide"))
    spark.sql(narrow).write.parquet(str(tmp_path / "narrow"))
    run_ingest(spark, tmp_path / "wide", target)
    run_ingest(spark, tmp_path / "narrow", target)
    frame = spark.read.format("delta").load(str(target)).selectExpr("to_json(l) AS l")
    assert sorted(row["l"] for row in frame.collect()) == ['[{"a":1,"b":"x"}]', '[{"a":2},null]']


def test_a_delta_table_and_a_named_table_are_sources_too(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.sql(f"SELECT TIMESTAMP '{NOON}' AS ts, 1 AS v")
    rows.write.format("delta").save(str(tmp_path / "in"))
    target = tmp_path / "out"
    run_ingest(spark, tmp_path / "in", target)  # the format is told from the log
    rows.createOrReplaceTempView("a_view")
    run_ingest(spark, "a_view", target, format="table")
    assert table(spark, target, "v") == [(1,), (1,)]


def test_a_schema_from_a_file_says_which_columns_are_read(spark: SparkSession, tmp_path: Path) -> None:
    ddl = tmp_path / "schema.ddl"
    ddl.write_text("ts TIMESTAMP, v DECIMAL(10,2)\n")
    source = write_json(tmp_path / "in", [{"ts": NOON, "v": 1.25, "other": True}])
    target = tmp_path / "out"
    run_ingest(spark, source, target, schema=str(ddl))
    frame = spark.read.format("delta").load(str(target))
    assert frame.schema.simpleString() == "struct<ts:timestamp,v:decimal(10,2),_event_hour:string>"
    as_json = tmp_path / "schema.json"
    as_json.write_text(frame.drop("_event_hour").schema.json())
    run_ingest(spark, source, target, schema=str(as_json))
    assert len(table(spark, target, "v")) == 2


@pytest.mark.parametrize("name", ["rows.json.gz", "rows.ndjson", "part-0.c000.jsonl", "rows.JSON"])
def test_the_format_is_told_from_the_names(spark: SparkSession, tmp_path: Path, name: str) -> None:
    import gzip

    body = (json.dumps({"ts": NOON, "v": 1}) + "\n").encode()
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / name).write_bytes(gzip.compress(body) if name.endswith("gz") else body)
    (tmp_path / "in" / "_SUCCESS").touch()
    assert run_ingest(spark, tmp_path / "in", tmp_path / "out").batch.rows_written == 1


def test_a_glob_and_a_single_file_are_sources(spark: SparkSession, tmp_path: Path) -> None:
    source = write_json(tmp_path / "in", [{"ts": NOON, "v": 1}], "a1.json")
    write_json(source, [{"ts": NOON, "v": 2}], "a2.json")
    write_json(source, [{"ts": NOON, "v": 3}], "b.json")
    target = tmp_path / "out"
    run_ingest(spark, source / "a*.json", target)
    run_ingest(spark, source / "b.json", target)
    assert table(spark, target, "v") == [(1,), (2,), (3,)]
    assert list(rows_by_period(target)) == ["2026021012"]
