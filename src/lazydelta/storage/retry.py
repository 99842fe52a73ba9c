"""Attempts, pauses and the deadline of one request.

Contract: a `TransientError` is tried again, up to `attempts_max` attempts in all, and no attempt begins after
the request's deadline or the scan's. Pauses grow twofold and are jittered, so that many readers do not come
back at the same moment. After a store that throttles they are longer, and as long as it asks for, where it
says (throttling.py). Everything else ends the request at once.
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
_TIMEOUT = "delta.request.timeout_seconds"
_MORE_ATTEMPTS = f"delta.request.attempts_max, and with it {_TIMEOUT}, which all attempts share"
_DOUBLINGS_MAX = 64  # more are beyond every longest pause, and beyond floats in the end


class TransientError(Exception):
    """A failure that another attempt may mend. Never leaves the storage room."""

    def __init__(self, what: str, where: str, *, is_throttled: bool = False) -> None:
        super().__init__(what, where)
        self.what = what
        self.where = where
        self.is_throttled = is_throttled  # the store has too much to do


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
    """The attempts of one request. `failed` says whether to go on; a stream resets it by progress.

    `asked_pause` finds out how long a store that throttles wants to be left alone; 0 where it does not say.
    """

    def __init__(
        self,
        policy: RetryPolicy,
        counters: IoCounters,
        scan_deadline: Deadline,
        asked_pause: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._policy = policy
        self._counters = counters
        self._scan_deadline = scan_deadline
        self._asked_pause = asked_pause
        self.progress()

    def progress(self) -> None:
        """Bytes arrived, or it is the request's turn: its attempts and its clock begin anew."""
        self._attempt = 1
        self._deadline = Deadline.after(self._policy.timeout_seconds)

    def begin(self) -> None:
        """An attempt begins. The clock runs from the first one: waiting for one's turn does not count."""
        if self._attempt == 1:
            self.progress()

    def failed(self, failure: TransientError) -> None:
        """Pause before the next attempt, or raise where there is none."""
        self._scan_deadline.check(failure.where)
        if self._attempt >= self._policy.attempts_max:
            raise _gave_up(failure.what, failure.where, f"after {self._attempt} attempts", _MORE_ATTEMPTS)
        pause = _pause_seconds(self._policy.backoff_first_seconds, self._attempt)
        if failure.is_throttled:
            pause = max(pause * limits.THROTTLE_BACKOFF_FACTOR, _late(self._asked_pause()))
        self._wait(pause, failure.what, failure.where)
        self._attempt += 1
        self._counters.retry()

    def hold(self, pause_seconds: float, where: str) -> None:
        """Wait as long as the store asked everybody to, or raise where a request may not take that long."""
        if pause_seconds > 0:
            self._wait(_late(pause_seconds), f"the store asks to wait {pause_seconds:.1f} s", where)

    def _wait(self, pause: float, what: str, where: str) -> None:
        self._scan_deadline.check(where)
        if pause >= self._deadline.seconds_left():
            waited = (
                f", and the next attempt has to wait {pause:.1f} s"
                if pause > limits.BACKOFF_MAX_SECONDS
                else ""
            )
            raise _gave_up(what, where, f"within {self._policy.timeout_seconds:g} s{waited}", _TIMEOUT)
        time.sleep(min(pause, self._scan_deadline.seconds_left()))


def with_retries(attempt: Callable[[], T], retrier: Retrier) -> T:
    """The attempt's answer, tried as often as the policy allows."""
    while True:
        try:
            return attempt()
        except TransientError as error:
            failure = error
        retrier.failed(failure)


def _gave_up(what: str, where: str, how: str, options: str) -> StorageError:
    return StorageError(
        f"{what}; gave up {how}",
        where,
        f"check the network and the store's status, or raise the storage option {options}",
    )


def _pause_seconds(first_seconds: float, attempt: int) -> float:
    """How long to wait after the failed `attempt` (from 1): half to all of a doubling step."""
    step = min(first_seconds * 2.0 ** min(attempt - 1, _DOUBLINGS_MAX), limits.BACKOFF_MAX_SECONDS)
    return step * random.uniform(0.5, 1.0)


def _late(asked_seconds: float) -> float:
    """What the store asked for, and a little more: everybody who waits for the same moment comes apart."""
    return asked_seconds + random.uniform(0.0, min(1.0, asked_seconds / 10))
