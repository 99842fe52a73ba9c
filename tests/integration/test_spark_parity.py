"""Delta on Spark and lazydelta see the same files, whoever wrote the table.

Histories that Spark really writes are read by lazydelta at every version; logs that the builder writes are
read by Spark. Spark's answer is its own snapshot's `allFiles`, so that deletion vectors count too.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import lazydelta as ld
from tests.support.actions import absolute_dv, add, inline_dv, relative_dv, remove, stats
from tests.support.checkpoint_writer import KINDS
from tests.support.eager_twin import replay
from tests.support.keys import FileKey, canonical_path, dv_id
from tests.support.reading import STRATEGIES, live_keys
from tests.support.spark import delta_log
from tests.support.table_builder import TableBuilder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
Sql = Callable[[str], Any]
COLUMNS = "device_id string, ts timestamp, value double, `count` bigint, date date"


def history(
    spark: SparkSession, folder: Path, properties: str = "", partitioned: str = "partitioned by (date)"
) -> Sql:
    """An empty table at `folder` and a function that runs SQL on it, written as `{t}`."""
    name = f"delta.`{folder}`"
    settings = f"tblproperties ({properties})" if properties else ""
    spark.sql(f"create table {name} ({COLUMNS}) using delta {partitioned} {settings}")
    return lambda text: spark.sql(text.replace("{t}", name))


def insert(sql: Sql, rows: int, day: int = 8, first: int = 0) -> None:
    """One append of numbered rows on one day."""
    sql(
        f"insert into {{t}} select concat('sensor-', id), timestamp'2026-02-0{day} 10:00:00' + "
        f"make_interval(0, 0, 0, 0, 0, 0, id), id * 1.5, id, date'2026-02-0{day}' "
        f"from range({first}, {first + rows}, 1, 1)"
    )


def append(spark: SparkSession, folder: Path) -> None:
    sql = history(spark, folder)
    for day in range(1, 6):
        insert(sql, 10, day)


def delete_with_vectors(spark: SparkSession, folder: Path) -> None:
    sql = history(spark, folder, "'delta.enableDeletionVectors' = 'true'")
    insert(sql, 100, 7)
    insert(sql, 100, 8)
    sql("delete from {t} where count = 5")
    sql("delete from {t} where count = 6")
    checkpoint(spark, folder)
    sql("delete from {t} where count = 7 and date = '2026-02-08'")
    sql("delete from {t} where date = '2026-02-07'")


def update_and_merge(spark: SparkSession, folder: Path) -> None:
    sql = history(spark, folder, "'delta.enableDeletionVectors' = 'true', 'delta.enableRowTracking' = 'true'")
    insert(sql, 50)
    sql("update {t} set value = -1 where count % 7 = 0")
    sql(
        "merge into {t} using (select id + 40 as id from range(20)) s on {t}.count = s.id "
        "when matched then update set value = 0 "
        "when not matched then insert (device_id, count, date) values ('new', s.id, date'2026-02-09')"
    )


def optimize_and_overwrite(spark: SparkSession, folder: Path) -> None:
    sql = history(spark, folder)
    for first in range(4):
        insert(sql, 5, 8, first * 5)
    sql("optimize {t}")
    sql("insert overwrite {t} select * from {t} where count < 10")
    insert(sql, 3, 9)


def rename_and_drop_columns(spark: SparkSession, folder: Path) -> None:
    sql = history(spark, folder, "'delta.columnMapping.mode' = 'name'")
    insert(sql, 10)
    sql("alter table {t} rename column value to reading")
    sql("alter table {t} rename column date to day")
    sql("alter table {t} drop column device_id")
    checkpoint(spark, folder)
    sql("insert into {t} select timestamp'2026-02-09 00:00:00', 1.0, 77, date'2026-02-09'")


def v2_checkpoints(spark: SparkSession, folder: Path) -> None:
    sql = history(spark, folder, "'delta.checkpointPolicy' = 'v2', 'delta.checkpointInterval' = '2'")
    with settings(spark, {"spark.databricks.delta.checkpoint.partSize": "3"}):
        for number, form in enumerate(["json", "json", "parquet", "parquet"]):
            with settings(spark, {"spark.databricks.delta.checkpointV2.topLevelFileFormat": form}):
                insert(sql, 4, 1 + number)


def multi_part_checkpoints(spark: SparkSession, folder: Path) -> None:
    sql = history(spark, folder, "'delta.checkpointInterval' = '3'")
    with settings(spark, {"spark.databricks.delta.checkpoint.partSize": "2"}):
        for day in range(1, 8):
            insert(sql, 4, day)


def widen_types(spark: SparkSession, folder: Path) -> None:
    name = f"delta.`{folder}`"
    spark.sql(
        f"create table {name} (small smallint, f float, date date) using delta "
        "tblproperties ('delta.enableTypeWidening' = 'true')"
    )
    spark.sql(f"insert into {name} values (1, 0.1, date'2026-02-08')")
    spark.sql(f"alter table {name} alter column small type bigint")
    spark.sql(f"alter table {name} alter column f type double")
    spark.sql(f"insert into {name} values (5000000000, 0.1, date'2026-02-09')")
    checkpoint(spark, folder)


def restore(spark: SparkSession, folder: Path) -> None:
    sql = history(spark, folder)
    insert(sql, 5, 1)
    insert(sql, 5, 2)
    sql("delete from {t} where date = '2026-02-01'")
    sql("restore table {t} to version as of 2")
    insert(sql, 5, 3)


def cluster(spark: SparkSession, folder: Path) -> None:
    sql = history(spark, folder, partitioned="cluster by (device_id, count)")
    for first in range(3):
        insert(sql, 20, 8, first * 20)
    sql("optimize {t}")


def odd_partition_values(spark: SparkSession, folder: Path) -> None:
    name = f"delta.`{folder}`"
    spark.sql(f"create table {name} (id bigint, region string) using delta partitioned by (region)")
    values = ["plain", "with space", "100%", "a/b=c", "ünïcode", "d''or", "", "__x__", "%20"]
    rows = ", ".join(f"({number}, '{value}')" for number, value in enumerate(values))
    spark.sql(f"insert into {name} values {rows}, (99, null)")
    spark.sql(f"delete from {name} where region = 'a/b=c'")
    checkpoint(spark, folder)
    spark.sql(f"delete from {name} where region = 'with space'")
    spark.sql(f"insert into {name} values (100, '100%')")


def in_commit_timestamps(spark: SparkSession, folder: Path) -> None:
    sql = history(spark, folder)
    insert(sql, 5, 1)
    sql("alter table {t} set tblproperties ('delta.enableInCommitTimestamps' = 'true')")
    insert(sql, 5, 2)
    sql("alter table {t} set tblproperties ('delta.enableChangeDataFeed' = 'true')")
    sql("update {t} set value = 0 where count = 1")


another = pytest.mark.long("one more history that Spark writes; the golden tables have its like")
WRITTEN_BY_SPARK = [
    delete_with_vectors,
    update_and_merge,
    rename_and_drop_columns,
    v2_checkpoints,
    widen_types,
    odd_partition_values,
    *(
        pytest.param(write, marks=another)
        for write in (
            append,
            optimize_and_overwrite,
            multi_part_checkpoints,
            restore,
            cluster,
            in_commit_timestamps,
        )
    ),
]


@pytest.mark.parametrize("write", WRITTEN_BY_SPARK, ids=lambda write: write.__name__)
def test_what_spark_wrote_has_the_same_files_at_every_version(
    spark: SparkSession, written: Callable[..., Path], write: Callable[[SparkSession, Path], None]
) -> None:
    table = written(write)
    newest = ld.open(str(table)).version
    assert newest == delta_log(spark, table).update(False, none(spark), none(spark)).version()
    for version in range(newest + 1):
        truth = set(replay(table, version=version).live)
        for strategy in STRATEGIES:
            assert live_keys(table, version=version, strategy=strategy) == truth
    assert live_keys(table) == spark_keys(spark, table)


@pytest.mark.parametrize(
    ("kind", "form"), [*((kind, "both") for kind in KINDS), ("v1", "json"), ("v2-json", "parsed")]
)
def test_what_the_builder_wrote_has_the_same_files_in_spark(
    spark: SparkSession, tmp_path: Path, kind: str, form: str
) -> None:
    table = builder_table(tmp_path / "a table").checkpoint(kind, stats=form, row_group_rows=3)
    table.commit(["after.parquet"], ["d.parquet"])
    assert spark_keys(spark, table.path) == table.live()
    assert live_keys(table.path) == table.live()


def test_a_re_add_without_a_remove_and_blind_removes_are_the_same_to_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = TableBuilder(tmp_path).commit([add("a", size=1), "b"]).checkpoint()
    table.commit([add("a", size=2)]).commit(removes=["never-there", "b"]).commit([add("a", size=3), "c"])
    assert spark_keys(spark, table.path) == table.live() == live_keys(table.path)


def test_column_mapping_and_row_tracking_by_the_builder_are_the_same_to_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = TableBuilder(tmp_path, column_mapping="name", row_tracking=True, in_commit_timestamps=True)
    bounds = {"value": 1.0, "count": 3}
    table.commit([add("a", stats=stats(low=bounds, high=bounds))]).commit(["b"]).checkpoint(stats="both")
    table.commit(["c"], ["b"])
    assert spark_keys(spark, table.path) == table.live() == live_keys(table.path)


@pytest.mark.parametrize("kind", ["v1", "v2-parquet"])
def test_the_builders_checkpoints_have_the_columns_of_sparks(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    policy = "v2" if kind.startswith("v2") else "classic"
    properties = f"'delta.checkpointPolicy' = '{policy}', 'delta.enableDeletionVectors' = 'true'"
    # The pipeline's session writes timestamps as microseconds; Spark by itself as INT96.
    by_itself = {
        "spark.databricks.delta.checkpointV2.topLevelFileFormat": "parquet",
        "spark.sql.parquet.outputTimestampType": "INT96",
    }
    with settings(spark, by_itself):
        sql = history(spark, tmp_path / "spark", properties)
        insert(sql, 5)
        checkpoint(spark, tmp_path / "spark")
    ours = TableBuilder(tmp_path / "ours").commit([add("a", stats=stats())])
    ours.checkpoint(kind, stats="both", sidecars=1)
    # Spark's V2 top-level file has columns for what is to come; the files are in its sidecars.
    pattern = "*.checkpoint.parquet" if kind == "v1" else "_sidecars/*.parquet"
    assert leaf_columns(ours.log, pattern) == leaf_columns(tmp_path / "spark" / "_delta_log", pattern)


def builder_table(folder: Path) -> TableBuilder:
    """Odd paths, every kind of deletion vector, removes, re-adds."""
    inside = "file://" + str(folder / "inside.parquet").replace(" ", "%20")
    table = TableBuilder(folder).commit(
        [
            add("a.parquet", stats=stats(low={"value": 1.0, "count": 1}, high={"value": 2.5, "count": 9})),
            "with%20space.parquet",
            "100%2525.parquet",
            "d.parquet",
            "gone.parquet",
            add("file:///elsewhere/abs%20olute.parquet"),
            add("inline.parquet", deletion_vector=inline_dv()),
        ]
    )
    table.commit([add("a.parquet", deletion_vector=relative_dv())], ["a.parquet"])
    table.commit(["e.parquet"], ["gone.parquet", "file:/elsewhere/abs%20olute.parquet"])
    moved = absolute_dv("file:///elsewhere/vector.bin", offset=7)
    table.commit(
        [add("a.parquet", deletion_vector=moved)], [remove("a.parquet", deletion_vector=relative_dv())]
    )
    return table.commit([add(inside)], extra_actions=[{"somethingNew": {"x": 1}}])


def spark_keys(spark: SparkSession, table: Path) -> set[FileKey]:
    """The live files by Delta's own snapshot."""
    snapshot = delta_log(spark, table).update(False, none(spark), none(spark))
    rows = [json.loads(text) for text in snapshot.allFiles().toJSON().collectAsList()]
    return {(canonical_path(row["path"], table), dv_id(row.get("deletionVector"))) for row in rows}


def checkpoint(spark: SparkSession, table: Path) -> None:
    """Force a checkpoint."""
    delta_log(spark, table).checkpoint()


def none(spark: SparkSession) -> Any:
    """Scala's None."""
    jvm: Any = spark._jvm
    return jvm.scala.Option.empty()


class settings:  # noqa: N801  used like a function
    """Session settings for the length of a `with`."""

    def __init__(self, spark: SparkSession, values: dict[str, str]) -> None:
        self._spark, self._values = spark, values

    def __enter__(self) -> None:
        for name, value in self._values.items():
            self._spark.conf.set(name, value)

    def __exit__(self, *_: object) -> None:
        for name in self._values:
            self._spark.conf.unset(name)


def leaf_columns(log: Path, pattern: str) -> dict[str, str]:
    """Every leaf of a Parquet file with its physical type."""
    schema = pq.ParquetFile(next(log.glob(pattern))).schema
    return {schema.column(at).path: schema.column(at).physical_type for at in range(len(schema.names))}
