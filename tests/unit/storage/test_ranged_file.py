"""A file over a storage: what each way of reading costs, counted exactly."""

from __future__ import annotations

import io
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lazydelta import limits
from lazydelta.errors import StorageError
from lazydelta.memory_budget import MemoryBudget
from lazydelta.memory_share import MemoryShare
from lazydelta.settings import Settings
from lazydelta.storage import AheadRoom, ObjectNotFoundError, RangedFile, Storage, open_storage
from tests.support.faulty_storage import fail_at, faulty
from tests.support.hypothesis_profile import examples

BODY = os.urandom(400_000)
TAIL = limits.PARQUET_FOOTER_GUESS_BYTES


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Storage:
    folder: Path = tmp_path_factory.mktemp("ranged")
    (folder / "x").write_bytes(BODY)
    (folder / "small").write_bytes(BODY[:1000])
    return open_storage(str(folder), Settings())


def opened(storage: Storage, name: str = "x", size: int = len(BODY)) -> tuple[RangedFile, Storage]:
    scoped = storage.scoped()
    return RangedFile(scoped, name, size), scoped


def settled(storage: Storage, requests: int) -> int:
    """Requests so far, once read-ahead has had the time to make that many."""
    give_up = time.monotonic() + 60
    while storage.counters.snapshot().requests < requests and time.monotonic() < give_up:
        time.sleep(0.005)
    time.sleep(0.02)
    return storage.counters.snapshot().requests


def test_the_footer_is_one_request_and_kept(storage: Storage) -> None:
    file, scoped = opened(storage)
    for length in (8, TAIL, 1000):
        file.seek(-length, io.SEEK_END)
        assert file.read(length) == BODY[-length:]
    file.seek(-3000, io.SEEK_END)
    assert file.read(100) == BODY[-3000:-2900]
    assert scoped.counters.snapshot().requests == 1
    assert scoped.counters.snapshot().bytes_read == TAIL


def test_a_footer_larger_than_the_guess_costs_only_what_is_missing(storage: Storage) -> None:
    file, scoped = opened(storage)
    file.seek(-8, io.SEEK_END)
    file.read(8)
    file.seek(-100_000, io.SEEK_END)
    assert file.read(100_000) == BODY[-100_000:]
    assert (scoped.counters.snapshot().requests, scoped.counters.snapshot().bytes_read) == (2, 100_000)


def test_a_small_file_is_one_request_altogether(storage: Storage) -> None:
    file, scoped = opened(storage, "small", 1000)
    file.seek(-8, io.SEEK_END)
    assert file.read() == BODY[992:1000]
    file.seek(0)
    assert file.readall() == BODY[:1000]
    assert scoped.counters.snapshot().requests == 1


def test_a_read_that_misses_fetches_exactly_what_was_asked(storage: Storage) -> None:
    file, scoped = opened(storage)
    file.seek(1000)
    assert file.read(50) == BODY[1000:1050]
    assert file.tell() == 1050
    assert (scoped.counters.snapshot().requests, scoped.counters.snapshot().bytes_read) == (1, 50)


def test_preloaded_ranges_are_served_from_memory_until_released(storage: Storage) -> None:
    file, scoped = opened(storage)
    file.preload([(1000, 500), (1500, 500), (350_000, 100)])
    assert scoped.counters.snapshot().round_trips == 1
    before = scoped.counters.snapshot().requests
    file.seek(1200)
    assert file.read(700) == BODY[1200:1900]
    file.preload([(1000, 500)])
    assert scoped.counters.snapshot().requests == before
    file.release()
    file.seek(1200)
    assert file.read(10) == BODY[1200:1210]
    assert scoped.counters.snapshot().requests == before + 1


def test_what_the_tail_holds_is_not_preloaded_again(storage: Storage) -> None:
    file, scoped = opened(storage)
    file.seek(-8, io.SEEK_END)
    file.read(8)
    file.preload([(len(BODY) - 5000, 1000)])
    file.release()
    file.seek(-5000, io.SEEK_END)
    assert file.read(10) == BODY[-5000:-4990]
    assert scoped.counters.snapshot().requests == 1


def test_a_read_across_a_preloaded_range_fetches_only_the_rest(storage: Storage) -> None:
    file, scoped = opened(storage)
    file.preload([(1000, 500)])
    file.seek(900)
    assert file.read(1000) == BODY[900:1900]
    assert scoped.counters.snapshot().bytes_read == 500 + 100 + 400


def test_a_streamed_chunk_is_read_in_blocks_with_one_block_ahead(storage: Storage) -> None:
    file, scoped = opened(storage)
    file.stream_through([(10_000, 100_000)], block_bytes=40_000)
    assert settled(scoped, 0) == 0
    file.seek(10_000)
    assert file.read(40_000) == BODY[10_000:50_000]
    assert settled(scoped, 2) == 2  # the block, and the one after it; never two ahead
    assert file.read(100) == BODY[50_000:50_100]
    assert settled(scoped, 3) == 3
    assert file.read(59_900) == BODY[50_100:110_000]
    assert settled(scoped, 3) == 3
    assert scoped.counters.snapshot().bytes_read == 100_000  # nothing behind the chunk, nothing twice


def test_small_reads_in_a_streamed_chunk_do_not_become_small_requests(storage: Storage) -> None:
    file, scoped = opened(storage)
    file.stream_through([(0, 100_000)], block_bytes=25_000)
    pieces = [file.read(777) for _ in range(100_000 // 777)]
    assert b"".join(pieces) == BODY[: 777 * len(pieces)]
    assert settled(scoped, 4) == 4


def test_a_streamed_chunk_may_be_read_backwards_and_is_only_slower(storage: Storage) -> None:
    file, _ = opened(storage)
    file.stream_through([(0, 100_000)], block_bytes=10_000)
    for start in (95_000, 50_000, 0, 49_990, 10):
        file.seek(start)
        assert file.read(30) == BODY[start : start + 30]


def test_whole_blocks_are_handed_out_without_a_copy(storage: Storage) -> None:
    file, _ = opened(storage)
    file.preload([(1000, 500)])
    file.seek(1000)
    first = file.read(500)
    file.seek(1000)
    assert file.read(500) is first
    file.seek(1100)
    assert file.read_buffer(100).obj is first


def test_readinto_is_short_only_at_the_end(storage: Storage) -> None:
    file, _ = opened(storage)
    file.seek(-50, io.SEEK_END)
    target = bytearray(80)
    assert file.readinto(target) == 50
    assert target[:50] == BODY[-50:]
    assert file.read(10) == b""
    assert file.readinto(target) == 0


@settings(max_examples=examples(40))
@given(data=st.data())
def test_whatever_was_declared_every_read_is_right(storage: Storage, data: st.DataObject) -> None:
    spots = st.tuples(st.integers(0, len(BODY) - 1), st.integers(0, 90_000)).map(
        lambda spot: (spot[0], min(spot[1], len(BODY) - spot[0]))
    )
    file, _ = opened(storage)
    cuts = sorted(set(data.draw(st.lists(st.integers(0, len(BODY)), max_size=6))))
    chunks = [(start, end - start) for start, end in zip(cuts[::2], cuts[1::2], strict=False)]
    file.stream_through(chunks, block_bytes=data.draw(st.integers(1, 50_000)) + 2000)
    file.preload(data.draw(st.lists(spots, max_size=3)))
    for start, length in data.draw(st.lists(spots, max_size=8)):
        file.seek(start)
        assert file.read(length) == BODY[start : start + length]
    file.close()


def test_many_threads_may_read_through_their_own_views(storage: Storage) -> None:
    file, _ = opened(storage)
    file.stream_through([(at * 50_000, 50_000) for at in range(6)], block_bytes=7_000)
    lock = threading.Lock()

    def read_chunk(at: int) -> bytes:
        pieces = []
        for start in range(at * 50_000, (at + 1) * 50_000, 1000):
            with lock:  # as pyarrow does: a seek and its read belong together
                file.seek(start)
                pieces.append(file.read(1000))
        return b"".join(pieces)

    with ThreadPoolExecutor(6) as threads:
        assert b"".join(threads.map(read_chunk, range(6))) == BODY[:300_000]


def test_closing_drops_memory_and_stops_read_ahead(storage: Storage) -> None:
    file, scoped = opened(storage)
    file.stream_through([(0, 300_000)], block_bytes=10_000)
    file.preload([(310_000, 10_000)])
    file.read(5)
    file.close()
    file.close()
    assert settled(scoped, 2) <= 3
    assert file._kept == {}
    assert file._stretches == []
    for call in (lambda: file.read(1), lambda: file.seek(0), lambda: file.preload([(0, 1)])):
        with pytest.raises(ValueError, match="closed"):
            call()


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_a_fault_ahead_is_an_error_of_the_read_that_needs_it(storage: Storage, number: int) -> None:
    file = RangedFile(faulty(storage, fail_at(number)), "x", len(BODY))
    file.stream_through([(0, 40_000)], block_bytes=10_000)
    with pytest.raises(StorageError, match="a fault of the test"):
        file.read(40_000) if number == 1 else [file.read(10_000) for _ in range(4)]


def test_a_file_that_is_gone_is_not_found(storage: Storage) -> None:
    with pytest.raises(ObjectNotFoundError):
        RangedFile(storage, "nope", 100).read(1)


def test_a_file_shorter_than_was_said_is_an_error(storage: Storage) -> None:
    file = RangedFile(storage, "small", 2000)
    with pytest.raises(StorageError, match="shorter than the bytes asked for"):
        file.read()


def test_columns_are_read_in_any_order_with_blocks_ahead_of_each(storage: Storage) -> None:
    file, scoped = opened(storage)
    room = AheadRoom(MemoryShare(MemoryBudget(64 * limits.MIB)))
    columns = [[(200_000, 50_000), (0, 50_000)], [(250_000, 20_000), (50_000, 20_000)]]
    file.stream_columns(columns, room, block_bytes=7_000)
    found = {}
    for at in range(2):
        for step in range(0, 50_000, 5_000):
            for number, column in enumerate(columns):
                start, length = column[at]
                if step < length:
                    file.seek(start + step)
                    found[number, start + step] = file.read(5_000)
    assert all(BODY[start : start + 5_000] == body for (_, start), body in found.items())
    assert len(found) == 28
    assert scoped.counters.snapshot().bytes_read == 140_000
    file.close()


def test_a_fault_ahead_in_a_column_gives_its_room_back(storage: Storage) -> None:
    budget = MemoryBudget(64 * limits.MIB)
    file = RangedFile(faulty(storage, fail_at(6)), "x", len(BODY))
    file.stream_columns([[(0, 100_000)]], AheadRoom(MemoryShare(budget)), block_bytes=5_000)
    with pytest.raises(StorageError, match="a fault of the test"):
        [file.read(5_000) for _ in range(20)]
    file.close()
    assert budget.use().held_bytes == 0
