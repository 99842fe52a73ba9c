"""Auto: the decision matrix of the design notes, decided without touching the checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

import lazydelta as ld
from lazydelta.log import open_snapshot
from lazydelta.scan import FileScan
from lazydelta.settings import Settings
from lazydelta.storage import open_storage
from tests.support.actions import add
from tests.support.table_builder import TableBuilder


def chosen(table: TableBuilder, **scan: Any) -> str:
    """What auto decides."""
    run = ld.open(str(table.path)).scan(**scan)
    next(iter(run.files()), None)
    report = run.explain()
    assert report.reason
    return str(report.strategy)


def table_with(folder: Path, *, checkpoint_files: int, commits: int, adds_each: int = 1) -> TableBuilder:
    """A checkpoint and a tail of these sizes, the tail on the day its commits were made."""
    old = [add(f"old-{n}", partition={"date": "2026-01-01"}) for n in range(checkpoint_files)]
    table = TableBuilder(folder).commit(old).checkpoint()
    for version in range(1, commits + 1):
        table.commit([add(f"v{version}-{n}", partition={"date": "2026-02-02"}) for n in range(adds_each)])
    return table


def test_a_limit_goes_reverse(tmp_path: Path) -> None:
    assert chosen(table_with(tmp_path, checkpoint_files=500, commits=3), limit=10) == "reverse"


def test_a_limit_beats_a_long_tail(tmp_path: Path) -> None:
    assert chosen(table_with(tmp_path, checkpoint_files=500, commits=101), limit=10) == "reverse"


def test_more_than_a_hundred_commits_since_the_checkpoint_go_forward(tmp_path: Path) -> None:
    assert chosen(table_with(tmp_path, checkpoint_files=10, commits=101)) == "forward"


def test_a_tail_with_more_than_half_the_checkpoints_files_goes_reverse(tmp_path: Path) -> None:
    assert chosen(table_with(tmp_path, checkpoint_files=10, commits=5, adds_each=20)) == "reverse"


def test_a_full_scan_goes_forward(tmp_path: Path) -> None:
    assert chosen(table_with(tmp_path, checkpoint_files=1000, commits=3)) == "forward"


def test_a_recent_partition_goes_reverse_and_a_rare_one_forward(tmp_path: Path) -> None:
    table = table_with(tmp_path, checkpoint_files=1000, commits=3)
    assert chosen(table, where="date = '2026-02-02'") == "reverse"
    assert chosen(table, where="date >= '2026-02-02'") == "reverse"
    assert chosen(table, where="date = '2026-01-01'") == "forward"
    assert chosen(table, where="date <= '2026-02-02'") == "forward"


def test_a_file_time_beyond_all_years_is_no_error(tmp_path: Path) -> None:
    table = table_with(tmp_path, checkpoint_files=1000, commits=3)
    snapshot = open_snapshot(open_storage(str(table.path), Settings()), parallelism=2)
    first, *others = snapshot.segment.commits
    far = msgspec.structs.replace(first.info, modified_ms=10**17)
    commits = (msgspec.structs.replace(first, info=far), *others)
    segment = msgspec.structs.replace(snapshot.segment, commits=commits)
    scan = FileScan(
        msgspec.structs.replace(snapshot, segment=segment),
        ld.LazyScanConfig(predicate="date = '2026-02-02'"),
    )
    assert sum(batch.num_rows for batch in scan.batches()) == 3
    report = scan.report()
    assert (report.strategy, report.reason) == ("forward", "most files are in the checkpoint")


def test_without_a_checkpoint_there_is_only_the_tail(tmp_path: Path) -> None:
    assert chosen(TableBuilder(tmp_path).commit(["a"]).commit(["b"])) == "reverse"


def test_deciding_reads_nothing_of_the_checkpoint(tmp_path: Path) -> None:
    table = table_with(tmp_path, checkpoint_files=1000, commits=5, adds_each=400).crc()
    run = ld.open(str(table.path)).scan(batch_size=1)
    files = run.files()
    next(files)
    assert run.explain().strategy == "reverse"
    assert run.explain().row_groups_read == 0
    files.close()


def test_what_is_asked_for_is_done(tmp_path: Path) -> None:
    table = table_with(tmp_path, checkpoint_files=10, commits=2)
    for strategy in ("reverse", "forward"):
        assert chosen(table, strategy=strategy) == strategy
        assert chosen(table, strategy=ld.ScanStrategy(strategy)) == strategy
        assert chosen(table, config=ld.LazyScanConfig(strategy=strategy)) == strategy
