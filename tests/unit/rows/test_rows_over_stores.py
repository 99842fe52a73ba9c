"""Rows over a store that fails at any call or answers late."""

from __future__ import annotations

import gc
import itertools
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

import lazydelta as ld
from lazydelta.errors import LazyDeltaError
from lazydelta.log import open_snapshot
from lazydelta.settings import Settings
from lazydelta.storage import Storage, open_storage
from lazydelta.table import Table
from tests.support.faulty_storage import FaultyStorage, Kind, Plan, fail_at, faulty
from tests.support.peak_memory import peak_growth
from tests.support.row_tables import HOURS, ROWS_A_FILE, eventually, readings_table, rows_of


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    return readings_table(tmp_path_factory.mktemp("readings"))


def opened(url: str, plan: Plan) -> tuple[Table, FaultyStorage]:
    storage: Storage = open_storage(url, Settings())
    wrapped = faulty(storage, plan)
    return Table(open_snapshot(wrapped, parallelism=2), Settings()), wrapped


@pytest.mark.parametrize("kind", ["permanent", "not_found", "cut"])
@pytest.mark.parametrize("order", [None, "desc"])
def test_a_fault_at_any_call_is_an_error_or_changes_nothing(url: str, kind: Kind, order: str | None) -> None:
    expected = rows_of(ld.open(url).scan(order=order))
    outcomes = set()
    for number in itertools.count(1):
        try:
            table, storage = opened(url, fail_at(number, kind))
            found = rows_of(table.scan(order=order))
        except LazyDeltaError:
            outcomes.add("error")
            continue
        assert found == expected
        if storage.log.faults == 0:
            break
        outcomes.add("survived")
    assert "error" in outcomes
    assert number > HOURS


def test_a_fault_past_the_limit_is_not_met(url: str) -> None:
    table, storage = opened(url, lambda _: None)
    rows_of(table.scan(limit=5))
    used = len(storage.log.calls)
    table, storage = opened(url, lambda call: "permanent" if call > used else None)
    assert len(rows_of(table.scan(limit=5))) == 5


def test_with_a_limit_only_the_files_that_fill_it_are_asked_for(url: str) -> None:
    table, storage = opened(url, lambda _: None)
    rows_of(table.scan(limit=ROWS_A_FILE * 2))
    assert len({name for _, name in storage.log.calls if name.endswith(".parquet")}) == 2


def test_closing_stops_the_reads(url: str) -> None:
    table, storage = opened(url, lambda _: time.sleep(0.01))
    batches = table.scan().batches()
    next(batches)
    batches.close()
    assert eventually(lambda: not any(t.name.startswith("lazydelta-rows") for t in threading.enumerate()))
    data = {name for _, name in storage.log.calls if name.endswith(".parquet")}
    assert len(data) < HOURS


def files_asked_for(storage: FaultyStorage) -> int:
    """Data files so far."""
    return len({name for _, name in storage.log.calls if name.endswith(".parquet")})


@pytest.mark.parametrize("ahead", [0, 2])
def test_the_next_files_are_read_while_the_consumer_is_at_work(tmp_path: Path, ahead: int) -> None:
    hours = 24
    table, storage = opened(readings_table(tmp_path, hours=hours), lambda _: None)
    with table.scan(batch_size=ROWS_A_FILE).batches(["id"], prefetch_size=ahead) as batches:
        done = 0
        for batch in batches:
            done += batch.num_rows
            under_way = -(-done // ROWS_A_FILE)
            # Nothing more is asked for here: what comes next comes by itself, or not before it is wanted.
            assert eventually(lambda at=under_way: files_asked_for(storage) >= min(at + ahead, hours))  # type: ignore[misc]
            assert ahead or files_asked_for(storage) == under_way
    assert done == hours * ROWS_A_FILE


@pytest.mark.long("a thousand scans; fewer are abandoned in test_lazy_iterator.py")
@pytest.mark.slow
def test_a_thousand_abandoned_scans_leave_no_thread_handle_or_memory(url: str) -> None:
    table = ld.open(url)

    def abandon(count: int) -> None:
        for at in range(count):
            batches = table.scan(order="desc" if at % 3 == 0 else None).batches(["id", "device"])
            if at % 4:
                next(batches)
            if at % 5 == 0:
                batches.close()

    def settle() -> tuple[int, int, int]:
        gc.collect()
        assert eventually(lambda: not any(t.name.startswith("lazydelta-rows") for t in threading.enumerate()))
        return (
            len(list(Path("/proc/self/fd").iterdir())),
            threading.active_count(),
            pa.total_allocated_bytes(),
        )

    abandon(100)
    handles, threads, arrow_bytes = settle()
    with peak_growth() as grown:
        abandon(1000)
        grown_bytes = grown()
    settle()
    assert eventually(lambda: len(list(Path("/proc/self/fd").iterdir())) <= handles + 2)
    assert eventually(lambda: threading.active_count() <= threads)
    assert eventually(lambda: pa.total_allocated_bytes() <= arrow_bytes + (1 << 20))
    assert grown_bytes < 50 << 20


def test_the_time_of_a_scan_begins_with_the_first_pull(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    later = 0.0
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + later)
    monkeypatch.setattr("lazydelta.storage.deadline.time", clock)
    batches = ld.open(url).scan(scan_timeout_seconds=300).batches()
    later += 400
    assert next(batches).num_rows > 0
    later += 400
    with pytest.raises(LazyDeltaError, match="deadline"):
        list(batches)
