"""Many scans at once in one process: bounded together, each answered, none waiting for ever."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import lazydelta as ld
from bench.ladder_tables import LadderTable, ladder_table
from bench.many_scans import many_spec
from bench.tables import REPOSITORY
from lazydelta import limits
from lazydelta.errors import StorageError
from lazydelta.memory_budget import PROCESS_MEMORY, MemoryKind
from lazydelta.memory_share import MemoryShare
from tests.support.row_tables import eventually, readings_table
from tests.support.settling import settled

SCANS = 40
FILES = 10_000
MEMORY_MIB = 256


@pytest.fixture(scope="module")
def table() -> LadderTable:
    return ladder_table(many_spec(FILES))


@pytest.fixture
def little_memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """So little that scans wait for one another, for as long as a test needs to see them wait."""
    monkeypatch.setattr(PROCESS_MEMORY, "_wait_seconds", 600.0)
    gc.collect()  # other tests' tables may still hold commits
    PROCESS_MEMORY.limit_to(1 << 20)
    yield 1 << 20
    PROCESS_MEMORY.limit_to(limits.MEMORY_BYTES)


def test_many_scans_at_once_stay_within_the_memory_of_the_process_and_all_finish(table: LadderTable) -> None:
    command = [sys.executable, "-m", "bench.many_scans", "--json"]
    command += ["--scans", str(SCANS), "--files", str(FILES), "--memory-mib", str(MEMORY_MIB)]
    done = subprocess.run(
        command,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    told = next((line for line in done.stdout.splitlines() if line.startswith("{")), None)
    assert told is not None, done.stderr
    outcome = json.loads(told)
    assert [scan["error"] for scan in outcome["scans"] if scan["error"]] == []
    assert [scan for scan in outcome["scans"] if scan["found"] != scan["wanted"]] == []
    assert len(outcome["scans"]) == SCANS
    assert outcome["memory"]["peak_bytes"] <= MEMORY_MIB << 20
    assert outcome["memory"]["held_bytes"] == 0
    assert outcome["memory"]["overdrafts"] == 0
    assert outcome["peak_mb"] <= MEMORY_MIB
    # A thread for each scan, those that read rows ahead, and those that fetch for all.
    assert outcome["threads_max"] <= SCANS + limits.ROW_THREADS_MAX + SCANS // 4 + limits.CONNECTIONS_MAX + 2


def test_a_scan_waits_for_memory_that_others_hold_and_tells_it(tmp_path: Path, little_memory: int) -> None:
    table = ld.open(readings_table(tmp_path, hours=6, checkpoint_at=3))
    others = MemoryShare()
    while others.held_bytes < little_memory // 4 * 3:
        others.take(little_memory // 4, MemoryKind.LOG)
    scan = table.scan()
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.extend(file.path for file in scan.files()), daemon=True)
    thread.start()
    assert eventually(lambda: PROCESS_MEMORY.use().waiting == 1)
    assert found == []
    others.close()
    thread.join(120)
    assert len(found) == 6
    told = scan.explain()
    assert told.memory_waits == 1
    assert told.memory_wait_ms > 0
    assert "for memory that other scans held" in str(told)


def test_rows_wait_for_memory_too_and_nothing_is_read_ahead_meanwhile(
    tmp_path: Path, little_memory: int
) -> None:
    table = ld.open(readings_table(tmp_path, hours=6, checkpoint_at=3))
    others = MemoryShare()
    while others.held_bytes < little_memory // 4 * 3:
        others.take(little_memory // 4, MemoryKind.ROWS)
    scan = table.scan()
    counted: list[int] = []
    thread = threading.Thread(
        target=lambda: counted.extend(batch.num_rows for batch in scan.batches()), daemon=True
    )
    thread.start()
    assert eventually(lambda: PROCESS_MEMORY.use().waiting == 1)
    assert counted == []
    others.close()
    thread.join(120)
    assert sum(counted) == 6 * 30
    told = scan.explain().rows
    assert told is not None
    assert told.memory_waits >= 1


@pytest.mark.parametrize("kind", [MemoryKind.LOG, MemoryKind.ROWS])
def test_a_scan_that_waits_for_memory_ends_with_its_deadline(
    tmp_path: Path, little_memory: int, kind: MemoryKind
) -> None:
    options = {"delta.scan.timeout_seconds": "3", "delta.cache.bytes": "0"}
    table = ld.open(readings_table(tmp_path, hours=6, checkpoint_at=3), storage_options=options)
    others = MemoryShare()
    while others.held_bytes < little_memory // 4 * 3:
        others.take(little_memory // 4, kind)
    with closing(others), pytest.raises(StorageError, match="passed while it waited for memory") as told:
        list(table.scan().batches())
    assert str(tmp_path) in told.value.where
    assert "delta.memory.bytes" in told.value.fix
    assert PROCESS_MEMORY.use().waiting == 0
    assert sum(rows.num_rows for rows in table.scan(scan_timeout_seconds=0).batches()) == 6 * 30


def test_two_scans_pulled_by_turns_in_one_thread_go_on_however_little_memory_there_is(
    tmp_path: Path, little_memory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PROCESS_MEMORY, "_wait_seconds", 0.05)
    table = ld.open(readings_table(tmp_path, hours=12, checkpoint_at=8))
    PROCESS_MEMORY.limit_to(1)
    with closing(table.scan().files()) as first, closing(table.scan().files()) as second:
        pairs = list(zip(first, second, strict=True))
    assert len(pairs) == 12
    rows = [table.scan().batches(), table.scan().batches(), table.scan().batches()]
    assert sum(batch.num_rows for three in zip(*rows, strict=True) for batch in three) == 3 * 12 * 30


def test_a_scan_left_half_read_gives_its_memory_back(tmp_path: Path) -> None:
    def held() -> int:
        use = PROCESS_MEMORY.use()
        return use.held_bytes - use.cache_bytes

    url = readings_table(tmp_path, hours=8, checkpoint_at=4)
    gc.collect()  # other tests' tables may still hold commits
    before = settled(held)  # and their scans may be ending
    table = ld.open(url)
    assert held() > before  # commits that opening has read wait for the first scan
    assert sum(1 for _ in table.scan().files()) == 8
    assert eventually(lambda: held() <= before)
    rows, files = table.scan().batches(), table.scan().file_batches()
    next(rows)
    next(files)
    assert held() > before
    rows.close()
    files.close()
    assert eventually(lambda: held() <= before)
    dropped = table.scan().batches()
    next(dropped)
    del dropped
    assert eventually(lambda: held() <= before)


def test_the_option_sets_the_memory_of_the_process(tmp_path: Path, little_memory: int) -> None:
    table = readings_table(tmp_path, hours=2)
    ld.open(table)
    assert PROCESS_MEMORY.limit_bytes == little_memory
    ld.open(table, storage_options={"delta.memory.bytes": "12345678"})
    assert PROCESS_MEMORY.limit_bytes == 12_345_678
