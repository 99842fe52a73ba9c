"""OPTIMIZE within periods and VACUUM with sidecars, on tables that Spark writes."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from click.testing import Result
from typer.testing import CliRunner

import lazydelta as ld
from lazydelta.cli.app import app
from lazydelta.errors import InvalidRequestError, TableNotFoundError
from lazydelta.sidecar import SidecarConfig
from lazydelta.spark.checkpoint import ensure_sidecar
from lazydelta.spark.maintenance import optimize, vacuum
from lazydelta.storage import LocalStorage
from lazydelta.upkeep.verify import verify_sidecar
from tests.support.sidecar_twin import manifest_of, part_files, referenced_files
from tests.support.table_builder import TableBuilder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
HOURS = ("2026020809", "2026020810", "2026020811")
DAY_SECONDS = 86_400


def telemetry(
    spark: SparkSession, folder: Path, *, batches: int = 3, time_column: str | None = "_event_hour"
) -> None:
    """Three hours, a small file of each in every batch."""
    name = f"delta.`{folder}`"
    settings = "" if time_column is None else f"tblproperties ('lazydelta.time.column' = '{time_column}')"
    spark.sql(
        f"create table {name} (id bigint, value double, hour string, _event_hour string) using delta "
        f"partitioned by (_event_hour) {settings}"
    )
    for batch in range(batches):
        insert(spark, folder, batch)


def insert(spark: SparkSession, folder: Path, batch: int) -> None:
    hours = ", ".join(f"'{hour}'" for hour in HOURS)
    spark.sql(
        f"insert into delta.`{folder}` select id * 100 + {batch}, id / 3, hour, hour "
        f"from range(0, 20, 1, 1) lateral view explode(array({hours})) as hour"
    )


def files_by_hour(table: Path) -> Counter[str | None]:
    """Live files of each hour; each one is read to see that it holds no other."""
    counts: Counter[str | None] = Counter()
    for file in ld.open(str(table)).scan().files():
        inside = set(pq.ParquetFile(table / file.path).read(["hour"]).column("hour").to_pylist())
        assert inside == {file.partition_values["_event_hour"]}
        counts[file.partition_values["_event_hour"]] += 1
    return counts


def test_optimize_compacts_within_hours_and_writes_checkpoint_and_sidecar(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = tmp_path / "table"
    telemetry(spark, table)
    assert files_by_hour(table) == dict.fromkeys(HOURS, 3)
    report = optimize(spark, str(table))
    assert files_by_hour(table) == dict.fromkeys(HOURS, 1)
    assert (report.files_added, report.files_removed, report.partitions_optimized) == (3, 9, 3)
    assert report.bytes_added > 0 < report.bytes_removed
    assert report.version == ld.open(str(table)).version == 4
    assert report.sidecar is not None
    assert report.sidecar.version == 4
    storage = LocalStorage(str(table), f"file://{table}")
    assert verify_sidecar(storage, config=SidecarConfig()).is_ok
    assert spark.read.format("delta").load(str(table)).count() == 180


def test_optimize_takes_only_the_periods_asked_for(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "table"
    telemetry(spark, table, batches=2)
    report = optimize(spark, str(table), where=f"_event_hour >= '{HOURS[1]}'")
    assert files_by_hour(table) == {HOURS[0]: 2, HOURS[1]: 1, HOURS[2]: 1}
    assert report.files_removed == 4


def test_optimize_with_nothing_to_compact_makes_no_commit(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "table"
    telemetry(spark, table, batches=1)
    report = optimize(spark, str(table))
    assert (report.files_added, report.files_removed, report.version, report.sidecar) == (0, 0, 1, None)


def test_optimize_leaves_files_of_the_target_size_alone(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "table"
    telemetry(spark, table, batches=2)
    assert optimize(spark, str(table), target_file_size=100).files_removed == 0


@pytest.mark.parametrize(
    ("time_column", "words"), [(None, "no property lazydelta.time.column"), ("hour", "not partitioned by")]
)
def test_optimize_refuses_a_table_whose_files_may_span_periods(
    spark: SparkSession, tmp_path: Path, time_column: str | None, words: str
) -> None:
    table = tmp_path / "table"
    telemetry(spark, table, batches=2, time_column=time_column)
    with pytest.raises(InvalidRequestError, match=words):
        optimize(spark, str(table))
    assert ld.open(str(table)).version == 2


def test_optimize_refuses_a_filter_on_other_columns_in_words(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "table"
    telemetry(spark, table, batches=1)
    with pytest.raises(ld.errors.LazyDeltaError, match="OPTIMIZE failed"):
        optimize(spark, str(table), where="value > 3")


def test_optimize_succeeds_loudly_where_the_sidecar_cannot_be_written(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = tmp_path / "table"
    telemetry(spark, table, batches=2)
    (table / "_delta_log" / "_lazy").write_text("in the way")
    report = optimize(spark, str(table))
    assert report.files_added == 3
    assert report.sidecar is None
    assert report.sidecar_error is not None
    assert "_lazy" in report.sidecar_error


@pytest.mark.parametrize("command", [optimize, vacuum])
def test_maintenance_of_no_table_says_so(spark: SparkSession, tmp_path: Path, command: object) -> None:
    assert callable(command)
    with pytest.raises(TableNotFoundError):
        command(spark, str(tmp_path / "nothing"))


# --- vacuum ----------------------------------------------------------------------


def grown_old(spark: SparkSession, table: Path, *, days: float = 30) -> None:
    """A compacted table with two sidecars; every file looks as old as that."""
    telemetry(spark, table, batches=2)
    config = SidecarConfig(row_group_rows=1, row_groups_max=1)
    ensure_sidecar(spark, str(table), checkpoint=True, config=config)
    optimize(spark, str(table), where=f"_event_hour = '{HOURS[0]}'", config=config)
    age(table, days)


def age(table: Path, days: float) -> None:
    """Turn every file's clock back; the newest sidecar stays a little younger than the first."""
    for path in table.rglob("*"):
        if path.is_file():
            moment = time.time() - days * DAY_SECONDS + int("v" + "0" * 19 + "3" in path.name)
            os.utime(path, (moment, moment))


def everything(table: Path) -> set[str]:
    return {str(path.relative_to(table)) for path in table.rglob("*") if path.is_file()}


def data_files(table: Path) -> set[str]:
    return {str(path.relative_to(table)) for path in table.glob("_event_hour=*/*.parquet")}


def live_files(table: Path) -> set[str]:
    return {file.path for file in ld.open(str(table)).scan().files()}


def test_a_dry_run_tells_what_would_go_and_deletes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "table"
    grown_old(spark, table)
    before = everything(table)
    report = vacuum(spark, str(table), retention_hours=0, force=True, dry_run=True)
    gone = {name.rpartition("/")[2] for name in report.files}
    assert gone == {name.rpartition("/")[2] for name in data_files(table) - live_files(table)}
    assert len(gone) == 2
    assert {removal.kind for removal in report.sidecars.removed} == {"manifest", "part"}
    assert everything(table) == before


def test_vacuum_deletes_dead_data_and_old_sidecars_but_no_part_that_is_referenced(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = tmp_path / "table"
    grown_old(spark, table)
    newest = manifest_of(table, 3)
    rows_before = spark.read.format("delta").load(str(table)).count()
    assert {part["build"] for part in newest["parts"]} - {newest["build"]}, (
        "parts of the first build are used"
    )
    report = vacuum(spark, str(table), retention_hours=0, force=True)
    assert report.files_deleted == 2
    assert data_files(table) == live_files(table)
    assert part_files(table) == referenced_files(newest)
    assert not (table / "_delta_log" / "_lazy" / f"v{2:020}.manifest.json").exists()
    storage = LocalStorage(str(table), f"file://{table}")
    assert verify_sidecar(storage, config=SidecarConfig(), version=3).is_ok
    assert spark.read.format("delta").load(str(table)).count() == rows_before


@pytest.mark.parametrize(("days", "retention_hours"), [(0, 168), (30, 24 * 40)])
def test_vacuum_keeps_what_is_within_the_retention(
    spark: SparkSession, tmp_path: Path, days: int, retention_hours: int
) -> None:
    table = tmp_path / "table"
    grown_old(spark, table, days=days)
    before = data_files(table)
    sidecars = part_files(table)
    report = vacuum(spark, str(table), retention_hours=retention_hours)
    assert (data_files(table), part_files(table)) == (before, sidecars)
    assert report.sidecars.removed == ()


def test_a_retention_below_deltas_safety_needs_force(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "table"
    telemetry(spark, table, batches=1)
    before = everything(table)
    with pytest.raises(InvalidRequestError, match="shorter than the table allows") as refused:
        vacuum(spark, str(table), retention_hours=1)
    assert "--force" in refused.value.fix
    assert everything(table) == before
    assert vacuum(spark, str(table), retention_hours=1, force=True, dry_run=True).files == ()


@pytest.mark.parametrize("hours", [-1, float("nan"), float("inf"), 1e300])
def test_a_retention_that_is_no_time_is_refused(spark: SparkSession, tmp_path: Path, hours: float) -> None:
    table = TableBuilder(tmp_path).commit(["a"])
    with pytest.raises(InvalidRequestError, match="hours"):
        vacuum(spark, str(table.path), retention_hours=hours)


# --- the commands ----------------------------------------------------------------


def test_both_commands_tell_what_they_did(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "table"
    telemetry(spark, table, batches=2)
    done = run("optimize", table, "--json")
    told = json.loads(done.stdout)
    assert (told["files_added"], told["files_removed"], told["sidecar"]["kind"]) == (3, 6, "full")
    assert "optimized: files added 3" in done.stderr
    done = run("vacuum", table, "--dry-run", "--retention-hours", "0", "--force")
    assert len(done.stdout.splitlines()) == 6
    done = run("vacuum", table, "--json")
    assert json.loads(done.stdout)["is_dry_run"] is False
    refused = run("vacuum", table, "--retention-hours", "0", expect=2)
    assert "error: a retention of 0 hours is shorter than the table allows" in refused.stderr


def run(*arguments: object, expect: int = 0) -> Result:
    """`lazydelta …` in this process: it takes the Spark session that is there."""
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == expect, done.stderr
    return done
