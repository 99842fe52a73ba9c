"""Attempts, pauses and deadlines."""

from __future__ import annotations

import time

import pytest

from lazydelta.errors import StorageError
from lazydelta.storage import Deadline, IoCounters
from lazydelta.storage.deadline import NEVER
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
    assert "request_attempts_max" in caught.value.fix


def test_no_attempt_begins_after_the_requests_deadline() -> None:
    action = Flaky(9)
    with pytest.raises(StorageError, match=r"gave up within 0\.02 s"):
        with_retries(action, retrier(IoCounters(), attempts=99, timeout=0.02, first=0.02))
    assert action.calls < 10


def test_pauses_do_not_reach_past_the_scans_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    sleep = time.sleep

    def slept(seconds: float) -> None:
        pauses.append(seconds)
        sleep(seconds)

    monkeypatch.setattr(time, "sleep", slept)
    with pytest.raises(StorageError, match=r"the scan.s deadline of 0\.05 s passed"):
        with_retries(Flaky(99), retrier(IoCounters(), attempts=99, first=2.0, scan=Deadline.after(0.05)))
    assert 0 < sum(pauses) <= 0.05


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
