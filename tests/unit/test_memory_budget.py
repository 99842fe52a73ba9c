"""The process's memory: who gets how much, who waits, who gives back."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from lazydelta.errors import InvalidRequestError, StorageError
from lazydelta.memory_budget import MemoryBudget, MemoryKind
from lazydelta.memory_share import MemoryShare
from tests.support.row_tables import eventually

LOG, ROWS = MemoryKind.LOG, MemoryKind.ROWS
PATIENCE_SECONDS = 120.0  # for a thread to get its turn on a busy machine


class Clock:
    """In place of the module `time`: it goes on when it is told to, and however long a thread waits."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr("lazydelta.memory_budget.time", made)
    return made


def beside(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def test_what_is_optional_gets_half_of_it_and_never_waits() -> None:
    budget = MemoryBudget(1000)
    assert budget.try_take(500)
    assert not budget.try_take(1)
    budget.give(100, MemoryKind.AHEAD)
    assert budget.try_take(100)


def test_pieces_of_the_log_and_of_rows_each_have_a_quarter_whatever_else_is_held() -> None:
    budget = MemoryBudget(1000)
    assert budget.try_take(500)
    assert budget.take(250, LOG) == (250, 0.0)
    assert budget.take(250, ROWS) == (250, 0.0)
    assert budget.use().held_bytes == budget.use().peak_bytes == 1000


@pytest.mark.parametrize("kind", [LOG, ROWS])
def test_a_piece_that_does_not_fit_waits_until_another_is_given_back(kind: MemoryKind) -> None:
    budget = MemoryBudget(1000)
    for _ in range(3):
        budget.take(250, kind)
    done = threading.Event()
    beside(lambda: (budget.take(250, kind), done.set()))
    assert eventually(lambda: budget.use().waiting == 1)
    assert not done.is_set()
    budget.give(250, kind)
    assert done.wait(PATIENCE_SECONDS)
    assert budget.use().peak_bytes == 750
    assert budget.use().waits == 1


def test_those_who_wait_are_served_in_the_order_in_which_they_came() -> None:
    budget = MemoryBudget(100)
    for _ in range(3):
        budget.take(25, LOG)
    served: list[int] = []

    def wait(number: int, size: int) -> None:
        budget.take(size, LOG)
        served.append(number)

    for number, size in enumerate((25, 1, 25)):  # the small one would fit before the first
        beside(lambda number=number, size=size: wait(number, size))  # type: ignore[misc]
        assert eventually(lambda number=number: budget.use().waiting == number + 1)  # type: ignore[misc]
    for count in (1, 2, 3):
        budget.give(25, LOG)
        assert eventually(lambda count=count: len(served) >= count)  # type: ignore[misc]
    assert served == [0, 1, 2]


def test_nothing_optional_is_granted_while_somebody_waits() -> None:
    budget = MemoryBudget(1000)
    for _ in range(3):
        budget.take(250, LOG)
    waiter = beside(lambda: budget.take(250, LOG))
    assert eventually(lambda: budget.use().waiting == 1)
    budget.give(500, LOG)
    waiter.join(PATIENCE_SECONDS)
    assert not budget.try_take(1)  # half is held
    budget.give(250, LOG)
    assert budget.try_take(1)


def test_a_piece_larger_than_the_limit_is_granted_when_no_other_of_its_kind_is_held() -> None:
    budget = MemoryBudget(1000)
    assert budget.try_take(500)
    assert budget.take(1 << 40, LOG) == (250, 0.0)


def test_a_scan_that_holds_a_piece_never_waits_for_the_next() -> None:
    budget = MemoryBudget(1000)
    first, second = MemoryShare(budget), MemoryShare(budget)
    for share in (first, second):
        share.take(250, LOG)
    first.take(250, LOG)
    second.take(250, LOG)  # beyond three quarters: both would wait for each other
    assert first.waits == second.waits == 0


@pytest.mark.parametrize("kind", [LOG, ROWS])
def test_threads_of_one_scan_do_not_wait_for_memory_that_the_scan_holds(kind: MemoryKind) -> None:
    budget = MemoryBudget(1000, wait_seconds=600)
    for _ in range(3):
        budget.take(250, kind)
    share = MemoryShare(budget)
    threads = [beside(lambda: share.take(250, kind)) for _ in range(4)]
    assert eventually(lambda: budget.use().waiting > 0)
    budget.give(250, kind)  # a piece for the first of them, and no more
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
    assert not any(thread.is_alive() for thread in threads)
    assert share.held_bytes == 1000
    assert share.waits == budget.use().waits == 1
    assert budget.use().overdrafts == 0


def test_all_threads_of_a_scan_stop_waiting() -> None:
    budget = MemoryBudget(1000, wait_seconds=600)
    for _ in range(3):
        budget.take(250, ROWS)
    share = MemoryShare(budget)
    errors: list[InvalidRequestError] = []

    def wait() -> None:
        try:
            share.take(250, ROWS)
        except InvalidRequestError as error:
            errors.append(error)

    threads = [beside(wait) for _ in range(4)]
    assert eventually(lambda: budget.use().waiting > 0)
    share.stop_waiting()
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
    assert len(errors) == 4
    assert (budget.use().waiting, budget.use().held_bytes) == (0, 750)


def test_where_nothing_comes_back_the_first_in_line_goes_on_and_is_counted() -> None:
    budget = MemoryBudget(1000, wait_seconds=0.05)
    for _ in range(3):
        budget.take(250, ROWS)
    share = MemoryShare(budget)
    assert share.take(250, ROWS) == 250
    assert share.waits == 1
    assert share.wait_seconds > 0
    assert budget.use().overdrafts == 1


def test_where_something_comes_back_now_and_then_nobody_overdraws(clock: Clock) -> None:
    budget = MemoryBudget(1000, wait_seconds=0.02)
    for _ in range(3):
        budget.take(250, ROWS)
    done = threading.Event()
    beside(lambda: (budget.take(250, ROWS), done.set()))
    assert eventually(lambda: budget.use().waiting == 1)
    for _ in range(12):
        clock.now += 0.015
        budget.give(20, ROWS)  # too little for the one who waits, but it comes nearer
        time.sleep(0.03)  # in which it looks at the clock
    assert not done.is_set()
    assert budget.use().overdrafts == 0
    budget.give(250, ROWS)
    assert done.wait(PATIENCE_SECONDS)


def test_a_share_gives_everything_back_when_it_is_closed_and_takes_nothing_afterwards() -> None:
    budget = MemoryBudget(1000)
    share = MemoryShare(budget)
    assert share.try_take(100)
    share.take(100, LOG)
    share.close()
    assert budget.use().held_bytes == 0
    share.give(100)
    assert not share.try_take(1)
    assert share.take(100, LOG) == 0
    assert budget.use().held_bytes == 0


def test_what_is_held_for_a_while_comes_back_when_that_ends_badly() -> None:
    budget = MemoryBudget(1000)
    share = MemoryShare(budget)
    with pytest.raises(ZeroDivisionError), share.held(100, ROWS):
        raise ZeroDivisionError
    assert budget.use().held_bytes == 0


def test_a_larger_limit_lets_those_in_who_wait() -> None:
    budget = MemoryBudget(1000)
    for _ in range(3):
        budget.take(250, LOG)
    waiter = beside(lambda: budget.take(250, LOG))
    assert eventually(lambda: budget.use().waiting == 1)
    budget.limit_to(2000)
    waiter.join(PATIENCE_SECONDS)
    assert not waiter.is_alive()


def test_an_interrupted_wait_leaves_nobody_in_line() -> None:
    budget = MemoryBudget(1000, wait_seconds=0.02)

    class StoppedError(BaseException):
        pass

    def interrupt() -> float:
        raise StoppedError

    for _ in range(3):
        budget.take(250, LOG)
    with pytest.MonkeyPatch.context() as patch, pytest.raises(StoppedError):
        patch.setattr(threading.Event, "wait", lambda *_: interrupt())
        budget.take(250, LOG)
    assert budget.use().waiting == 0
    assert budget.use().held_bytes == 750


def test_many_threads_leave_nothing_behind_and_stay_within_the_limit() -> None:
    budget = MemoryBudget(1 << 20, wait_seconds=30)
    failures: list[BaseException] = []

    def scan(seed: int) -> None:
        try:
            share = MemoryShare(budget)
            for step in range(60):
                kind = ROWS if (seed + step) % 2 else LOG
                with share.held((seed * 7919 + step * 104_729) % 300_000, kind):
                    share.try_take(1000)
                assert budget.use().held_bytes <= 1 << 20
            share.close()
        except BaseException as failure:  # noqa: BLE001 - shown by the test
            failures.append(failure)

    threads = [beside(lambda seed=seed: scan(seed)) for seed in range(32)]  # type: ignore[misc]
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
    assert failures == []
    assert not any(thread.is_alive() for thread in threads)
    assert budget.use().held_bytes == 0
    assert budget.use().overdrafts == 0
    assert budget.use().peak_bytes <= 1 << 20


def test_a_reservation_costs_microseconds() -> None:
    share = MemoryShare(MemoryBudget(1 << 30))
    began = time.thread_time()  # of the processor: others may want it, too
    for _ in range(10_000):
        with share.held(1 << 20, LOG):
            pass
    assert (time.thread_time() - began) / 10_000 < 100e-6


@pytest.mark.parametrize("how", ["stop_waiting", "close"])
def test_a_share_that_is_closed_ends_the_wait_in_another_thread_and_the_next_in_line_is_served(
    how: str,
) -> None:
    budget = MemoryBudget(1000, wait_seconds=600)
    for _ in range(2):
        budget.take(250, LOG)
    share, other = MemoryShare(budget), MemoryShare(budget)
    assert other.try_take(0)
    budget.take(200, LOG)
    errors: list[BaseException] = []
    done = threading.Event()

    def wait() -> None:
        try:
            share.take(250, LOG)
        except InvalidRequestError as error:
            errors.append(error)

    waiter = beside(wait)
    assert eventually(lambda: budget.use().waiting == 1)
    beside(lambda: (other.take(50, LOG), done.set()))  # fits, but comes behind
    assert eventually(lambda: budget.use().waiting == 2)
    getattr(share, how)()
    waiter.join(PATIENCE_SECONDS)
    assert done.wait(PATIENCE_SECONDS)
    assert "closed while it waited for memory" in str(errors[0])
    assert budget.use().waiting == 0
    assert budget.use().held_bytes == 750
    assert share.held_bytes == 0


def test_whoever_was_told_to_stop_takes_what_is_there_but_does_not_wait() -> None:
    budget = MemoryBudget(1000, wait_seconds=600)
    share = MemoryShare(budget)
    share.stop_waiting()
    assert share.take(250, LOG) == 250
    share.give(250, LOG)
    for _ in range(3):
        budget.take(250, LOG)
    with pytest.raises(InvalidRequestError, match="closed"):
        share.take(250, LOG)
    assert budget.use().waiting == 0


@pytest.mark.parametrize("passer", ["the same kind", "the other kind", "ahead"])
def test_whoever_is_first_in_line_goes_on_however_much_others_give_and_take(passer: str) -> None:
    budget = MemoryBudget(1000, wait_seconds=0.5)
    for _ in range(4):
        budget.take(250, ROWS, may_wait=False)  # by consumers that have stopped pulling
    done = threading.Event()

    def give_and_take() -> None:
        while not done.is_set():
            if passer == "ahead":
                budget.hold(1)
                budget.give(1, MemoryKind.AHEAD)
                continue
            kind = ROWS if passer == "the same kind" else LOG
            granted, _ = budget.take(200, kind, may_wait=False)
            budget.give(granted, kind)

    others = [beside(give_and_take) for _ in range(2)]
    waiter = beside(lambda: (budget.take(250, ROWS), done.set()))
    waiter.join(PATIENCE_SECONDS)
    is_served = done.is_set()
    done.set()
    for other in others:
        other.join(PATIENCE_SECONDS)
    assert is_served
    assert budget.use().overdrafts == 1
    assert budget.use().held_bytes == 1250


def test_each_in_line_waits_its_time_where_nothing_comes_back() -> None:
    budget = MemoryBudget(1000, wait_seconds=0.05)
    for _ in range(3):
        budget.take(250, LOG)
    threads = [beside(lambda: budget.take(250, LOG)) for _ in range(3)]
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
    assert budget.use().overdrafts == 3
    assert budget.use().waiting == 0


def test_a_long_wait_for_one_kind_keeps_the_other_from_what_is_shared_but_not_from_its_quarter() -> None:
    budget = MemoryBudget(1000, wait_seconds=600, turn_seconds=0)
    budget.take(250, ROWS)
    budget.take(240, ROWS)
    budget.take(200, LOG)
    rows = beside(lambda: budget.take(250, ROWS))
    assert eventually(lambda: budget.use().waiting == 1)
    assert budget.take(40, LOG) == (40, 0.0)  # of its quarter
    log = beside(lambda: budget.take(11, LOG))  # would be of what is shared
    assert eventually(lambda: budget.use().waiting == 2)
    budget.give(250, ROWS)
    rows.join(PATIENCE_SECONDS)
    log.join(PATIENCE_SECONDS)
    assert budget.use().waiting == 0
    assert budget.use().held_bytes == 240 + 250 + 240 + 11
    assert budget.use().overdrafts == 0


def test_a_short_wait_for_one_kind_lets_the_other_take_what_is_shared() -> None:
    budget = MemoryBudget(1000, wait_seconds=600)
    for _ in range(2):
        budget.take(250, ROWS)
    budget.take(200, LOG)
    waiter = beside(lambda: budget.take(250, ROWS))
    assert eventually(lambda: budget.use().waiting == 1)
    assert budget.take(50, LOG) == (50, 0.0)
    budget.give(250, ROWS)
    waiter.join(PATIENCE_SECONDS)
    assert budget.use().waiting == 0


def test_a_smaller_limit_makes_those_smaller_who_wait() -> None:
    budget = MemoryBudget(1000, wait_seconds=600)
    budget.take(250, ROWS)
    budget.take(250, LOG)
    budget.hold(500)
    found: list[tuple[int, float]] = []
    waiter = beside(lambda: found.append(budget.take(200, ROWS)))
    assert eventually(lambda: budget.use().waiting == 1)
    budget.limit_to(400)
    budget.give(250, ROWS)
    waiter.join(PATIENCE_SECONDS)
    assert found[0][0] == 100
    assert budget.use().held_bytes == 850


def test_a_wait_for_memory_ends_with_the_deadline_and_the_next_in_line_is_served(clock: Clock) -> None:
    budget = MemoryBudget(1000, wait_seconds=600)
    budget.take(250, LOG)
    budget.take(250, LOG)
    budget.take(200, LOG)
    share, other = MemoryShare(budget), MemoryShare(budget)
    share.wait_until(clock.now + 0.3, timeout_seconds=0.3, where="a table")
    done = threading.Event()
    errors: list[BaseException] = []

    def wait() -> None:
        try:
            share.take(250, LOG)
        except StorageError as error:
            errors.append(error)

    waiter = beside(wait)
    assert eventually(lambda: budget.use().waiting == 1)
    beside(lambda: (other.take(50, LOG), done.set()))
    assert eventually(lambda: budget.use().waiting == 2)
    clock.now += 0.3
    assert done.wait(PATIENCE_SECONDS)
    waiter.join(PATIENCE_SECONDS)
    assert "the scan's deadline of 0.3 s passed while it waited for memory" in str(errors[0])
    assert "where: a table" in str(errors[0])
    assert budget.use().waiting == 0
    assert budget.use().held_bytes == 750
    assert share.held_bytes == share.waits == 0


def test_a_deadline_that_has_passed_does_not_keep_from_what_is_there() -> None:
    budget = MemoryBudget(1000, wait_seconds=600)
    share = MemoryShare(budget)
    share.wait_until(time.monotonic() - 1, timeout_seconds=1, where="a table")
    assert share.take(250, LOG) == 250
    share.give(250, LOG)
    for _ in range(3):
        budget.take(250, LOG)
    with pytest.raises(StorageError, match="deadline of 1 s"):
        share.take(250, LOG)
    assert budget.use().waiting == 0
