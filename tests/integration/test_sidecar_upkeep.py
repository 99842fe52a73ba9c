"""Looking after sidecars where they live: on stores, under faults and kills, on tables that Spark writes."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from lazydelta.errors import StorageError
from lazydelta.sidecar import SidecarConfig, delta_name
from lazydelta.spark.checkpoint import ensure_sidecar
from lazydelta.upkeep.build import build_sidecar
from lazydelta.upkeep.clean import clean_sidecars
from lazydelta.upkeep.deltas import write_delta_files
from lazydelta.upkeep.show import describe_sidecars
from lazydelta.upkeep.verify import verify_sidecar
from tests.support.faulty_storage import fail_at, faulty
from tests.support.servers import TableServer
from tests.support.sidecar_damage import CONFIG, lazy_folder, numbered_files, storage_of
from tests.support.spark import delta_log
from tests.support.table_builder import TableBuilder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

YEAR_MS = 365 * 86_400_000
GATHERING = msgspec.structs.replace(CONFIG, delta_commits_min=1)
KILLED_CLEAN = """
import os, signal, sys
from lazydelta.sidecar.format.config import SidecarConfig
from lazydelta.storage.local import LocalStorage
from lazydelta.upkeep.clean import clean_sidecars

left = int(sys.argv[2])

class Dying(LocalStorage):
    def delete(self, name):
        global left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1
        return super().delete(name)

clean_sidecars(Dying(sys.argv[1], "file://" + sys.argv[1]), config=SidecarConfig(), now_ms=int(sys.argv[3]))
"""


def later_ms() -> int:
    return time.time_ns() // 1_000_000 + YEAR_MS


def growing_table(folder: Path) -> TableBuilder:
    """Three checkpoints, none with a sidecar yet, and a commit after them."""
    table = TableBuilder(folder).commit(adds=numbered_files(range(200))).checkpoint()
    for first in (200, 210):
        removes = [f"part-{first - 200:05}.parquet"]
        table.commit(adds=numbered_files(range(first, first + 10)), removes=removes).checkpoint()
    return table.commit(adds=numbered_files(range(220, 225)))


def test_sidecars_are_built_verified_shown_and_cleaned_on_a_store(
    table_store: TableServer, tmp_path: Path
) -> None:
    url = table_store.url()
    table_store.upload(growing_table(tmp_path / "table").path, url)
    storage = table_store.open(url)
    kinds = [build_sidecar(storage, config=CONFIG, version=version).kind for version in (0, 1, 2)]
    assert kinds == ["full", "incremental", "incremental"]
    write_delta_files(storage, config=GATHERING)
    summary = describe_sidecars(storage, CONFIG)
    assert [(sidecar.version, sidecar.is_valid) for sidecar in summary.sidecars] == [
        (0, True),
        (1, True),
        (2, True),
    ]
    assert [(delta.file, delta.is_valid) for delta in summary.deltas] == [(delta_name(2, 3), True)]
    report = verify_sidecar(storage, config=CONFIG)
    assert report.differences == ()
    assert (report.files_checked, report.delta_files_checked) == (218, 1)
    assert clean_sidecars(storage, config=CONFIG).removed == ()
    cleaned = clean_sidecars(storage, config=CONFIG, now_ms=later_ms())
    assert cleaned.versions_kept == (2,)
    assert {removal.kind for removal in cleaned.removed} >= {"manifest"}
    assert clean_sidecars(storage, config=CONFIG, now_ms=later_ms()).removed == ()
    assert verify_sidecar(storage, config=CONFIG).is_ok


def test_a_clean_that_is_killed_leaves_no_manifest_without_its_parts_and_the_next_one_ends_it(
    tmp_path: Path,
) -> None:
    table = growing_table(tmp_path / "table")
    for version in (0, 1, 2):
        build_sidecar(storage_of(table), config=SidecarConfig(), version=version, full=True)
    now_ms = str(later_ms())
    expected = clean_sidecars(storage_of(table), config=SidecarConfig(), dry_run=True, now_ms=int(now_ms))
    assert len(expected.removed) == 4
    for deletions in range(len(expected.removed)):
        copy = tmp_path / f"killed-{deletions}"
        shutil.copytree(table.path, copy)
        command = [sys.executable, "-c", KILLED_CLEAN, str(copy), str(deletions), now_ms]
        ended = subprocess.run(command, check=False, capture_output=True, timeout=120)
        assert ended.returncode == -signal.SIGKILL, ended.stderr
        storage = storage_of(copy)
        left = describe_sidecars(storage, SidecarConfig())
        assert all(sidecar.is_valid for sidecar in left.sidecars)
        assert left.sidecars[-1].version == 2
        clean_sidecars(storage, config=SidecarConfig(), now_ms=int(now_ms))
        names = {path.name for path in (copy / "_delta_log" / "_lazy").iterdir()}
        gone = {removal.name.rpartition("/")[2] for removal in expected.removed}
        assert names == {path.name for path in lazy_folder(table).iterdir()} - gone


def test_a_store_that_fails_is_never_taken_for_a_damaged_sidecar(tmp_path: Path) -> None:
    table = growing_table(tmp_path / "table")
    build_sidecar(storage_of(table), config=CONFIG)
    write_delta_files(storage_of(table), config=GATHERING)
    counted = faulty(storage_of(table), lambda _: None)
    assert verify_sidecar(counted, config=CONFIG).is_ok
    calls = len(counted.log.calls)
    assert calls > 20
    for number in range(1, calls + 1, max(1, calls // 60)):
        try:
            report = verify_sidecar(faulty(storage_of(table), fail_at(number)), config=CONFIG)
        except StorageError:
            continue
        assert report.differences == ()


def test_a_sidecar_deleted_under_a_verification_is_told_as_missing(tmp_path: Path) -> None:
    table = growing_table(tmp_path / "table")
    build_sidecar(storage_of(table), config=CONFIG)
    storage = faulty(storage_of(table), lambda _: None)

    def plan(call: int) -> None:
        if any(method.startswith("get_range") for method, _ in storage.log.calls):
            for part in lazy_folder(table).glob("*.parquet"):
                part.unlink()

    storage = faulty(storage_of(table), plan)
    report = verify_sidecar(storage, config=CONFIG)
    assert {found.kind for found in report.differences} >= {"part"}


@pytest.mark.spark
def test_what_spark_writes_over_a_table_s_life_passes(spark: SparkSession, tmp_path: Path) -> None:
    """Types of every kind, deletion vectors, a new column, a widened one, late files, OPTIMIZE."""
    folder = tmp_path / "table"
    name = f"delta.`{folder}`"
    spark.sql(
        f"""create table {name} (
          id bigint, small int, ratio double, single float, money decimal(20,4), day date, at timestamp,
          wall timestamp_ntz, text string, raw binary, flag boolean,
          inner struct<a: int, `b.c`: string>, list array<int>, hour string
        ) using delta partitioned by (hour) tblproperties (
          'delta.enableDeletionVectors' = 'true', 'delta.columnMapping.mode' = 'name',
          'delta.enableTypeWidening' = 'true', 'delta.enableRowTracking' = 'true',
          'delta.checkpoint.writeStatsAsStruct' = 'true')"""
    )
    config = SidecarConfig(row_group_rows=4)
    kinds = []

    def checked() -> None:
        delta_log(spark, folder).checkpoint()
        kinds.append(build_sidecar(storage_of(folder), config=config).kind)
        report = verify_sidecar(storage_of(folder), config=config)
        assert report.differences == ()

    def insert(hour: str, first: int) -> None:
        spark.sql(
            f"""insert into {name}
              (id, small, ratio, single, money, day, at, wall, text, raw, flag, inner, list, hour)
            select id, if(id % 3 = 0, null, id), if(id % 5 = 0, double('NaN'), id / 7), id / 3,
              id * 1.2345, date_add('2026-02-08', cast(id as int)), timestamp_millis(1770000000123 + id),
              to_timestamp_ntz('2026-02-08 01:02:03.456789'), repeat('ü', 40) || id, cast('x' as binary),
              id % 2 = 0, struct(cast(id as int), 'x' || id), array(1), '{hour}'
            from range({first}, {first + 20}, 1, 2)"""
        )

    for number in range(4):
        insert(f"202602080{number}", number * 100)
    checked()
    insert("2026020809", 400)
    insert("2026020801", 500)  # late
    checked()
    spark.sql(f"delete from {name} where id % 10 = 3")
    checked()
    spark.sql(f"alter table {name} add column extra bigint")
    spark.sql(f"alter table {name} alter column small type bigint")
    insert("2026020810", 600)
    checked()
    spark.sql(f"optimize {name}")
    checked()
    assert kinds[0] == "full"
    assert "incremental" in kinds[1:]
    replaced = ensure_sidecar(spark, str(folder), config=config, full=True, spark_files_min=0)
    assert replaced is not None
    assert replaced.kind == "full"
    assert verify_sidecar(storage_of(folder), config=config).differences == ()
