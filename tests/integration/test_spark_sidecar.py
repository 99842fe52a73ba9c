"""The sidecar that a Spark job builds is the one that the local feeder builds, row by row."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lazydelta.errors import LazyDeltaError
from lazydelta.sidecar import SidecarConfig
from lazydelta.spark.checkpoint import ensure_sidecar
from lazydelta.storage import LocalStorage
from lazydelta.upkeep.build import BuildReport, build_sidecar
from tests.support.actions import absolute_dv, add, inline_dv, relative_dv, stats
from tests.support.checkpoint_writer import KINDS
from tests.support.sidecar_twin import (
    comparable,
    manifest_of,
    part_files,
    referenced_files,
    sidecar_rows,
)
from tests.support.spark import delta_log
from tests.support.table_builder import TableBuilder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
BY_SPARK = SidecarConfig(folder="_delta_log/_by_spark", row_group_rows=2, row_groups_max=2)
LOCALLY = msgspec.structs.replace(BY_SPARK, folder="_delta_log/_locally")
Events = list[tuple[str, dict[str, object]]]
variation = pytest.mark.long("one more layout of checkpoints and statistics; both feeders share its reader")


def build_both(
    spark: SparkSession, table: Path, *, by_spark: bool = True, **changes: Any
) -> tuple[BuildReport, BuildReport]:
    """The sidecar by both feeders, checked to be the same."""
    told: Events = []
    ours = ensure_sidecar(
        spark,
        str(table),
        config=msgspec.structs.replace(BY_SPARK, **changes),
        full=True,
        spark_files_min=0,
        progress=lambda event, /, **facts: told.append((event, facts)),
    )
    assert ours is not None
    assert by_spark == ("without_spark" not in dict(told)), told
    config = msgspec.structs.replace(LOCALLY, **changes)
    theirs = build_sidecar(
        LocalStorage(str(table), f"file://{table}"), config=config, version=ours.version, full=True
    )
    assert_same(table, ours.version)
    return ours, theirs


def assert_same(table: Path, version: int, *, is_tidy: bool = True) -> None:
    """Manifests say the same of the table, parts hold the same rows in the same types and order."""
    one, other = (manifest_of(table, version, config.folder) for config in (BY_SPARK, LOCALLY))
    for name in ("schema_hash", "num_files", "table_id", "order_column", "order_type", "binding", "metadata"):
        assert one[name] == other[name]
    first, second = (
        rows_in_order(table, manifest, config) for manifest, config in ((one, BY_SPARK), (other, LOCALLY))
    )
    assert first.schema.equals(second.schema, check_metadata=True)
    # As text: NaN equals itself there, and -0.0 does not equal 0.0.
    assert [repr(row) for row in first.to_pylist()] == [repr(row) for row in second.to_pylist()]
    assert (
        sidecar_rows(table, version, BY_SPARK.folder).keys()
        == sidecar_rows(table, version, LOCALLY.folder).keys()
    )
    left = part_files(table, BY_SPARK.folder) - referenced_files(one)
    assert not left or not is_tidy


def rows_in_order(table: Path, manifest: dict[str, Any], config: SidecarConfig) -> pa.Table:
    """The rows of all parts, one after the other; the halves of a split part side by side."""
    parts = []
    for part in manifest["parts"]:
        names = [part["file"], *([part["stats_file"]] if part.get("stats_file") else [])]
        halves = [pq.ParquetFile(table / config.folder / name).read() for name in names]
        fields = [field for half in halves for field in half.schema]
        columns = [column for half in halves for column in half.columns]
        parts.append(pa.Table.from_arrays(columns, schema=pa.schema(fields)))
    return pa.concat_tables(parts)


# --- tables that Spark writes ----------------------------------------------------

EVERY_TYPE = (
    "b boolean, i8 tinyint, i16 smallint, i32 int, i64 bigint, f float, d double, money decimal(10,2), "
    "huge decimal(38,10), day date, ts timestamp, wall timestamp_ntz, name string, raw binary, "
    "list array<int>, nested struct<a: int, deep: struct<s: string, `with.dot`: bigint>>, empty string, "
    "_event_hour string, region int"
)
ROW = (
    "id % 2 = 0, cast(id as tinyint), cast(id as smallint), cast(id as int), id * 3000000000, "
    "cast(id / 3 as float), id / 3, cast(id / 7 as decimal(10,2)), cast(id / 7 as decimal(38,10)), "
    "date'2026-02-08' + cast(id as int), timestamp'2026-02-08 10:00:00.123456' + make_dt_interval(0, id), "
    "timestamp_ntz'2026-02-08 10:00:00.123456', repeat(concat('sensor ü ', id, ' '), 9), "
    "cast('x' as binary), "
    "array(1), named_struct('a', cast(id as int), 'deep', named_struct('s', 'x', 'with.dot', id)), "
    "cast(null as string)"
)


def every_type(spark: SparkSession, folder: Path, properties: str = "'delta.appendOnly' = 'false'") -> None:
    name = f"delta.`{folder}`"
    spark.sql(
        f"create table {name} ({EVERY_TYPE}) using delta partitioned by (_event_hour, region) "
        f"tblproperties ({properties})"
    )
    hours = [("2026020810", 1), ("2026020811", 2), ("2026020809", 1)]
    rows = [f"select {ROW}, '{hour}', {region} from range(0, 8, 1, 2)" for hour, region in hours]
    odd = (
        "select true, 1, 1, 1, 1, double('nan'), double('-inf'), 1, 1, date'0001-01-01', "
        "timestamp'9999-12-31 23:59:59.999999', timestamp_ntz'0001-01-01 00:00:00', '', null, null, "
        "null, null, null, null"
    )
    spark.sql(f"insert into {name} {' union all '.join([*rows, odd])}")


def deletion_vectors(spark: SparkSession, folder: Path) -> None:
    every_type(spark, folder, "'delta.enableDeletionVectors' = 'true', 'delta.enableRowTracking' = 'true'")
    spark.sql(f"delete from delta.`{folder}` where i32 = 3")


def column_mapping(spark: SparkSession, folder: Path) -> None:
    every_type(spark, folder, "'delta.columnMapping.mode' = 'name'")
    spark.sql(f"alter table delta.`{folder}` rename column money to cash")
    spark.sql(f"alter table delta.`{folder}` rename column _event_hour to `the hour`")
    spark.sql(f"alter table delta.`{folder}` drop column f")
    spark.sql(f"alter table delta.`{folder}` add column (fresh int)")


def typed_statistics_alone(spark: SparkSession, folder: Path) -> None:
    every_type(
        spark,
        folder,
        "'delta.checkpoint.writeStatsAsJson' = 'false', 'delta.checkpoint.writeStatsAsStruct' = 'true'",
    )


def json_statistics_alone(spark: SparkSession, folder: Path) -> None:
    every_type(
        spark,
        folder,
        "'delta.checkpoint.writeStatsAsJson' = 'true', 'delta.checkpoint.writeStatsAsStruct' = 'false'",
    )


def no_statistics(spark: SparkSession, folder: Path) -> None:
    every_type(spark, folder, "'delta.dataSkippingNumIndexedCols' = '0'")


def v2_by_json(spark: SparkSession, folder: Path) -> None:
    v2_checkpoint(spark, folder, "json")


def v2_by_parquet(spark: SparkSession, folder: Path) -> None:
    v2_checkpoint(spark, folder, "parquet")


def v2_checkpoint(spark: SparkSession, folder: Path, form: str) -> None:
    spark.conf.set("spark.databricks.delta.checkpoint.partSize", "3")
    spark.conf.set("spark.databricks.delta.checkpointV2.topLevelFileFormat", form)
    try:
        every_type(spark, folder, "'delta.checkpointPolicy' = 'v2'")
        delta_log(spark, folder).checkpoint()
    finally:
        spark.conf.unset("spark.databricks.delta.checkpoint.partSize")
        spark.conf.unset("spark.databricks.delta.checkpointV2.topLevelFileFormat")


def several_parts(spark: SparkSession, folder: Path) -> None:
    spark.conf.set("spark.databricks.delta.checkpoint.partSize", "2")
    try:
        every_type(spark, folder)
        delta_log(spark, folder).checkpoint()
    finally:
        spark.conf.unset("spark.databricks.delta.checkpoint.partSize")
    assert len(list((folder / "_delta_log").glob("*.checkpoint.*.parquet"))) > 1


def clustered(spark: SparkSession, folder: Path) -> None:
    name = f"delta.`{folder}`"
    spark.sql(f"create table {name} (device string, n bigint) using delta cluster by (device)")
    for first in (0, 10, 20):
        spark.sql(f"insert into {name} select concat('d', id), id from range({first}, {first + 10}, 1, 2)")
    spark.sql(f"optimize {name}")
    spark.sql(f"insert into {name} values ('z', 1)")


@pytest.mark.parametrize(
    "write",
    [
        deletion_vectors,
        column_mapping,
        v2_by_parquet,
        *(
            pytest.param(write, marks=variation)
            for write in (
                every_type,
                typed_statistics_alone,
                json_statistics_alone,
                no_statistics,
                v2_by_json,
                several_parts,
                clustered,
            )
        ),
    ],
    ids=lambda write: write.__name__,
)
def test_what_spark_wrote_gets_the_same_sidecar_from_both_feeders(
    spark: SparkSession, tmp_path: Path, write: Callable[[SparkSession, Path], None]
) -> None:
    table = tmp_path / "a [table] {of} 100%"
    write(spark, table)
    ensure_sidecar(spark, str(table), checkpoint=True, config=SidecarConfig(folder="_delta_log/_other"))
    build_both(spark, table)


# --- tables that the builder writes ----------------------------------------------


def odd_files(folder: Path, *, odd_day: str | None = None) -> TableBuilder:
    """Every kind of deletion vector, tags, odd paths and partition values, files without statistics."""
    table = TableBuilder(folder, partition_columns=("date",))
    bounds = [
        stats(
            low={"value": number / 3, "count": number},
            high={"value": 9.5, "count": 9},
            nulls={"value": number},
        )
        for number in range(6)
    ]
    days = ["2026-02-08", "2026-02-07", None, "", odd_day, "2026-02-09"]
    files = [
        add(
            f"date={day}/f%20{n}.parquet",
            partition={"date": day},
            stats=bounds[n],
            tags={"n": str(n)} if n % 2 else None,
        )
        for n, day in enumerate(days)
    ]
    more = [
        add("plain.parquet", partition={"date": "2026-02-08"}),
        add("tagged.parquet", partition={"date": "2026-02-08"}, tags={}),
        add("inline.parquet", partition={"date": "2026-02-01"}, deletion_vector=inline_dv()),
        add("relative.parquet", partition={"date": "2026-02-02"}, deletion_vector=relative_dv()),
        add(
            "file:///elsewhere/absolute.parquet",
            partition={"date": "2026-02-03"},
            deletion_vector=absolute_dv("file:///elsewhere/vector.bin", offset=7),
            stats="{broken",
        ),
    ]
    return table.commit(files).commit(more)


@pytest.mark.parametrize(
    ("kind", "form"),
    [
        ("v1-multipart", "both"),
        ("v1", "none"),
        ("v2-parquet", "json"),
        *(
            pytest.param(kind, form, marks=variation)
            for kind, form in (
                *((kind, "both") for kind in KINDS if kind != "v1-multipart"),
                ("v1", "json"),
                ("v1", "parsed"),
            )
        ),
    ],
)
def test_what_other_writers_wrote_gets_the_same_sidecar_from_both_feeders(
    spark: SparkSession, tmp_path: Path, kind: str, form: str
) -> None:
    # A checkpoint with typed columns cannot hold what is no date.
    odd_day = "no date" if form in ("json", "none") else None
    table = odd_files(tmp_path, odd_day=odd_day).checkpoint(kind, stats=form, row_group_rows=3)
    ours, _ = build_both(spark, table.path)
    assert ours.kind == "full"
    assert ours.parts_written > 2


@pytest.mark.parametrize(
    ("column", "form"),
    [
        ("count", "parsed"),
        ("ts", "json"),
        *(
            pytest.param(column, form, marks=pytest.mark.long("each type by each form of statistics"))
            for column, form in (
                ("count", "json"),
                ("ts", "parsed"),
                *((column, form) for column in ("value", "device_id") for form in ("json", "parsed")),
            )
        ),
    ],
)
def test_rows_are_sorted_by_the_statistics_of_a_column_that_is_no_partition(
    spark: SparkSession, tmp_path: Path, form: str, column: str
) -> None:
    lows = [
        {"count": n, "value": n / 7, "ts": f"2026-02-08T10:00:0{n}.123Z", "device_id": f"d {n} '"}
        for n in (5, 3, 9, 1, 1)
    ]
    files = [add(f"f{n}", stats=stats(low=low, high=low)) for n, low in enumerate(lows)]
    table = TableBuilder(tmp_path).commit([*files, "without statistics"]).checkpoint(stats=form)
    build_both(spark, table.path, time_column=column)
    assert manifest_of(table.path, 0, BY_SPARK.folder)["order_column"] == f"min.{column}"


def test_an_order_that_spark_reads_otherwise_is_left_to_the_local_feeder(
    spark: SparkSession, tmp_path: Path
) -> None:
    days = ["2026-2-9", "2026-02-08", "2026-02-10", " 2026-02-11 "]  # Spark casts them all, we do not
    files = [add(f"f{n}", partition={"date": day}) for n, day in enumerate(days)]
    table = TableBuilder(tmp_path, partition_columns=("date",)).commit(files).checkpoint()
    build_both(spark, table.path, by_spark=False)


def test_an_empty_table_has_a_sidecar_without_parts(spark: SparkSession, tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit([]).checkpoint()
    ours = ensure_sidecar(spark, str(table.path), config=BY_SPARK, spark_files_min=0)
    assert ours is not None
    assert (ours.kind, ours.parts_total, ours.num_files) == ("full", 0, 0)


def test_a_table_without_a_checkpoint_is_left_as_it_is(spark: SparkSession, tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit(["a"])
    assert ensure_sidecar(spark, str(table.path)) is None
    assert not (table.path / "_delta_log" / "_lazy").exists()


def test_a_sidecar_that_is_there_is_not_built_again(spark: SparkSession, tmp_path: Path) -> None:
    table = odd_files(tmp_path).checkpoint()
    first = ensure_sidecar(spark, str(table.path), spark_files_min=0)
    again = ensure_sidecar(spark, str(table.path), spark_files_min=0)
    assert first is not None
    assert again is not None
    assert (first.kind, again.kind) == ("full", "present")
    assert again.build == first.build


def test_the_next_sidecar_is_built_upon_the_last_one(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "table"
    config = msgspec.structs.replace(BY_SPARK, folder="_delta_log/_upkept")
    every_type(spark, table)
    first = ensure_sidecar(spark, str(table), checkpoint=True, config=config, spark_files_min=0)
    spark.sql(f"alter table delta.`{table}` add column (fresh int)")
    spark.sql(f"insert into delta.`{table}` select {ROW}, '2026020812', 3, id from range(0, 8, 1, 2)")
    second = ensure_sidecar(spark, str(table), checkpoint=True, config=config, spark_files_min=0)
    assert first is not None
    assert second is not None
    assert (first.kind, second.kind) == ("full", "incremental")
    assert second.parts_referenced
    build_both(spark, table)
    upkept, anew = (
        sidecar_rows(table, second.version, folder) for folder in (config.folder, BY_SPARK.folder)
    )
    assert comparable(upkept) == comparable(anew)


def test_delta_files_are_written_once_enough_commits_have_gathered(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = TableBuilder(tmp_path).commit(["a"]).checkpoint()
    config = msgspec.structs.replace(BY_SPARK, delta_commits_min=3)
    for name in ("b", "c", "d"):
        assert not list((table.path / BY_SPARK.folder).glob("*.delta.parquet"))
        table.commit([name])
        ensure_sidecar(spark, str(table.path), config=config)
    assert len(list((table.path / BY_SPARK.folder).glob("*.delta.parquet"))) == 1


def test_a_folder_that_cannot_be_written_is_an_error_in_words(spark: SparkSession, tmp_path: Path) -> None:
    table = odd_files(tmp_path).checkpoint()
    (table.path / "_delta_log" / "_lazy").write_text("in the way")
    with pytest.raises(LazyDeltaError) as refused:
        ensure_sidecar(spark, str(table.path), spark_files_min=0)
    assert "_lazy" in str(refused.value)
    assert "Traceback" not in str(refused.value)
