"""Prefetch: order, how far ahead, and how it ends."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from lazydelta import limits
from lazydelta.rows.prefetch import Prefetch, PrefetchClosedError
from tests.support.row_tables import eventually


class Store:
    """Items whose loads are watched."""

    def __init__(self, count: int, *, pieces: int = 1, seconds: float = 0.0, fails_at: int = -1) -> None:
        self.count, self.pieces, self.seconds, self.fails_at = count, pieces, seconds, fails_at
        self.loaded: list[int] = []
        self.pulled = 0
        self.is_closed = False
        self.streams_open = 0
        self._lock = threading.Lock()

    def items(self) -> Generator[int, None, None]:
        try:
            for item in range(self.count):
                self.pulled += 1
                yield item
        finally:
            self.is_closed = True

    def load(self, item: int) -> Iterator[tuple[int, int]]:
        with self._lock:
            self.streams_open += 1
        try:
            for piece in range(self.pieces):
                self.loaded.append(item)
                time.sleep(self.seconds)
                if item == self.fails_at:
                    raise OSError(f"item {item} is gone")
                yield item, piece
        finally:
            with self._lock:
                self.streams_open -= 1

    def prefetch(
        self, ahead: int, pool: ThreadPoolExecutor, **more: object
    ) -> Prefetch[int, tuple[int, int]]:
        return Prefetch(self.items(), self.load, ahead=ahead, pool=pool, **more)  # type: ignore[arg-type]

    @property
    def all(self) -> list[tuple[int, int]]:
        return [(item, piece) for item in range(self.count) for piece in range(self.pieces)]


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(10) as workers:
        yield workers


def settled(state: Callable[[], object], seconds: float = 5.0) -> object:
    """What a state becomes once it does not change any more; on a busy machine it may go on later."""
    before, until = state(), time.monotonic() + seconds
    while time.monotonic() < until:
        time.sleep(0.15)
        if (now := state()) == before:
            return now
        before = now
    return before


@pytest.mark.parametrize("ahead", [0, 1, 2, 7])
@pytest.mark.parametrize("pieces", [0, 1, 3])
@pytest.mark.parametrize("is_hurried", [False, True])
def test_pieces_come_in_order(ahead: int, pieces: int, is_hurried: bool, pool: ThreadPoolExecutor) -> None:
    store = Store(20, pieces=pieces)
    assert list(store.prefetch(ahead, pool, is_hurried=is_hurried)) == store.all
    assert store.streams_open == 0


def test_nothing_is_read_before_the_first_pull(pool: ThreadPoolExecutor) -> None:
    store = Store(5)
    store.prefetch(2, pool)
    time.sleep(0.05)
    assert (store.pulled, store.loaded) == (0, [])


def test_as_many_items_as_asked_for_are_loaded_beside_the_one_being_consumed(
    pool: ThreadPoolExecutor,
) -> None:
    store = Store(50)
    stage = store.prefetch(2, pool)
    next(stage)
    assert eventually(lambda: len(store.loaded) == 3)
    assert settled(lambda: len(store.loaded)) == 3
    assert stage.ahead == 2
    stage.close()


def test_without_prefetch_an_item_is_loaded_when_it_is_asked_for(pool: ThreadPoolExecutor) -> None:
    store = Store(50, pieces=3)
    stage = store.prefetch(0, pool)
    for taken in range(1, 8):
        next(stage)
        assert len(store.loaded) == taken


def test_a_hurried_stage_begins_with_one_piece_and_looks_further_as_it_goes_on(
    pool: ThreadPoolExecutor,
) -> None:
    store = Store(50, pieces=2)
    stage = store.prefetch(2, pool, is_hurried=True)
    next(stage)
    assert settled(lambda: store.loaded) == [0]
    for _ in range(10):
        next(stage)
    assert stage.ahead >= 2
    assert eventually(lambda: len(set(store.loaded)) > 6)
    stage.close()


def test_a_consumer_that_waits_is_given_more_ahead_up_to_the_bound(pool: ThreadPoolExecutor) -> None:
    stage = Store(60, seconds=0.005).prefetch(1, pool)
    assert len(list(stage)) == 60
    assert 1 < stage.ahead <= limits.PREFETCH_ADAPTIVE_MAX


def test_waiting_for_the_first_item_is_no_reason(pool: ThreadPoolExecutor) -> None:
    stage = Store(60, pieces=5, seconds=0.02).prefetch(2, pool)
    next(stage)
    assert stage.ahead == 2
    stage.close()


def test_a_slow_consumer_is_not(pool: ThreadPoolExecutor) -> None:
    stage = Store(10).prefetch(2, pool, size_of=lambda _: 1)
    for item, _ in stage:
        assert stage.ahead == 2
        # So slow that what comes next is there, however busy the machine is.
        assert eventually(lambda item=item: stage.bytes_waiting == min(2, 9 - item))  # type: ignore[misc]


@pytest.mark.parametrize("pieces", [1, 100])
def test_bytes_that_wait_are_bounded(pieces: int, pool: ThreadPoolExecutor) -> None:
    store = Store(100, pieces=pieces)
    half = limits.PREFETCH_BYTES_MAX // 2
    stage = store.prefetch(8, pool, size_of=lambda _: half)
    seen = []
    for piece in stage:
        seen.append(piece)
        if len(seen) == 10:
            settled(lambda: len(store.loaded))
        assert stage.bytes_waiting <= (2 + 9) * half  # each of the tasks under way may bring one more
    assert seen == store.all
    assert stage.bytes_waiting == 0


def test_items_that_take_much_are_not_loaded_side_by_side(pool: ThreadPoolExecutor) -> None:
    store = Store(30, pieces=3)
    running: list[int] = []
    most = []

    def load(item: int) -> Iterator[tuple[int, int]]:
        running.append(item)
        try:
            for piece in store.load(item):
                most.append(len(running))
                time.sleep(0.002)
                yield piece
        finally:
            running.remove(item)

    half = limits.PREFETCH_BYTES_MAX // 2
    stage = Prefetch(store.items(), load, ahead=8, pool=pool, weigh=lambda _: half)
    assert list(stage) == store.all
    assert 1 < max(most) <= 3, "the first, and as many as fit beside it"


def test_an_item_that_alone_takes_more_than_there_is_is_loaded_in_its_turn(pool: ThreadPoolExecutor) -> None:
    store = Store(5, pieces=3)
    stage = store.prefetch(2, pool, weigh=lambda _: 2 * limits.PREFETCH_BYTES_MAX)
    assert list(stage) == store.all


def test_loading_overlaps_with_the_consumers_work(pool: ThreadPoolExecutor) -> None:
    store = Store(20)
    for item, _ in store.prefetch(2, pool):
        # The consumer is at work, and asks for nothing: the next items come by themselves.
        assert eventually(lambda item=item: len(store.loaded) >= min(item + 3, 20), seconds=60)


def test_an_error_is_raised_in_its_turn_and_nothing_comes_after_it(pool: ThreadPoolExecutor) -> None:
    store = Store(10, fails_at=3)
    stage = store.prefetch(4, pool)
    seen = []
    with pytest.raises(OSError, match="item 3 is gone"):
        for piece in stage:
            seen.append(piece)
    assert seen == store.all[:3]
    with pytest.raises(PrefetchClosedError):
        next(stage)
    assert eventually(lambda: store.is_closed)


def test_an_error_of_the_traversal_comes_after_what_it_had_given(pool: ThreadPoolExecutor) -> None:
    def items() -> Generator[int, None, None]:
        yield from range(3)
        raise ValueError("the log has a gap")

    stage: Prefetch[int, int] = Prefetch(items(), lambda item: iter([item]), ahead=2, pool=pool)
    assert [next(stage) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="gap"):
        next(stage)


def test_closing_stops_the_reads_and_closes_what_is_below(pool: ThreadPoolExecutor) -> None:
    store = Store(1000, pieces=1000, seconds=0.001)
    stage = store.prefetch(3, pool)
    next(stage)
    stage.close()
    stage.close()
    loaded = len(store.loaded)
    assert eventually(lambda: store.is_closed and store.streams_open == 0)
    assert len(store.loaded) <= loaded + 4  # what was under way ends at its next piece


def test_closing_from_another_thread_wakes_the_consumer(pool: ThreadPoolExecutor) -> None:
    stage = Store(1000, seconds=0.3).prefetch(2, pool)
    next(stage)
    threading.Timer(0.05, stage.close).start()
    with pytest.raises(PrefetchClosedError):
        for _ in stage:
            pass


def test_a_pool_that_takes_no_more_work_leaves_it_to_the_consumer() -> None:
    pool = ThreadPoolExecutor(2)
    store = Store(20, pieces=2)
    stage = store.prefetch(2, pool)
    first = next(stage)
    pool.shutdown(wait=True)
    assert [first, *stage] == store.all
