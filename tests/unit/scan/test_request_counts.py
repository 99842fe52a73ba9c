"""Laziness, counted: the exact requests of the main paths. A store's latency follows these numbers."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import lazydelta as ld
from tests.support.actions import add, stats
from tests.support.table_builder import TableBuilder


def ran(path: Path, **scan: Any) -> ld.ScanReport:
    """The report of a table opened and a scan run to its end."""
    run = ld.open(str(path)).scan(**scan)
    for _ in run.files():
        pass
    return run.explain()


def reads(report: ld.ScanReport) -> int:
    """Requests that are no listings."""
    return int(report.requests - report.requests_by_kind["list"])


def spoil(table: TableBuilder) -> None:
    """Damage the checkpoint, so that a scan that touches it must show a fallback."""
    path = table.log_file("*.checkpoint.parquet")
    path.write_bytes(b"?" * path.stat().st_size)


def long_table(folder: Path, *, commits: int = 20, files: int = 50, **checkpoint: Any) -> TableBuilder:
    """A checkpoint at version 0 and a tail of commits with one file each."""
    table = TableBuilder(folder).commit([f"old-{number}" for number in range(files)]).checkpoint(**checkpoint)
    for version in range(1, commits + 1):
        table.commit([f"new-{version}"])
    return table


def fat_files(count: int) -> list[dict[str, Any]]:
    """Files with statistics that no codec makes small; column c0 counts the files."""
    noise = random.Random(7)
    bounds = (
        {f"c{n}": noise.getrandbits(60) for n in range(1, 60)} | {"c0": number} for number in range(count)
    )
    return [add(f"f{number}", stats=stats(low=each, high=each)) for number, each in enumerate(bounds)]


def test_without_a_checkpoint_a_table_costs_hint_listing_and_its_commits(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path)
    for version in range(5):
        table.commit([f"v{version}"])
    report = ran(table.path)
    assert (report.requests_by_kind["list"], reads(report)) == (1, 1 + 5)
    assert report.commits_read == 5


def test_the_commits_read_to_find_the_metadata_are_not_read_again(tmp_path: Path) -> None:
    report = ran(long_table(tmp_path).path, strategy="reverse")
    # The hint, a manifest that is not there, every commit once, the small checkpoint once for its metadata
    # and once for its files; the log is listed, then the two folders where a sidecar may lie.
    assert (report.requests_by_kind["list"], reads(report)) == (1 + 2, 2 + 20 + 2)


def test_a_limit_with_a_crc_reads_hint_listing_crc_and_the_newest_commits_alone(tmp_path: Path) -> None:
    table = long_table(tmp_path).crc()
    report = ran(table.path, limit=1)
    # The hint, a manifest that is not there, the .crc, the newest commit. On a disk they may come in turn.
    assert (report.requests_by_kind["list"], reads(report)) == (1, 4)
    assert report.round_trips <= 5
    assert report.row_groups_read == 0
    log_bytes = (table.log / f"{20:020}.json").stat().st_size + (table.log / f"{20:020}.crc").stat().st_size
    assert report.bytes_read == log_bytes + (table.log / "_last_checkpoint").stat().st_size


def test_a_limit_that_the_tail_satisfies_touches_no_checkpoint_even_without_a_crc(tmp_path: Path) -> None:
    table = long_table(tmp_path)
    table.commit(metadata=table.metadata, protocol=table.protocol)
    spoil(table)
    report = ran(table.path, limit=3)
    # The hint, a manifest that is not there, the whole tail.
    assert (report.requests_by_kind["list"], reads(report)) == (1, 2 + 21)
    assert not report.fallbacks


def test_a_limit_that_reaches_the_checkpoint_reads_one_row_group(tmp_path: Path) -> None:
    # 498 files, protocol and metadata: ten full row groups.
    table = long_table(tmp_path, commits=2, files=498, row_group_rows=50).crc()
    report = ran(table.path, limit=10)
    assert report.row_groups_read == 1
    assert report.files_emitted == 10


@pytest.mark.parametrize("strategy", ["reverse", "forward"])
def test_every_file_is_read_once_from_each_row_group(tmp_path: Path, strategy: str) -> None:
    table = long_table(tmp_path, commits=3, files=500, row_group_rows=50)
    report = ran(table.path, strategy=strategy)
    assert report.files_emitted == 503
    assert report.row_groups_read >= 10
    assert report.commits_read == 3
    assert report.bytes_read < 3 * sum(path.stat().st_size for path in table.log.iterdir())


def test_statistics_are_read_only_when_a_predicate_needs_them(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path, schema={f"c{n}": "long" for n in range(60)} | {"date": "date"})
    table.commit(fat_files(3000)).checkpoint(stats="json").commit().crc()
    checkpoint_bytes = table.log_file("*.checkpoint.parquet").stat().st_size
    assert ran(table.path).bytes_read < checkpoint_bytes / 4
    assert ran(table.path, where="c1 < 0").bytes_read > checkpoint_bytes / 2


def test_typed_statistics_spare_the_json_and_whole_row_groups(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path, schema={f"c{n}": "long" for n in range(60)} | {"date": "date"})
    table.commit(fat_files(2998)).checkpoint(stats="both", row_group_rows=1000).commit().crc()
    checkpoint_bytes = table.log_file("*.checkpoint.parquet").stat().st_size
    report = ran(table.path, where="c0 = 7")
    assert report.files_emitted == 1
    assert report.row_groups_read == 1
    assert report.row_groups_skipped == 2
    assert report.bytes_read < checkpoint_bytes / 4


def test_a_missing_hint_costs_nothing_but_itself(tmp_path: Path) -> None:
    with_hint = ran(long_table(tmp_path / "with").path)
    without_hint = ran(long_table(tmp_path / "without").without_hint().path)
    assert without_hint.requests == with_hint.requests


def test_a_wrong_hint_costs_one_listing_and_one_manifest_more(tmp_path: Path) -> None:
    right = ran(long_table(tmp_path / "right").path)
    wrong = ran(long_table(tmp_path / "wrong").with_hint(version=4711).path)
    assert wrong.requests == right.requests + 2


def test_an_abandoned_scan_reads_no_further(tmp_path: Path) -> None:
    table = long_table(tmp_path, commits=60).crc()
    scan = ld.open(str(table.path)).scan(strategy="reverse", commit_read_parallelism=2, batch_size=1)
    files = scan.files()
    next(files)
    files.close()
    report = scan.explain()
    assert report.commits_read <= 4
    assert report.requests <= 10
    assert not report.is_finished


def test_files_of_todays_partition_in_the_tail_need_only_their_commits(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path).commit([add("old", partition={"date": "2026-02-01"})]).checkpoint()
    for version in range(1, 31):
        day = "2026-02-08" if version > 25 else "2026-02-07"
        table.commit([add(f"v{version}", partition={"date": day})])
    table.crc()
    spoil(table)
    report = ran(table.path, where="date = '2026-02-08'", limit=3)
    assert report.files_emitted == 3
    assert report.commits_read <= 6
    assert reads(report) <= 2 + 6
    assert not report.fallbacks


def test_explain_tells_the_story_in_words(tmp_path: Path) -> None:
    text = str(ran(long_table(tmp_path).crc().path, limit=2))
    for word in ("reverse", "limit", "requests", "files", "2 emitted"):
        assert word in text
