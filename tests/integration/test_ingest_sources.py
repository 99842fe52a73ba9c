"""Where rows come from: formats, schemas given, inferred and kept, columns that come later."""

from __future__ import annotations

import datetime as dt
import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

import lazydelta as ld
from lazydelta.errors import InvalidRequestError
from tests.support.ingesting import (
    Row,
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
KEPT = "lazydelta.source.schema"


def table(target: Path, *columns: str) -> list[tuple[object, ...]]:
    """Rows as lazydelta reads them back, in order."""
    rows = ld.open(str(target)).to_arrow(list(columns)).to_pylist()
    return sorted((tuple(row[name] for name in columns) for row in rows), key=str)


def kept(spark: SparkSession, target: Path) -> dict[str, object]:
    """The kept schema: names and types."""
    text = spark.sql(f"DESCRIBE DETAIL delta.`{target}`").collect()[0]["properties"][KEPT]
    return {field["name"]: field["type"] for field in json.loads(text)["fields"]}


def test_the_schema_of_json_is_inferred_once_and_grows_only_on_request(
    spark: SparkSession, tmp_path: Path
) -> None:
    target = tmp_path / "out"
    # A byte order mark spoils nothing.
    first = "\ufeff" + json.dumps({"ts": NOON, "v": 1, "d": {"X": 1}}) + "\n"
    run_ingest(spark, f"{write_text(tmp_path / 'one', first, 'a1.json')}/a*.json", target)
    types = kept(spark, target)
    assert [*types, types["ts"], types["v"]] == ["d", "ts", "v", "string", "long"]

    # Types never flip, and keys in another case keep their values.
    flipped = {"TS": NOON, "V": "text"}
    second = write_json(tmp_path / "two", [flipped, {"TS": NOON, "V": 2, "D": {"x": 2}}])
    assert run_ingest(spark, second, target).batch.rows_written == 1
    assert rejects_of(spark, target) == [("malformed record", json.dumps(flipped))]
    assert kept(spark, target) == types

    before = commits_of(target)
    third = write_json(tmp_path / "three", [{"ts": NOON, "d": {"X": 3, "y": 2}, "city": "Oslo"}])
    with pytest.raises(InvalidRequestError, match=r"city, d\.y") as caught:
        run_ingest(spark, third, target)
    assert "--merge-schema" in caught.value.fix
    assert commits_of(target) == before
    run_ingest(spark, third, target, merge_schema=True)

    # What was merged is known from now on; so is what was added to the table by hand.
    spark.sql(f"ALTER TABLE delta.`{target}` ADD COLUMNS (extra STRING)")
    last = write_json(tmp_path / "four", [{"ts": NOON, "v": 4, "city": "Rome", "extra": "x"}], "b.json")
    run_ingest(spark, last / "b.json", target)
    assert table(target, "v", "city", "extra") == [
        (1, None, None),
        (2, None, None),
        (4, "Rome", "x"),
        (None, "Oslo", None),
    ]
    inner = [row["d"] for row in ld.open(str(target)).to_arrow(["d"]).to_pylist()]
    assert sorted(inner, key=str) == [None, {"X": 1, "y": None}, {"X": 2, "y": None}, {"X": 3, "y": 2}]
    assert_one_period_per_file(target)


def test_folders_become_columns_and_the_format_follows_from_names(
    spark: SparkSession, tmp_path: Path
) -> None:
    source, target = tmp_path / "in", tmp_path / "out"
    # A key that Spark uses for bad lines is a column like others.
    rows: list[Row | str] = [{"ts": NOON, "v": 1, "_corrupt_record": "a"}, "no json"]
    write_json(source / "site=a", rows, "rows.ndjson")
    write_json(source / "site=a", [{"ts": NOON, "v": 2}], "part-0.c000.jsonl")
    write_json(source / "site=b", [{"ts": NOON, "v": 3}], "rows.JSON")
    body = (json.dumps({"ts": NOON, "v": 4}) + "\n").encode()
    (source / "site=b" / "rows.json.gz").write_bytes(gzip.compress(body))
    (source / "_SUCCESS").touch()
    summary = run_ingest(spark, source, target)
    assert (summary.batch.rows_written, summary.batch.rows_rejected) == (4, 1)
    found = table(target, "site", "v", "_corrupt_record")
    assert found == [("a", 1, "a"), ("a", 2, None), ("b", 3, None), ("b", 4, None)]


def test_json_documents_over_several_lines_are_read_whole(spark: SparkSession, tmp_path: Path) -> None:
    rows = [{"ts": NOON, "v": number} for number in range(3)]
    source = write_text(tmp_path / "in", json.dumps(rows, indent=2), "rows.json")
    write_text(source, "{broken", "broken.json")
    target = tmp_path / "out"
    summary = run_ingest(spark, source, target, options={"multiLine": "true"})
    assert table(target, "v") == [(0,), (1,), (2,)]
    assert summary.batch.rejected_by_reason == {"malformed record": 1}
    assert rejects_of(spark, target) == [("malformed record", "{broken")]


def test_csv_columns_are_found_by_name_and_lines_that_do_not_fit_are_kept(
    spark: SparkSession, tmp_path: Path
) -> None:
    target = tmp_path / "out"
    write_text(tmp_path / "one" / "site=a", "ts,v,city\n2026-02-10 12:00:00,1,Oslo\n", "a.csv")
    write_text(
        tmp_path / "one" / "site=b", "city,ts,v\nRome,2026-02-10 13:00:00,2\n", "b with [glob] 100%.csv"
    )
    run_ingest(spark, tmp_path / "one", target)
    assert table(target, "v", "city", "site", "_event_hour") == [
        (1, "Oslo", "a", "2026021012"),
        (2, "Rome", "b", "2026021013"),
    ]
    types = kept(spark, target)
    assert [types[name] for name in ("ts", "v", "city")] == ["string", "long", "string"]

    lines = ["ts,v", f"{NOON},3", f"{NOON},one", f"{NOON},2,3,4", "never,5", ",6"]
    write_text(tmp_path / "two" / "site=b", "\n".join(lines) + "\n", "a.csv")
    assert run_ingest(spark, tmp_path / "two", target).batch.rows_read == 5
    rejects = rejects_of(spark, target)
    assert [record for why, record in rejects if why == "malformed record"] == sorted(lines[2:4])
    times = [json.loads(record) for why, record in rejects if "event time" in why]
    assert [(record["ts"], record["v"]) for record in times] == [("never", 5), (None, 6)]

    write_text(tmp_path / "three" / "site=a", f"ts,extra,v\n{NOON},2.5,4\n", "b.csv")
    with pytest.raises(InvalidRequestError, match="extra"):
        run_ingest(spark, tmp_path / "three", target)
    run_ingest(spark, tmp_path / "three", target, merge_schema=True)
    assert table(target, "v", "extra") == [(1, None), (2, None), (3, None), (4, 2.5)]


def test_csv_without_a_header_takes_the_schema_by_position(spark: SparkSession, tmp_path: Path) -> None:
    source = write_text(tmp_path / "in", f"{NOON};1\n{NOON};2\n", "a.csv")
    target = tmp_path / "out"
    options = {"Header": "false", "sep": ";"}
    run_ingest(spark, source, target, options=options, schema="ts string, v int")
    assert table(target, "v") == [(1,), (2,)]


@pytest.mark.long("another way to the same columns: positions and folders at once")
def test_csv_without_a_header_keeps_folders_as_columns(spark: SparkSession, tmp_path: Path) -> None:
    write_text(tmp_path / "in" / "site=a", f"{NOON},1\n", "a.csv")
    write_text(tmp_path / "in" / "site=b", f"{NOON},2\n", "b.csv")
    target = tmp_path / "out"
    for _ in range(2):
        run_ingest(spark, tmp_path / "in", target, options={"header": "false"}, event_time="_c0")
    assert table(target, "site", "_c1") == [("a", 1), ("a", 1), ("b", 2), ("b", 2)]


def test_parquet_footers_are_merged_and_compared(spark: SparkSession, tmp_path: Path) -> None:
    moment = pa.array([dt.datetime(2026, 2, 10, 12, tzinfo=dt.UTC)], pa.timestamp("us", "UTC"))

    def rows(folder: str, name: str = "rows", **columns: pa.Array) -> Path:
        (tmp_path / folder).mkdir(exist_ok=True)
        pq.write_table(pa.table({"ts": moment} | columns), tmp_path / folder / f"{name}.parquet")
        return tmp_path / folder

    def inner(value: object, **types: pa.DataType) -> pa.Array:
        return pa.array([value], pa.list_(pa.struct(types)))

    target = tmp_path / "out"
    wide = inner([{"a": 1, "b": "x"}], a=pa.int64(), b=pa.string())
    run_ingest(spark, rows("one", v=pa.array([1]), l=wide), target)
    narrow = inner([{"a": 2}, None], a=pa.int32())  # columns at every depth may arrive narrower
    run_ingest(spark, rows("narrow", v=pa.array([2], pa.int32()), l=narrow), target)
    rows("two", v=pa.array([3]))
    source = rows("two", "more", v=pa.array([4]), city=pa.array(["Oslo"]))
    with pytest.raises(InvalidRequestError, match="city"):
        run_ingest(spark, source, target)
    run_ingest(spark, source, target, merge_schema=True)
    assert table(target, "v", "city") == [(1, None), (2, None), (3, None), (4, "Oslo")]
    found = {row["v"]: row["l"] for row in ld.open(str(target)).to_arrow(["v", "l"]).to_pylist()}
    assert found == {1: [{"a": 1, "b": "x"}], 2: [{"a": 2, "b": None}, None], 3: None, 4: None}
    with pytest.raises(InvalidRequestError, match="'v' of the source is string now") as caught:
        run_ingest(spark, rows("text", v=pa.array(["x"])), target)
    assert "cast" in caught.value.fix
    with pytest.raises(InvalidRequestError, match="is double now"):
        run_ingest(spark, rows("real", v=pa.array([1.5])), target)
    assert len(table(target, "v")) == 4


def test_a_delta_table_and_a_named_table_are_sources_too(spark: SparkSession, tmp_path: Path) -> None:
    moment = pa.array([dt.datetime(2026, 2, 10, 12, tzinfo=dt.UTC)])
    write_deltalake(str(tmp_path / "in"), pa.table({"ts": moment, "v": pa.array([1], pa.int32())}))
    target = tmp_path / "out"
    run_ingest(spark, tmp_path / "in", target)  # the format follows from the log
    spark.sql(f"SELECT TIMESTAMP '{NOON}' AS ts, 1 AS v").createOrReplaceTempView("a_view")
    run_ingest(spark, "a_view", target, format="table")
    assert table(target, "v") == [(1,), (1,)]


def test_a_schema_from_a_file_says_which_columns_are_read(spark: SparkSession, tmp_path: Path) -> None:
    ddl, as_json = tmp_path / "schema.ddl", tmp_path / "schema.json"
    ddl.write_text("ts TIMESTAMP, v DECIMAL(10,2)\n")
    source = write_json(tmp_path / "in", [{"ts": NOON, "v": 1.25, "other": True}])
    target = tmp_path / "out"
    run_ingest(spark, source, target, schema=str(ddl))
    frame = spark.read.format("delta").load(str(target))
    assert frame.schema.simpleString() == "struct<ts:timestamp,v:decimal(10,2),_event_hour:string>"
    as_json.write_text(frame.drop("_event_hour").schema.json())
    run_ingest(spark, source, target, schema=str(as_json))
    assert len(table(target, "v")) == 2
    assert list(rows_by_period(target)) == ["2026021012"]
