"""Sidecars among others: readers that know nothing of them, Delta's own cleaning, builders at once."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import pytest

import lazydelta as ld
from bench.environments import python_of
from lazydelta.sidecar import SidecarConfig
from lazydelta.spark.checkpoint import ensure_sidecar
from lazydelta.storage import LocalStorage
from lazydelta.upkeep.build import BuildReport, build_sidecar
from lazydelta.upkeep.verify import verify_sidecar
from tests.support.actions import add
from tests.support.sidecar_twin import manifest_of, part_files, referenced_files
from tests.support.spark import delta_log
from tests.support.table_builder import TableBuilder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
SMALL = SidecarConfig(row_group_rows=2, row_groups_max=2, delta_commits_min=2)
DAY_SECONDS = 86_400
DUCKDB = """
import pathlib, sys, duckdb, duckdb_extension_delta
folder = pathlib.Path(duckdb_extension_delta.__file__).parent / "extensions" / f"v{duckdb.__version__}"
connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
connection.execute(f"LOAD '{folder / 'delta.duckdb_extension'}'")
print(connection.execute(f"SELECT count(*), sum(id) FROM delta_scan('{sys.argv[1]}')").fetchall()[0])
"""


def telemetry(spark: SparkSession, table: Path, *, policy: str = "classic", commits: int = 4) -> None:
    name = f"delta.`{table}`"
    spark.sql(
        f"create table {name} (id bigint, _event_hour string) using delta partitioned by (_event_hour) "
        f"tblproperties ('delta.checkpointPolicy' = '{policy}')"
    )
    for hour in range(commits):
        ids = f"range({hour * 10}, {hour * 10 + 10}, 1, 2)"
        spark.sql(f"insert into {name} select id, '20260208{hour:02}' from {ids}")


def lazy_files(table: Path) -> dict[str, int]:
    """What lies in the sidecar's folder, with sizes, but for what killed writers left."""
    folder = table / "_delta_log" / "_lazy"
    return {path.name: path.stat().st_size for path in folder.iterdir() if path.suffix != ".tmp"}


def build(table: Path) -> BuildReport:
    return build_sidecar(LocalStorage(str(table), f"file://{table}"), config=SMALL)


def is_verified(table: Path, version: int | None = None) -> bool:
    storage = LocalStorage(str(table), f"file://{table}")
    return verify_sidecar(storage, config=SMALL, version=version).is_ok


# --- readers ---------------------------------------------------------------------


def test_readers_that_know_no_sidecars_read_the_table_as_before(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "table"
    telemetry(spark, table)
    before = {name: read(spark, table) for name, read in READERS.items()}
    ensure_sidecar(spark, str(table), checkpoint=True, config=SMALL)
    spark.sql(f"insert into delta.`{table}` values (1000, '2026020805')")
    spark.sql(f"insert into delta.`{table}` values (2000, '2026020805')")
    ensure_sidecar(spark, str(table), config=SMALL)
    assert {name.rpartition(".")[2] for name in lazy_files(table)} == {"json", "parquet"}
    assert any(".delta." in name for name in lazy_files(table))
    delta_log(spark, table)  # forgets what it knew
    rows, total = before["spark"]
    assert set(before.values()) == {(rows, total)} == {(40, 780)}
    assert {name: read(spark, table) for name, read in READERS.items()} == dict.fromkeys(READERS, (42, 3780))
    assert ld.open(str(table)).info().checkpoint_version == 4


def by_spark(spark: SparkSession, table: Path) -> tuple[int, int]:
    (row,) = spark.sql(f"select count(*), sum(id) from delta.`{table}`").collect()
    return tuple(row)


def by_delta_rs(_: SparkSession, table: Path) -> tuple[int, int]:
    ids = deltalake.DeltaTable(str(table)).to_pyarrow_table().column("id").to_pylist()
    return len(ids), sum(ids)


def by_duckdb(_: SparkSession, table: Path) -> tuple[int, int]:
    command = [str(python_of("duckdb")), "-c", DUCKDB, str(table)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    count, total = done.stdout.strip(" ()\n").split(", ")
    return int(count), int(total)


READERS = {"spark": by_spark, "delta-rs": by_delta_rs, "duckdb": by_duckdb}


# --- cleaning --------------------------------------------------------------------


@pytest.mark.parametrize(
    "policy", ["v2", pytest.param("classic", marks=pytest.mark.long("the same cleanup without V2 sidecars"))]
)
def test_deltas_log_cleanup_leaves_sidecars_alone(spark: SparkSession, tmp_path: Path, policy: str) -> None:
    table = tmp_path / "table"
    telemetry(spark, table, policy=policy)
    ensure_sidecar(spark, str(table), checkpoint=True, config=SMALL)
    spark.sql(f"insert into delta.`{table}` values (1000, '2026020805')")
    ensure_sidecar(spark, str(table), checkpoint=True, config=SMALL)
    stranger = table / "_delta_log" / "_sidecars" / "stranger.parquet"
    if policy == "v2":
        stranger.write_bytes(b"of nobody")
    make_old(table, days=90)
    spark.sql(f"insert into delta.`{table}` values (2000, '2026020806')")
    delta_log(spark, table).checkpoint()
    before = lazy_files(table)
    clean_log(spark, table)
    assert not (table / "_delta_log" / f"{0:020}.json").exists(), "the log was cleaned up"
    assert not stranger.exists()
    assert lazy_files(table) == before
    report = ensure_sidecar(spark, str(table), config=SMALL)
    assert report is not None
    assert report.version == 6
    assert is_verified(table)


@pytest.mark.long("the command `vacuum` runs Delta's and is covered by test_maintenance.py")
def test_deltas_vacuum_leaves_sidecars_alone(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "table"
    telemetry(spark, table)
    spark.sql(f"optimize delta.`{table}`")
    ensure_sidecar(spark, str(table), checkpoint=True, config=SMALL)
    make_old(table, days=90)
    before = lazy_files(table)
    data = len(list(table.glob("_event_hour=*/*.parquet")))
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    try:
        spark.sql(f"vacuum delta.`{table}` retain 0 hours")
    finally:
        spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
    assert len(list(table.glob("_event_hour=*/*.parquet"))) < data, "the table was vacuumed"
    assert lazy_files(table) == before
    assert is_verified(table)


def make_old(table: Path, *, days: int) -> None:
    moment = time.time() - days * DAY_SECONDS
    for path in table.rglob("*"):
        if path.is_file():
            os.utime(path, (moment, moment))


def clean_log(spark: SparkSession, table: Path) -> None:
    """Delta's own cleanup of expired logs, as it runs after a checkpoint."""
    log: Any = delta_log(spark, table)
    nothing = spark._jvm.scala.Option.empty()  # type: ignore[union-attr]  # of the JVM
    snapshot = log.update(False, nothing, nothing)
    defaults = [getattr(log, f"cleanUpExpiredLogs$default${number}")() for number in (2, 3, 4)]
    log.cleanUpExpiredLogs(snapshot, *defaults)


# --- builders at the same time ---------------------------------------------------


def many_files(folder: Path) -> TableBuilder:
    files = [add(f"f{n:04}", partition={"date": f"2026-02-{n % 28 + 1:02}"}) for n in range(400)]
    return TableBuilder(folder).commit(files).checkpoint()


def assert_one_valid_sidecar(table: Path) -> None:
    manifest = manifest_of(table, 0)
    assert part_files(table) == referenced_files(manifest)
    assert len(lazy_files(table)) == len(part_files(table)) + 1
    assert is_verified(table)


def test_two_spark_jobs_at_once_leave_one_valid_sidecar(spark: SparkSession, tmp_path: Path) -> None:
    table = many_files(tmp_path / "table").path
    reports: list[BuildReport | None] = []
    config = SidecarConfig(row_group_rows=50, row_groups_max=2)
    start = threading.Barrier(2)

    def work() -> None:
        start.wait()
        reports.append(ensure_sidecar(spark, str(table), config=config, spark_files_min=0))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kinds = sorted(report.kind for report in reports if report is not None)
    assert kinds in (["full", "lost race"], ["full", "present"])
    assert len({report.build for report in reports if report is not None}) == 1
    assert_one_valid_sidecar(table)


@pytest.mark.long("four processes at once, a stress")
def test_processes_at_once_leave_one_valid_sidecar(tmp_path: Path) -> None:
    table = many_files(tmp_path / "table").path
    command = [
        sys.executable,
        "-m",
        "lazydelta.cli",
        "sidecar",
        "build",
        str(table),
        "--row-group-rows",
        "20",
    ]
    builders = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(4)]
    for builder in builders:
        _, errors = builder.communicate(timeout=120)
        assert builder.returncode == 0, errors.decode()
    assert_one_valid_sidecar(table)
