"""Attempts, pauses and deadlines."""

from __future__ import annotations

import threading
import time

import pytest

from lazydelta.errors import StorageError
from lazydelta.storage import NEVER, Deadline, IoCounters
from lazydelta.storage.retry import Retrier, RetryPolicy, TransientError, with_retries


def retrier(
    counters: IoCounters,
    *,
    attempts: int = 4,
    timeout: float = 10.0,
    first: float = 0.001,
    scan: Deadline = NEVER,
) -> Retrier:
    policy = RetryPolicy(attempts_max=attempts, timeout_seconds=timeout, backoff_first_seconds=first)
    return Retrier(policy, counters, scan)


class Flaky:
    """Fails so many times, then answers."""

    def __init__(self, failures: int) -> None:
        self.calls = 0
        self._failures = failures

    def __call__(self) -> str:
        self.calls += 1
        if self.calls <= self._failures:
            raise TransientError("it broke", "s3://b/x")
        return "fine"


def test_a_transient_failure_is_tried_again_and_counted() -> None:
    counters, action = IoCounters(), Flaky(3)
    assert with_retries(action, retrier(counters)) == "fine"
    assert (action.calls, counters.snapshot().retries) == (4, 3)


def test_the_last_attempt_says_what_where_and_how_often() -> None:
    action = Flaky(9)
    with pytest.raises(StorageError, match="it broke; gave up after 4 attempts") as caught:
        with_retries(action, retrier(IoCounters()))
    assert action.calls == 4
    assert caught.value.where == "s3://b/x"
    assert "delta.request.attempts_max" in caught.value.fix


def test_no_attempt_begins_after_the_requests_deadline() -> None:
    action = Flaky(9)
    with pytest.raises(StorageError, match=r"gave up within 0\.02 s"):
        with_retries(action, retrier(IoCounters(), attempts=99, timeout=0.02, first=0.02))
    assert action.calls < 10


def test_no_number_of_attempts_is_too_large_for_the_pauses() -> None:
    action = Flaky(1200)
    assert with_retries(action, retrier(IoCounters(), attempts=1300, timeout=60, first=1e-300)) == "fine"


def test_pauses_do_not_reach_past_the_scans_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    sleep = time.sleep

    here = threading.get_ident()

    def slept(seconds: float) -> None:
        if threading.get_ident() == here:  # the threads of other tests may be about still
            pauses.append(seconds)
        sleep(seconds)

    monkeypatch.setattr(time, "sleep", slept)
    with pytest.raises(StorageError, match=r"the scan.s deadline of 1 s passed"):
        with_retries(Flaky(99), retrier(IoCounters(), attempts=99, first=4.0, scan=Deadline.after(1)))
    assert 0 < sum(pauses) <= 1


def test_progress_gives_a_stream_all_its_attempts_again() -> None:
    attempts = retrier(IoCounters(), attempts=2)
    for _ in range(5):
        attempts.failed(TransientError("it broke", "x"))
        attempts.progress()
    attempts.failed(TransientError("it broke", "x"))
    with pytest.raises(StorageError):
        attempts.failed(TransientError("it broke", "x"))


def test_zero_seconds_mean_no_deadline() -> None:
    assert Deadline.after(0) is NEVER
    assert NEVER.earlier(Deadline.after(5)).at < NEVER.at


class Throttled(Flaky):
    """Fails as a store does that has too much to do."""

    def __call__(self) -> str:
        try:
            return super().__call__()
        except TransientError as error:
            raise TransientError(error.what, error.where, is_throttled=True) from None


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What is slept, without sleeping."""
    slept: list[float] = []
    sleep, here = time.sleep, threading.get_ident()

    def pause(seconds: float) -> None:
        if threading.get_ident() == here:  # the threads of other tests may be about still
            slept.append(seconds)
        else:
            sleep(seconds)

    monkeypatch.setattr(time, "sleep", pause)
    return slept


def throttled_retrier(asked: list[float], *, timeout: float = 30.0) -> Retrier:
    policy = RetryPolicy(attempts_max=4, timeout_seconds=timeout, backoff_first_seconds=0.1)
    return Retrier(policy, IoCounters(), NEVER, lambda: asked.pop(0))


def test_a_store_that_throttles_is_left_alone_for_longer(pauses: list[float]) -> None:
    assert with_retries(Throttled(2), throttled_retrier([0.0, 0.0])) == "fine"
    first, second = pauses
    assert 0.2 <= first <= 0.4
    assert 0.4 <= second <= 0.8


def test_a_store_that_says_for_how_long_is_left_alone_that_long(pauses: list[float]) -> None:
    assert with_retries(Throttled(2), throttled_retrier([7.0, 0.0])) == "fine"
    assert 7.0 <= pauses[0] <= 7.7
    assert pauses[1] < 1


def test_a_pause_longer_than_the_request_may_take_is_an_error_at_once(pauses: list[float]) -> None:
    with pytest.raises(StorageError, match=r"gave up within 30 s, and the next attempt has to wait 1\d\d"):
        with_retries(Throttled(9), throttled_retrier([120.0]))
    held = throttled_retrier([])
    with pytest.raises(StorageError, match=r"the store asks to wait 45\.0 s; gave up within 30 s") as caught:
        held.hold(45.0, "s3://b/x")
    assert caught.value.where == "s3://b/x"
    assert pauses == []


def test_the_last_attempt_is_not_followed_by_a_question(pauses: list[float]) -> None:
    asked = [0.0] * 3
    with pytest.raises(StorageError, match="after 4 attempts"):
        with_retries(Throttled(9), throttled_retrier(asked))
    assert (asked, len(pauses)) == ([], 3)


def test_waiting_for_ones_turn_does_not_count_as_trying(monkeypatch: pytest.MonkeyPatch) -> None:
    monotonic, gone = time.monotonic, 0.0
    monkeypatch.setattr(time, "monotonic", lambda: monotonic() + gone)
    attempts = retrier(IoCounters(), timeout=60.0)
    gone += 61
    attempts.begin()
    attempts.failed(TransientError("it broke", "x"))
    gone += 61
    attempts.begin()
    with pytest.raises(StorageError, match="within"):
        attempts.failed(TransientError("it broke", "x"))
