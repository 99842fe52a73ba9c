"""Deletion vectors that Delta on Spark wrote: lazydelta leaves out the rows that Spark leaves out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import lazydelta as ld
from lazydelta.protocol.actions import DeletionVector
from tests.support.spark_settings import configured

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

ROW_COUNT = 140_000  # of one file: three containers of 65,536 rows
# What the session of the tests switches off, because its tables are small.
FOR_MANY_ROWS = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
FEW_ROWS = 3_000
VECTORS = "'delta.enableDeletionVectors' = 'true'"

# What a DELETE's condition makes of the containers.
DELETIONS = {
    "few rows": "id % 50000 = 7",
    "scattered rows": "id % 3 = 0",
    "runs": "id % 1000 between 10 and 400",
    "one long run": "id between 60000 and 132000",
    "all but one": "id != 123456",
    "all kinds": "id < 100 or id between 65536 and 131071 or (id > 131071 and id % 2 = 1)",
}


def create(spark: SparkSession, folder: Path, properties: str = VECTORS, *, files: int = 1) -> str:
    """A table of a few numbered rows; its name for SQL."""
    name = f"delta.`{folder}`"
    spark.sql(f"create table {name} (id bigint, text string) using delta tblproperties ({properties})")
    rows = f"range(0, {FEW_ROWS}, 1, {files})"
    spark.sql(f"insert into {name} select id, concat('row ', id) from {rows}")
    return name


def assert_same_rows(spark: SparkSession, name: str, folder: Path, *more: str) -> None:
    columns = [*more, "id", "text"]
    order = [(column, "ascending") for column in columns[:-1]]
    expected = spark.table(name).select(*columns).toArrow().sort_by(order)
    found = ld.open(str(folder)).scan().to_arrow(columns).sort_by(order)
    assert found.num_rows == expected.num_rows
    assert all(found[column].to_pylist() == expected[column].to_pylist() for column in columns)


def vectors_of(folder: Path) -> list[DeletionVector]:
    files = ld.open(str(folder)).scan().files()
    return [file.deletion_vector for file in files if file.deletion_vector is not None]


def test_rows_that_spark_deleted_do_not_come_out(spark: SparkSession, tmp_path: Path) -> None:
    """One file and one vector for each kind of deletion, all in one commit."""
    name = f"delta.`{tmp_path / 't'}`"
    spark.sql(
        f"create table {name} (id bigint, text string, kind string) using delta partitioned by (kind) "
        f"tblproperties ({VECTORS})"
    )
    kinds = ", ".join(f"'{kind}'" for kind in DELETIONS)
    deleted = " or ".join(f"(kind = '{kind}' and ({rows}))" for kind, rows in DELETIONS.items())
    with configured(spark, FOR_MANY_ROWS):
        spark.sql(
            f"insert into {name} select id, concat('row ', id), kind from range(0, {ROW_COUNT}, 1, 1) "
            f"lateral view explode(array({kinds})) as kind"
        )
        assert len(list(ld.open(str(tmp_path / "t")).scan().files())) == len(DELETIONS)
        spark.sql(f"delete from {name} where {deleted}")
    assert len(vectors_of(tmp_path / "t")) == len(DELETIONS)
    assert_same_rows(spark, name, tmp_path / "t", "kind")


def test_deletions_updates_and_merges_after_one_another_come_out_as_in_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    name = create(spark, tmp_path / "t", files=3)
    spark.sql(f"delete from {name} where id % 7 = 0")
    spark.sql(f"update {name} set text = concat('row ', id) where id % 11 = 0")
    spark.sql(f"delete from {name} where id between 500 and 1500")
    spark.sql(
        f"merge into {name} as t using (select explode(sequence(1500, 1600, 2)) as id) as s on t.id = s.id "
        "when matched then delete"
    )
    assert len(vectors_of(tmp_path / "t")) >= 3
    assert_same_rows(spark, name, tmp_path / "t")


def test_vectors_below_a_random_prefix_are_found(spark: SparkSession, tmp_path: Path) -> None:
    properties = f"{VECTORS}, 'delta.randomizeFilePrefixes' = 'true', 'delta.randomPrefixLength' = '3'"
    name = create(spark, tmp_path / "t", properties)
    spark.sql(f"delete from {name} where id % 5 = 0")
    (vector,) = vectors_of(tmp_path / "t")
    assert len(vector.path_or_inline_dv) == 23
    assert_same_rows(spark, name, tmp_path / "t")


def test_a_shallow_clone_reads_the_vectors_of_its_source(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DELTA_ALLOWED_ROOTS", str(tmp_path / "with space"))
    source = create(spark, tmp_path / "with space", files=2)
    spark.sql(f"delete from {source} where id % 5 = 0")
    clone = f"delta.`{tmp_path / 'clone'}`"
    spark.sql(f"create table {clone} shallow clone {source}")
    assert {vector.storage_type for vector in vectors_of(tmp_path / "clone")} == {"p"}
    assert_same_rows(spark, clone, tmp_path / "clone")
    spark.sql(f"delete from {clone} where id < 900")  # new vectors of old files
    assert_same_rows(spark, clone, tmp_path / "clone")
    assert_same_rows(spark, source, tmp_path / "with space")
