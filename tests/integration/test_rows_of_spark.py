"""Rows of tables that Delta on Spark wrote, with everything that stands between a file and a row."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lazydelta as ld
from tests.golden.test_golden_rows import counted
from tests.support.spark_settings import configured

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def ours(folder: Path, columns: list[str] | None = None, where: str | None = None) -> pa.Table:
    table = ld.open(str(folder))
    batches = list(table.scan(where).batches(columns))
    rows = pa.Table.from_batches(batches) if batches else table.schema.empty_table()
    rows.validate(full=True)
    return rows


def theirs(spark: SparkSession, folder: Path, select: str = "*") -> pa.Table:
    return spark.sql(f"SELECT {select} FROM delta.`{folder}`").toArrow()


def assert_same(spark: SparkSession, folder: Path) -> None:
    expected, found = theirs(spark, folder), ours(folder)
    assert found.column_names == expected.column_names
    assert found.num_rows > 0
    assert counted(found) == counted(expected)
    for name in found.column_names:
        assert counted(ours(folder, [name])) == counted(expected.select([name]))


def stored_columns(folder: Path) -> set[str]:
    """Names of the top-level columns in the table's files."""
    return {name for path in folder.rglob("*.parquet") if "_delta_log" not in path.parts
            for name in pq.read_schema(path).names}  # fmt: skip


@pytest.mark.parametrize(
    "mode", ["name", pytest.param("id", marks=pytest.mark.long("the other way to map the same columns"))]
)
def test_mapped_columns_are_renamed_dropped_and_added_at_every_level(
    spark: SparkSession, tmp_path: Path, mode: str
) -> None:
    table = f"delta.`{tmp_path / 't'}`"
    spark.sql(
        f"""CREATE TABLE {table} (id BIGINT, s STRUCT<a: INT, b: STRUCT<c: STRING, d: INT>>,
        l ARRAY<STRUCT<a: INT, b: STRING>>, m MAP<STRING, STRUCT<a: INT, b: STRING>>, gone INT, p STRING)
        USING delta PARTITIONED BY (p)
        TBLPROPERTIES ('delta.columnMapping.mode' = '{mode}')"""
    )
    spark.sql(
        f"""INSERT INTO {table} SELECT id, named_struct('a', id, 'b', named_struct('c', 'x', 'd', 1)),
        array(named_struct('a', id, 'b', 'y'), null), map('k', named_struct('a', id, 'b', 'z')), 1, 'p 1'
        FROM range(5)"""
    )
    for change in (
        "RENAME COLUMN s.a TO a2",
        "RENAME COLUMN l.element.b TO b2",
        "RENAME COLUMN m.value.a TO a2",
        "DROP COLUMN gone",
        "DROP COLUMN s.b.c",
        "ADD COLUMNS (s.b.e DOUBLE, l.element.new BIGINT, m.value.new STRING, gone STRING)",
        "RENAME COLUMN p TO `the day`",
        "RENAME COLUMN id TO `i d`",
    ):
        spark.sql(f"ALTER TABLE {table} {change}")
    spark.sql(
        f"""INSERT INTO {table} SELECT id, named_struct('a2', id, 'b', named_struct('d', 2, 'e', 1.5D)),
        array(named_struct('a', id, 'b2', 'y', 'new', 7L)), map('k', null), 'p=2/%', 'again'
        FROM range(5, 8)"""
    )
    assert_same(spark, tmp_path / "t")


def test_widened_columns_are_the_values_that_were_written(spark: SparkSession, tmp_path: Path) -> None:
    table = f"delta.`{tmp_path / 't'}`"
    spark.sql(
        f"""CREATE TABLE {table} (b TINYINT, sh SMALLINT, i INT, f FLOAT, bd TINYINT, id INT, ld BIGINT,
        dd DECIMAL(5, 2), i2 INT, d DATE, s STRUCT<x: INT>, a ARRAY<SMALLINT>, m MAP<TINYINT, INT>)
        USING delta
        TBLPROPERTIES ('delta.enableTypeWidening' = 'true', 'delta.feature.timestampNtz' = 'supported')"""
    )
    insert = f"""INSERT INTO {table} VALUES
        (-128, -32768, -2147483648, 1.1, 7, 8, 9223372036854775807, -123.45, 5, DATE '1500-01-01',
         named_struct('x', 1), array(1S, null), map(1Y, 2)),
        (null, null, null, null, null, null, null, null, null, null, null, null, null)"""
    spark.sql(insert)
    for column, kind in (
        ("b", "BIGINT"), ("sh", "INT"), ("i", "BIGINT"), ("f", "DOUBLE"), ("bd", "DECIMAL(10, 0)"),
        ("id", "DECIMAL(12, 2)"), ("ld", "DECIMAL(20, 0)"), ("dd", "DECIMAL(20, 6)"), ("i2", "DOUBLE"),
        ("d", "TIMESTAMP_NTZ"), ("s.x", "BIGINT"), ("a.element", "INT"), ("m.key", "INT"),
        ("m.value", "BIGINT"),
    ):  # fmt: skip
        spark.sql(f"ALTER TABLE {table} ALTER COLUMN {column} TYPE {kind}")
    spark.sql(insert.replace("-128", "-1128").replace("-123.45", "-12345678901234.567891"))
    assert_same(spark, tmp_path / "t")
    assert ours(tmp_path / "t", ["f"], "f > 1.1").num_rows == 1  # what was a float is a little more


@pytest.mark.parametrize(
    ("kind", "legacy"),
    [
        ("INT96", "true"),
        ("TIMESTAMP_MILLIS", "false"),
        *(
            pytest.param(kind, legacy, marks=pytest.mark.long("each form of times by each of decimals"))
            for kind, legacy in (
                ("INT96", "false"),
                ("TIMESTAMP_MILLIS", "true"),
                ("TIMESTAMP_MICROS", "true"),
                ("TIMESTAMP_MICROS", "false"),
            )
        ),
    ],
)
def test_every_physical_form_of_times_and_decimals(
    spark: SparkSession, tmp_path: Path, kind: str, legacy: str
) -> None:
    settings = {
        "spark.sql.parquet.outputTimestampType": kind,
        "spark.sql.parquet.writeLegacyFormat": legacy,
        "spark.sql.session.timeZone": "UTC",
    }
    with configured(spark, settings):
        spark.sql(
            f"""CREATE TABLE delta.`{tmp_path / "t"}` USING delta AS SELECT
            make_timestamp(y, 1, 2, 3, 4, 5.678) AS t, CAST(y AS DECIMAL(5, 1)) AS d5,
            CAST(-y AS DECIMAL(18, 3)) AS d18, CAST(y AS DECIMAL(38, 10)) AS d38, make_date(y, 2, 3) AS day,
            array(make_timestamp(y, 1, 2, 3, 4, 5)) AS ts, map('k', CAST(y AS DECIMAL(9, 2))) AS m
            FROM VALUES (1), (1582), (1969), (1970), (2026), (9999), (null) AS v(y)"""
        )
        assert_same(spark, tmp_path / "t")


def test_text_kinds_void_and_odd_names(spark: SparkSession, tmp_path: Path) -> None:
    table = f"delta.`{tmp_path / 't'}`"
    spark.sql(
        f"""CREATE TABLE {table} (`a.b` INT, a STRUCT<b: INT, `c.d`: INT>, c CHAR(5), v VARCHAR(9),
        bin BINARY, n VOID, `%20 #?` STRING, day DATE, `p/%` STRING) USING delta PARTITIONED BY (day, `p/%`)
        TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"""
    )
    spark.sql(
        f"""INSERT INTO {table} (`a.b`, a, c, v, bin, `%20 #?`, day, `p/%`) VALUES
        (1, named_struct('b', 2, 'c.d', 3), 'x', 'y', X'00FF', 'z', DATE '2026-01-01', 'a b%/=:#?ü'),
        (4, null, null, null, null, null, null, null), (5, null, null, null, null, null, null, '')"""
    )
    found, expected = ours(tmp_path / "t"), theirs(spark, tmp_path / "t")
    assert found.column_names == expected.column_names
    assert counted(found.drop_columns(["n", "c"])) == counted(expected.drop_columns(["n", "c"]))
    assert found.column("n").null_count == 3
    # Spark pads what it reads of a CHAR; here it is as it was stored.
    assert {text and text.rstrip() for text in found.column("c").to_pylist()} == {"x", None}


def test_moved_rows_keep_their_ids_and_commit_versions(spark: SparkSession, tmp_path: Path) -> None:
    table = f"delta.`{tmp_path / 't'}`"
    spark.sql(
        f"""CREATE TABLE {table} (id BIGINT, v INT) USING delta
        TBLPROPERTIES ('delta.enableRowTracking' = 'true', 'delta.enableDeletionVectors' = 'false')"""
    )
    spark.sql(f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ id, 0 FROM range(10)")
    spark.sql(f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ id, 0 FROM range(10, 15)")
    spark.sql(f"UPDATE {table} SET v = 1 WHERE id % 3 = 0")
    spark.sql(f"OPTIMIZE {table}")
    expected = theirs(
        spark,
        tmp_path / "t",
        "id, v, _metadata.row_id AS _row_id, _metadata.row_commit_version AS _commit_version",
    )
    found = ours(tmp_path / "t", ["id", "v", "_row_id", "_commit_version"])
    assert counted(found) == counted(expected)
    assert len(set(found.column("_commit_version").to_pylist())) == 3
    assert any(name.startswith("_row-id-col") for name in stored_columns(tmp_path / "t"))


def test_a_shallow_clone_reads_the_files_of_its_source(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, clone = tmp_path / "s r%c", tmp_path / "clone"
    monkeypatch.setenv("DELTA_ALLOWED_ROOTS", str(source))
    spark.sql(
        f"""CREATE TABLE delta.`{source}` USING delta PARTITIONED BY (p)
        AS SELECT id, id % 2 AS p FROM range(9)"""
    )
    spark.sql(f"CREATE TABLE delta.`{clone}` SHALLOW CLONE delta.`{source}`")
    spark.sql(f"INSERT INTO delta.`{clone}` VALUES (100, 1)")
    spark.sql(f"DELETE FROM delta.`{clone}` WHERE id = 3")
    assert_same(spark, clone)
    paths = [file.path for file in ld.open(str(clone)).scan().files()]
    assert any("://" in path for path in paths) and any("://" not in path for path in paths)


def test_variants_are_the_same_json(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.sql.types import VariantVal

    spark.sql(
        f"""CREATE TABLE delta.`{tmp_path / "t"}` USING delta AS SELECT id,
        parse_json(j) AS v, array(parse_json(j)) AS l, named_struct('x', parse_json(j)) AS s
        FROM VALUES (1, '{{"a": [1, 2.5, "x", null]}}'), (2, '"text"'), (3, 'null'), (4, null) AS t(id, j)"""
    )

    def as_json(value: Any) -> str | None:
        return None if value is None else VariantVal(value["value"], value["metadata"]).toJson()

    expected = {
        row["id"]: row["j"] for row in theirs(spark, tmp_path / "t", "id, to_json(v) AS j").to_pylist()
    }
    found = ours(tmp_path / "t").to_pylist()
    assert {row["id"]: as_json(row["v"]) for row in found} == expected
    assert {row["id"]: as_json(row["l"][0]) for row in found} == expected
    assert {row["id"]: as_json(row["s"]["x"]) for row in found} == expected
