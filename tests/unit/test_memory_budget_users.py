"""Those who draw from the process's memory do with less where there is none, and give the same answers."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

import lazydelta as ld
from lazydelta.errors import InvalidRequestError
from lazydelta.log import open_snapshot
from lazydelta.memory_budget import MemoryBudget, MemoryKind
from lazydelta.memory_share import MemoryShare
from lazydelta.rows.materialize import backwards
from lazydelta.rows.prefetch import Prefetch
from lazydelta.rows.row_threads import give_threads, take_threads, threads_in_use
from lazydelta.scan import FileKeys, FileScan, LazyScanConfig, RemoveSet
from lazydelta.settings import Settings
from lazydelta.sidecar.read.read_ahead import ReadAhead
from lazydelta.storage import open_storage
from tests.support.row_tables import eventually, readings_table


def full_share() -> tuple[MemoryBudget, MemoryShare]:
    """A share of a budget whose optional half is taken."""
    budget = MemoryBudget(4 << 20)
    assert budget.try_take(2 << 20)
    return budget, MemoryShare(budget)


def test_the_set_of_keys_moves_to_disk_where_there_is_no_room_and_stays_exact() -> None:
    budget, share = full_share()
    paths = pa.array([f"part-{number}" for number in range(40_000)])
    others = pa.array([f"other-{number}" for number in range(100)])
    with closing(RemoveSet(share=share)) as removed:
        for start in range(0, 40_000, 20_000):
            removed.remember(FileKeys(paths.slice(start, 20_000), None))
        assert removed.is_on_disk
        assert removed.holds(FileKeys(paths.slice(39_900), None)).all()
        assert not removed.holds(FileKeys(others, None)).any()
    assert budget.use().held_bytes == 2 << 20


def test_the_set_of_keys_gives_back_what_it_took_when_it_is_closed() -> None:
    budget = MemoryBudget()
    share = MemoryShare(budget)
    paths = pa.array([f"part-{number}" for number in range(40_000)])
    with closing(RemoveSet(share=share)) as removed:
        for start in range(0, 40_000, 20_000):
            removed.remember(FileKeys(paths.slice(start, 20_000), None))
        removed.settle()
        assert not removed.is_on_disk
        assert share.held_bytes == 40_000 * 16
        assert removed.holds(FileKeys(paths.slice(19_000, 2000), None)).all()
    assert budget.use().held_bytes == 0


def test_rows_that_go_out_backwards_go_to_disk_where_there_is_no_room() -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        for start in range(0, 100, 10):
            yield pa.record_batch({"id": list(range(start, start + 10))})

    for budget, share in (full_share(), (roomy := MemoryBudget(), MemoryShare(roomy))):
        before = budget.use().held_bytes
        found = [id_ for rows in backwards(batches(), share) for id_ in rows["id"].to_pylist()]
        assert found == list(range(99, -1, -1))
        assert budget.use().held_bytes == before


def test_nothing_is_read_ahead_where_there_is_no_room_and_everything_comes_in_order() -> None:
    budget, share = full_share()
    begun: list[int] = []

    def work(item: int) -> int:
        begun.append(item)
        return item

    ahead = ReadAhead(iter(range(1, 6)), work, 2, share=share, item_bytes=1000)
    ahead.start()
    assert begun == []
    for result in ahead.results():
        assert begun == list(range(1, result + 1))
    assert begun == [1, 2, 3, 4, 5]
    assert budget.use().held_bytes == 2 << 20


def test_who_has_nothing_left_to_read_does_not_wait_for_memory() -> None:
    budget, share = full_share()
    assert list(ReadAhead(iter(()), lambda item: item, 2, share=share, item_bytes=1000).results()) == []
    assert (share.waits, budget.use().waits) == (0, 0)


def test_what_is_read_ahead_is_held_until_it_is_consumed() -> None:
    budget = MemoryBudget()
    share = MemoryShare(budget)
    results = ReadAhead(iter(range(1, 6)), lambda item: item, 2, share=share, item_bytes=1000).results()
    assert next(results) == 1
    assert budget.use().held_bytes == 3000
    results.close()
    assert budget.use().held_bytes == 0


def test_rows_are_loaded_one_item_at_a_time_where_there_is_no_room() -> None:
    budget, share = full_share()
    running, most = 0, 0
    lock = threading.Lock()

    def load(item: int) -> Iterator[int]:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        yield item
        yield -item
        with lock:
            running -= 1

    with ThreadPoolExecutor(4) as pool:
        stage = Prefetch(
            (item for item in range(1, 20)),
            load,
            ahead=4,
            pool=pool,
            size_of=lambda _: 100,
            weigh=lambda _: 1000,
            share=share,
        )
        assert list(stage) == [piece for item in range(1, 20) for piece in (item, -item)]
    assert most == 1
    share.close()
    assert budget.use().held_bytes == 2 << 20


def test_rows_loaded_ahead_are_held_and_given_back() -> None:
    budget = MemoryBudget()
    share = MemoryShare(budget)
    with ThreadPoolExecutor(4) as pool:
        stage = Prefetch(
            (item for item in range(20)),
            lambda item: iter([item]),
            ahead=4,
            pool=pool,
            size_of=lambda _: 100,
            weigh=lambda _: 1000,
            share=share,
        )
        assert next(stage) == 0
        assert eventually(lambda: share.held_bytes >= 4 * 1000)
        assert list(stage) == list(range(1, 20))
        assert share.held_bytes == 0
    assert share.waits == 0


def test_commits_kept_by_an_opening_count_until_a_scan_takes_them_or_the_table_is_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    budget = MemoryBudget()
    monkeypatch.setattr("lazydelta.memory_share.PROCESS_MEMORY", budget)
    url = readings_table(tmp_path, hours=4)
    for crc in Path(url, "_delta_log").glob("*.crc"):
        crc.unlink()
    options = {"delta.cache.bytes": "0"}
    table = ld.open(url, storage_options=options)
    assert budget.use().held_bytes > 0
    assert sum(1 for _ in table.scan().files()) == 4
    assert eventually(lambda: budget.use().held_bytes == 0)
    other = ld.open(url, storage_options=options)
    assert budget.use().held_bytes > 0
    del other
    assert eventually(lambda: budget.use().held_bytes == 0)


def test_runs_of_rows_share_their_threads_and_each_has_one() -> None:
    gc.collect()
    assert eventually(lambda: threads_in_use() == 0)  # what tests before this one left ends by itself
    counts = [take_threads(9) for _ in range(20)]
    assert min(counts) == 1
    assert max(counts) == 9
    assert sum(counts) <= 64 + 20
    for count in counts:
        give_threads(count)
    assert threads_in_use() == 0


@pytest.mark.parametrize("prefetch_size", [0, 2])
@pytest.mark.parametrize("kind", [MemoryKind.LOG, MemoryKind.ROWS])
def test_closing_an_iterator_ends_a_consumer_that_waits_for_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: MemoryKind, prefetch_size: int
) -> None:
    budget = MemoryBudget(8 << 20, wait_seconds=600)
    monkeypatch.setattr("lazydelta.memory_share.PROCESS_MEMORY", budget)
    url = readings_table(tmp_path, hours=4, checkpoint_at=3)
    table = ld.open(url, storage_options={"delta.cache.bytes": "0"})
    for _ in range(3):
        budget.take(2 << 20, kind)
    rows = table.scan().batches(prefetch_size=prefetch_size)
    errors: list[BaseException] = []

    def consume() -> None:
        try:
            list(rows)
        except BaseException as error:  # noqa: BLE001 - looked at below
            errors.append(error)

    consumer = threading.Thread(target=consume, daemon=True)
    consumer.start()
    assert eventually(lambda: budget.use().waiting == 1)
    rows.close()
    consumer.join(60)
    assert not consumer.is_alive()
    assert isinstance(errors[0], InvalidRequestError)
    assert "closed" in str(errors[0])
    assert eventually(lambda: budget.use().held_bytes == 6 << 20)
    assert budget.use().waiting == budget.use().overdrafts == 0


def test_a_scan_of_files_that_waits_for_memory_can_be_told_to_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    budget = MemoryBudget(8 << 20, wait_seconds=600)
    url = readings_table(tmp_path, hours=4, checkpoint_at=3)
    snapshot = open_snapshot(open_storage(url, Settings()), parallelism=2)
    for _ in range(3):
        budget.take(2 << 20, MemoryKind.LOG)
    share = MemoryShare(budget)
    with ThreadPoolExecutor(1) as other:
        found = other.submit(list, FileScan(snapshot, LazyScanConfig()).batches(share=share))
        assert eventually(lambda: budget.use().waiting == 1)
        share.stop_waiting()
        with pytest.raises(InvalidRequestError, match="closed while it waited for memory"):
            found.result(60)
    assert budget.use().held_bytes == 6 << 20
