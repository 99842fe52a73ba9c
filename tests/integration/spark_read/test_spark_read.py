"""A table read in Spark through the data source has the rows that Delta on Spark reads."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

import lazydelta as ld
from lazydelta.errors import InvalidRequestError, TableNotFoundError, VersionNotFoundError
from lazydelta.spark import read, register
from tests.golden.test_golden_rows import counted
from tests.integration.test_spark_parity import (
    WRITTEN_BY_SPARK,
    delete_with_vectors,
    history,
    insert,
    rename_and_drop_columns,
    restore,
    update_and_merge,
    v2_checkpoints,
    widen_types,
)
from tests.support.spark_reads import by_each_reader
from tests.support.spark_settings import configured

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


def delta(spark: SparkSession, folder: Path, version: int | None = None) -> DataFrame:
    reader = spark.read.format("delta")
    return (reader if version is None else reader.option("versionAsOf", version)).load(str(folder))


def assert_same(found: DataFrame | Iterable[DataFrame], expected: DataFrame) -> None:
    theirs = counted(expected.toArrow())
    for ours in found if isinstance(found, Iterable) else [found]:
        assert ours.schema.simpleString() == expected.schema.simpleString()
        assert counted(ours.toArrow()) == theirs


@pytest.fixture(scope="module")
def days(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five days of a hundred rows, one file each; version 5 is the last."""
    folder = tmp_path_factory.mktemp("read") / "days"
    sql = history(spark, folder)
    for day in range(1, 6):
        insert(sql, 100, day)
    return folder


@pytest.mark.parametrize("write", WRITTEN_BY_SPARK, ids=lambda write: write.__name__)
def test_what_spark_wrote_is_read_alike(
    spark: SparkSession, written: Callable[..., Path], write: Callable[[SparkSession, Path], None]
) -> None:
    table = written(write)
    assert_same(by_each_reader(spark, table), delta(spark, table))


@pytest.mark.parametrize(
    "write",
    [
        delete_with_vectors,
        *(
            pytest.param(write, marks=pytest.mark.long("old versions of every history"))
            for write in (rename_and_drop_columns, restore, update_and_merge, v2_checkpoints, widen_types)
        ),
    ],
    ids=lambda write: write.__name__,
)
def test_an_old_version_is_read_alike(
    spark: SparkSession, written: Callable[..., Path], write: Callable[[SparkSession, Path], None]
) -> None:
    table = written(write)
    version = ld.open(str(table)).version // 2
    assert_same(by_each_reader(spark, table, version=version), delta(spark, table, version))


@pytest.mark.parametrize("native", [True, False])
def test_filter_columns_and_limit_reach_the_scan(spark: SparkSession, days: Path, native: bool) -> None:
    where = "date >= '2026-02-04' and count < 30"
    found = read(spark, days, where=where, columns=["count", "date"], native=native)
    assert found.columns == ["count", "date"]
    assert_same(found, delta(spark, days).where(where).select("count", "date"))
    assert found.rdd.getNumPartitions() <= 2
    limited = read(spark, days, where="count < 30", limit=7, native=native)
    assert limited.count() == 7
    assert {row["count"] for row in limited.collect()} <= set(range(30))
    assert read(spark, days, limit=0, native=native).count() == 0


def test_the_format_takes_the_same_as_options(spark: SparkSession, days: Path) -> None:
    register(spark)
    frame = (
        spark.read.format("lazydelta")
        .option("where", "count < 10")
        .option("columns", "count, device_id")
        .option("versionAsOf", 3)
        .load(str(days))
    )
    assert_same(frame, delta(spark, days, 3).where("count < 10").select("count", "device_id"))
    exactly = spark.read.format("lazydelta").option("limit", 130).load(str(days))
    assert exactly.count() == 130


def test_plain_files_are_read_by_spark_itself_only_columns_that_are_needed(
    spark: SparkSession, days: Path
) -> None:
    frame = read(spark, days, where="count < 3").select("value").where("date = '2026-02-02'")
    plan = frame._jdf.queryExecution().toString()
    assert "FileScan parquet [value#" in plan
    assert "ReadSchema: struct<value:double,count:bigint>" in plan
    assert "python" not in plan.lower()
    assert_same(frame, delta(spark, days).where("count < 3 and date = '2026-02-02'").select("value"))


def test_what_spark_cannot_read_by_itself_is_told_where_that_was_asked_for(
    spark: SparkSession, days: Path
) -> None:
    with pytest.raises(InvalidRequestError, match="metadata columns are asked for"):
        read(spark, days, columns=["_file_path"], native=True)
    assert read(spark, days, columns=["_file_path", "count"]).count() == 500


def test_odd_partition_values_and_names_of_files_are_read_alike(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "a [table] 100% =x#y?"
    rows = "('a b/c:%=', 1, 1), ('ü', -7, 2), (null, null, 3), ('007', 0, 4), ('2026', 12, 5)"
    spark.sql(f"select * from values {rows} as t(s, i, n)").write.format("delta").partitionBy("s", "i").save(
        str(folder)
    )
    expected = delta(spark, folder)
    assert_same(by_each_reader(spark, folder), expected)
    assert_same(read(spark, folder, where="s is not null"), expected.where("s is not null"))
    plain = tmp_path / "a [table] 100% x#y?"
    folder.rename(plain)
    assert_same(read(spark, plain, native=True), delta(spark, plain))
    assert_same(read(spark, plain, where="s = '007' or i = -7", native=True),
                delta(spark, plain).where("s = '007' or i = -7"))  # fmt: skip


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()])
@pytest.mark.parametrize(
    "where",
    [
        "v > 5",
        "v >= 5",
        "v <> 1",
        "not v <= 5",
        "v = 0",
        "v in (0, 7)",
        f"v in ({', '.join(map(str, range(20)))})",
        f"not v in ({', '.join(map(str, range(1, 20)))})",
        "s.v > 5",
    ],
)
def test_what_is_no_number_and_zeros_below_zero_match_whoever_reads(
    spark: SparkSession, tmp_path: Path, where: str, kind: pa.DataType
) -> None:
    """Row groups of most writers tell bounds without NaN, and dictionaries have a zero of either sign."""
    for number, values in enumerate(([1.0, float("nan")], [-0.0, -0.0], [None, 3.0])):
        v = pa.array(values, kind)
        nested = pa.StructArray.from_arrays([v], ["v"])
        write_deltalake(str(tmp_path), pa.table({"n": [number] * 2, "v": v, "s": nested}), mode="append")
    expected = ld.open(tmp_path).scan(where).to_arrow(["n"])
    assert 0 < expected.num_rows < 6
    for frame in by_each_reader(spark, tmp_path, where=where, columns=["n"]):
        assert counted(frame.toArrow()) == counted(expected)


def test_times_without_a_zone_are_in_the_sessions(spark: SparkSession, days: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(days, tmp_path / "days")
    now = int(time.time())
    for version in range(6):
        at = now - (20 - 3 * version) * 3600
        os.utime(copy / "_delta_log" / f"{version:020}.json", (at, at))
    hour_after_version_2 = f"select cast(timestamp_seconds({now - 13 * 3600}) as string)"
    for zone, native in [("America/New_York", True), ("PST", False), ("+02:00", False)]:
        with configured(spark, {"spark.sql.session.timeZone": zone}):
            told = spark.sql(hour_after_version_2).collect()[0][0]
            theirs = spark.read.format("delta").option("timestampAsOf", told).load(str(copy))
            assert read(spark, copy, timestamp=told, native=native).count() == theirs.count() == 200


def test_sql_reads_it_through_a_view(spark: SparkSession, days: Path) -> None:
    read(spark, days, columns=["date", "value"]).createOrReplaceTempView("lazy_days")
    ours = spark.sql("select date, sum(value) from lazy_days group by date").toArrow()
    theirs = spark.sql(f"select date, sum(value) from delta.`{days}` group by date").toArrow()
    assert counted(ours) == counted(theirs)


def test_a_frame_stays_at_its_version_while_the_table_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    sql = history(spark, tmp_path / "t")
    insert(sql, 5)
    frames = [read(spark, tmp_path / "t", native=native) for native in (True, False)]
    assert [frame.count() for frame in frames] == [5, 5]
    insert(sql, 5, 9)
    assert [frame.count() for frame in frames] == [5, 5]
    assert read(spark, tmp_path / "t").count() == 10


def test_no_row_matches_and_no_file_is_there(spark: SparkSession, tmp_path: Path) -> None:
    sql = history(spark, tmp_path / "t")
    for native in (True, False):
        assert read(spark, tmp_path / "t", native=native).count() == 0
    insert(sql, 5)
    for native in (True, False):
        none = read(spark, tmp_path / "t", where="date = '1999-01-01'", native=native).toArrow()
        assert none.num_rows == 0
        assert none.schema.field("value").type == pa.float64()


def test_filters_of_one_frame_never_meet_whatever_spark_pushes(spark: SparkSession, days: Path) -> None:
    frame, expected = read(spark, days, native=False), delta(spark, days)
    conditions = ["date = '2026-02-03' and count < 10", "value is null or count = 5", "true"]
    with configured(spark, {"spark.sql.python.filterPushdown.enabled": "true"}):
        for condition in conditions:
            assert_same(frame.where(condition), expected.where(condition))
        one, other = "date = '2026-02-01'", "date = '2026-02-05'"
        assert_same(
            frame.where(one).union(frame.where(other)), expected.where(one).union(expected.where(other))
        )


def test_what_is_wrong_with_a_request_is_raised_as_it_is(
    spark: SparkSession, days: Path, tmp_path: Path
) -> None:
    with pytest.raises(InvalidRequestError, match="no column 'nope'"):
        read(spark, days, columns=["nope"])
    with pytest.raises(VersionNotFoundError, match="the newest is 5"):
        read(spark, days, version=99)
    with pytest.raises(TableNotFoundError):
        read(spark, tmp_path / "none")
    with pytest.raises(InvalidRequestError, match="object of this process"):
        read(spark, days, storage_options={"credential_provider": lambda: {}})


def test_a_workers_error_reaches_the_user_and_names_the_version(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.errors import PySparkException

    sql = history(spark, tmp_path / "t")
    insert(sql, 5)
    frame, by_spark = (read(spark, tmp_path / "t", native=native) for native in (False, True))
    sql("insert overwrite {t} select * from {t} where count < 2")
    with configured(spark, {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}):
        sql("vacuum {t} retain 0 hours")
    with pytest.raises(PySparkException) as error:
        frame.collect()
    assert "CorruptDataError: a data file of version 1 is not there" in str(error.value)
    assert "if VACUUM deleted it" in str(error.value)
    careless = {"spark.sql.files.ignoreMissingFiles": "true", "spark.sql.files.ignoreCorruptFiles": "true"}
    with configured(spark, careless), pytest.raises(Exception, match=r"\.parquet#version=1.*does not exist"):
        by_spark.collect()


def test_no_secret_is_in_any_text_of_a_plan(spark: SparkSession, days: Path) -> None:
    secret = {"account_key": "c2VjcmV0LW9mLW1pbmU="}
    frame = read(spark, days, storage_options=secret, native=False).where("count < 3")
    execution: Any = frame._jdf.queryExecution()
    texts = [execution.toString(), execution.stringWithStats(), execution.logical().toJSON()]
    jvm: Any = spark._jvm
    for mode in ("simple", "extended", "formatted", "cost", "codegen"):
        texts.append(jvm.PythonSQLUtils.explainString(execution, mode))
    assert frame.count() == 15
    assert not any("c2VjcmV0" in text for text in texts)


def test_variants_text_kinds_and_void_are_what_delta_reads(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql(
        f"""CREATE TABLE delta.`{tmp_path / "v"}` (id INT, v VARIANT, l ARRAY<VARIANT>, c CHAR(5), n VOID,
        m MAP<STRING, STRUCT<x: VARIANT, y: INT>>) USING delta"""
    )
    spark.sql(
        f"""INSERT INTO delta.`{tmp_path / "v"}` (id, v, l, c, m) SELECT id, parse_json(j),
        array(parse_json(j), null), 'x', map('k', named_struct('x', parse_json(j), 'y', id), 'n', null)
        FROM VALUES (1, '{{"a": [1, 2.5, "x", null]}}'), (2, '"text"'), (3, 'null'), (4, null) AS t(id, j)"""
    )
    shown = (
        "id",
        "to_json(v)",
        "to_json(l[0])",
        "to_json(l[1])",
        "c",
        "n",
        "m.k.y",
        "to_json(m.k.x)",
        "m.n.y",
    )
    ours = read(spark, tmp_path / "v")
    assert ours.schema == delta(spark, tmp_path / "v").schema
    assert_same(ours.selectExpr(*shown), delta(spark, tmp_path / "v").selectExpr(*shown))
    assert ours.where("c = 'x'").count() == 4
