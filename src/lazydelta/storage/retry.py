"""Attempts, pauses and the deadline of one request.

Contract: a `TransientError` is tried again, up to `attempts_max` attempts in all, and no attempt begins after
the request's deadline or the scan's. Pauses grow twofold and are jittered, so that many readers do not come
back at the same moment. Everything else ends the request at once. `Retry-After` is not seen: obstore keeps
headers of failed requests to itself.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

import msgspec

from lazydelta import limits
from lazydelta.errors import StorageError
from lazydelta.settings import Settings
from lazydelta.storage.counters import IoCounters
from lazydelta.storage.deadline import Deadline

T = TypeVar("T")


class TransientError(Exception):
    """A failure that another attempt may mend. Never leaves the storage room."""

    def __init__(self, what: str, where: str) -> None:
        super().__init__(what, where)
        self.what = what
        self.where = where


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How often and how long one request is tried."""

    attempts_max: int
    timeout_seconds: float
    backoff_first_seconds: float

    @classmethod
    def of(cls, settings: Settings) -> RetryPolicy:
        """The policy that the settings ask for."""
        return cls(
            attempts_max=settings.request_attempts_max,
            timeout_seconds=settings.request_timeout_seconds,
            backoff_first_seconds=settings.backoff_first_seconds,
        )


class Retrier:
    """The attempts of one request. `failed` says whether to go on; a stream resets it by progress."""

    def __init__(self, policy: RetryPolicy, counters: IoCounters, scan_deadline: Deadline) -> None:
        self._policy = policy
        self._counters = counters
        self._scan_deadline = scan_deadline
        self.progress()

    def progress(self) -> None:
        """Bytes arrived: the attempts and the clock of this request begin anew."""
        self._attempt = 1
        self._deadline = Deadline.after(self._policy.timeout_seconds)

    def failed(self, failure: TransientError) -> None:
        """Pause before the next attempt, or raise where there is none."""
        pause = _pause_seconds(self._policy.backoff_first_seconds, self._attempt)
        self._scan_deadline.check(failure.where)
        if self._attempt >= self._policy.attempts_max:
            raise self._gave_up(failure, f"after {self._attempt} attempts")
        if pause >= self._deadline.seconds_left():
            raise self._gave_up(failure, f"within {self._policy.timeout_seconds:g} s")
        time.sleep(min(pause, self._scan_deadline.seconds_left()))
        self._attempt += 1
        self._counters.retry()

    @staticmethod
    def _gave_up(failure: TransientError, how: str) -> StorageError:
        return StorageError(
            f"{failure.what}; gave up {how}",
            failure.where,
            "check the network and the store's status; raise request_attempts_max or request_timeout_seconds",
        )


def with_retries(attempt: Callable[[], T], retrier: Retrier) -> T:
    """The attempt's answer, tried as often as the policy allows."""
    while True:
        try:
            return attempt()
        except TransientError as error:
            failure = error
        retrier.failed(failure)


def _pause_seconds(first_seconds: float, attempt: int) -> float:
    """How long to wait after the failed `attempt` (from 1): half to all of a doubling step."""
    step = min(first_seconds * 2.0 ** (attempt - 1), limits.BACKOFF_MAX_SECONDS)
    return step * random.uniform(0.5, 1.0)
