"""`lazydelta optimize` and `lazydelta vacuum` on tables that Spark writes: within periods, sidecars too.

The commands run in this process and take the Spark session that is there.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import lazydelta as ld
from tests.support.sidecar_twin import manifest_of, part_files, referenced_files
from tests.support.spark import run_command

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
HOURS = ("2026020809", "2026020810", "2026020811")
DAY_SECONDS = 86_400
ONE_FILE_A_PART = "[sidecar]\nrow_group_rows = 1\nrow_groups_max = 1\n"


def two_batches(spark: SparkSession, folder: Path) -> None:
    """Three hours, a small file of each in every batch."""
    name = f"delta.`{folder}`"
    spark.sql(
        f"create table {name} (id bigint, value double, hour string, _event_hour string) using delta "
        "partitioned by (_event_hour) tblproperties ('lazydelta.time.column' = '_event_hour')"
    )
    hours = ", ".join(f"'{hour}'" for hour in HOURS)
    for batch in range(2):
        spark.sql(
            f"insert into {name} select id * 100 + {batch}, id / 3, hour, hour "
            f"from range(0, 20, 1, 1) lateral view explode(array({hours})) as hour"
        )


@pytest.fixture
def table(written: Callable[..., Path], tmp_path: Path) -> Path:
    """A copy of the table of two batches; its newest version is 2."""
    return shutil.copytree(written(two_batches), tmp_path / "table")


def report_of(command: str, table: Path, *flags: str) -> dict[str, Any]:
    """What the command says on a pipe."""
    report: dict[str, Any] = json.loads(run_command(command, table, *flags, "--json").stdout)
    return report


def files_by_hour(table: Path) -> Counter[str | None]:
    """Live files of each hour; each one is read to see that it holds no other."""
    counts: Counter[str | None] = Counter()
    for file in ld.open(str(table)).scan().files():
        inside = set(pq.ParquetFile(table / file.path).read(["hour"]).column("hour").to_pylist())
        assert inside == {file.partition_values["_event_hour"]}
        counts[file.partition_values["_event_hour"]] += 1
    return counts


def test_optimize_compacts_the_requested_periods_and_never_across_them(
    spark: SparkSession, table: Path
) -> None:
    assert files_by_hour(table) == dict.fromkeys(HOURS, 2)
    assert report_of("optimize", table, "--target-file-size", "100")["files_removed"] == 0
    later = report_of("optimize", table, "--where", f"_event_hour >= '{HOURS[1]}'", "--no-sidecar")
    assert files_by_hour(table) == {HOURS[0]: 2, HOURS[1]: 1, HOURS[2]: 1}
    assert (later["files_added"], later["files_removed"], later["partitions_optimized"]) == (2, 4, 2)
    assert later["bytes_added"] > 0 < later["bytes_removed"]
    assert (later["version"], later["sidecar"]) == (3, None)
    done = run_command("optimize", table)
    assert "compacted" in done.stdout and "2 files to 1" in done.stdout
    assert "optimized: files added 1" in done.stderr
    assert files_by_hour(table) == dict.fromkeys(HOURS, 1)
    assert manifest_of(table, 4)["num_files"] == 3
    run_command("sidecar", "verify", table)
    nothing = report_of("optimize", table)
    assert (nothing["files_added"], nothing["files_removed"], nothing["version"]) == (0, 0, 4)
    assert spark.read.format("delta").load(str(table)).count() == 120


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("unset tblproperties ('lazydelta.time.column')", "no property lazydelta.time.column"),
        ("set tblproperties ('lazydelta.time.column' = 'hour')", "not partitioned by"),
    ],
)
def test_optimize_refuses_a_table_whose_files_may_span_periods(
    spark: SparkSession, table: Path, change: str, words: str
) -> None:
    spark.sql(f"alter table delta.`{table}` {change}")
    assert words in run_command("optimize", table, expect=2).stderr
    assert ld.open(str(table)).version == 3


def test_optimize_refuses_a_filter_on_other_columns_in_words(spark: SparkSession, table: Path) -> None:
    assert "OPTIMIZE failed" in run_command("optimize", table, "--where", "value > 3", expect=2).stderr


def test_optimize_succeeds_with_a_warning_if_the_sidecar_cannot_be_written(
    spark: SparkSession, table: Path
) -> None:
    (table / "_delta_log" / "_lazy").write_text("in the way")
    done = run_command("optimize", table, "--json")
    report = json.loads(done.stdout)
    assert (report["files_added"], report["sidecar"]) == (3, None)
    assert "_lazy" in report["sidecar_error"]
    assert "warning: no sidecar was written" in done.stderr


@pytest.mark.parametrize("command", ["optimize", "vacuum"])
def test_maintenance_of_no_table_says_so(spark: SparkSession, tmp_path: Path, command: str) -> None:
    assert "no Delta table" in run_command(command, tmp_path / "nothing", expect=3).stderr


def age(table: Path, days: float) -> None:
    """Turn every file's clock back; the newest sidecar stays a little younger than the first."""
    for path in table.rglob("*"):
        if path.is_file():
            moment = time.time() - days * DAY_SECONDS + int("v" + "0" * 19 + "4" in path.name)
            os.utime(path, (moment, moment))


def everything(table: Path) -> set[str]:
    return {str(path.relative_to(table)) for path in table.rglob("*") if path.is_file()}


def data_files(table: Path) -> set[str]:
    return {str(path.relative_to(table)) for path in table.glob("_event_hour=*/*.parquet")}


def live_files(table: Path) -> set[str]:
    return {file.path for file in ld.open(str(table)).scan().files()}


def test_vacuum_deletes_what_is_dead_and_older_than_the_retention_and_no_part_that_is_referenced(
    spark: SparkSession, table: Path, tmp_path: Path
) -> None:
    settings = tmp_path / "settings.toml"
    settings.write_text(ONE_FILE_A_PART)
    for hour in HOURS[:2]:  # each with a checkpoint and a sidecar: versions 3 and 4
        run_command("optimize", table, "--where", f"_event_hour = '{hour}'", "--config", settings)
    newest, rows = manifest_of(table, 4), spark.read.format("delta").load(str(table)).count()
    assert {part["build"] for part in newest["parts"]} - {newest["build"]}, "parts of the first are used"
    before = everything(table)
    forced = ("--retention-hours", "0", "--force")

    refused = run_command("vacuum", table, "--retention-hours", "1", expect=2).stderr
    assert "shorter than the table allows" in refused and "--force" in refused
    for days, hours in ((0, 168), (30, 24 * 40)):
        age(table, days)
        kept = report_of("vacuum", table, "--retention-hours", str(hours))
        assert (kept["sidecars"]["removed"], kept["is_dry_run"]) == ([], False)
        assert everything(table) >= before
    left = everything(table)  # Delta logs its VACUUMs
    dry = run_command("vacuum", table, "--dry-run", *forced)
    names = {line.rpartition("/")[2] for line in dry.stdout.splitlines()}
    dead = {name.rpartition("/")[2] for name in data_files(table) - live_files(table)}
    assert len(dead) == 4
    assert dead < names and any(name.endswith(".manifest.json") for name in names - dead)
    assert everything(table) == left

    report = report_of("vacuum", table, *forced)
    assert report["files_deleted"] == 4
    assert data_files(table) == live_files(table)
    assert part_files(table) == referenced_files(newest)
    assert not (table / "_delta_log" / "_lazy" / f"v{3:020}.manifest.json").exists()
    run_command("sidecar", "verify", table, "--version", "4")
    assert spark.read.format("delta").load(str(table)).count() == rows


@pytest.mark.parametrize("hours", ["-1", "nan", "inf", "1e300"])
def test_a_retention_that_is_no_time_is_refused(spark: SparkSession, table: Path, hours: str) -> None:
    assert "hours" in run_command("vacuum", table, "--retention-hours", hours, expect=2).stderr
