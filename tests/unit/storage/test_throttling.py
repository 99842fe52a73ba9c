"""How long a store that throttles wants to be left alone, in each of its spellings."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from email.message import Message

import pytest

from lazydelta import limits
from lazydelta.storage.host_gate import HostGate
from lazydelta.storage.throttling import HostPause, pause_of

NOW = datetime(2026, 2, 10, 22, 0, 0, tzinfo=UTC)


def headers(**told: str) -> Message:
    message = Message()
    for name, value in told.items():
        message[name.replace("_", "-")] = value
    return message


@pytest.mark.parametrize(
    ("told", "seconds"),
    [
        ({"Retry_After": "7"}, 7.0),
        ({"retry_after": " 0 "}, 0.0),
        ({"Retry_After": "Tue, 10 Feb 2026 22:00:05 GMT"}, 5.0),
        ({"Retry_After": "Tue, 10 Feb 2026 21:00:00 GMT"}, 0.0),
        # The store's clock is an hour ahead of ours, and it is the one that counts.
        ({"Retry_After": "Tue, 10 Feb 2026 23:00:09 GMT", "Date": "Tue, 10 Feb 2026 23:00:00 GMT"}, 9.0),
        ({"x_ms_retry_after_ms": "1500"}, 1.5),
        ({"Retry_After": "9", "retry_after_ms": "250"}, 0.25),
        ({}, None),
        ({"Retry_After": "soon"}, None),
        ({"Retry_After": "-3"}, None),
        ({"Retry_After": "\u0663"}, None),
        ({"Retry_After": "86400"}, limits.RETRY_AFTER_SECONDS_MAX),
        ({"Retry_After": "9" * 320}, limits.RETRY_AFTER_SECONDS_MAX),
        ({"Retry_After": "9" * 5000}, limits.RETRY_AFTER_SECONDS_MAX),
        ({"retry_after_ms": "9" * 400}, limits.RETRY_AFTER_SECONDS_MAX),
        ({"Retry_After": "Mon, 16 Nov 9999 00:00:00 GMT"}, limits.RETRY_AFTER_SECONDS_MAX),
        ({"Retry_After": "Mon, 16 Nov 99999999999999999999 00:00:00 GMT"}, None),
        ({"Retry_After": "Mon, 16 Nov 2026 00:00:00 +99999999999999999999"}, None),
    ],
)
def test_a_pause_is_seconds_milliseconds_or_a_date(told: dict[str, str], seconds: float | None) -> None:
    assert pause_of(headers(**told), NOW) == seconds


def test_one_asks_for_all_who_were_throttled_together() -> None:
    gate = HostGate()
    pause, asked, lock = HostPause(gate), 0, threading.Lock()

    def ask() -> float:
        nonlocal asked
        with lock:
            asked += 1
        time.sleep(0.02)
        return 600.0

    with ThreadPoolExecutor(16) as threads:
        found = list(threads.map(lambda _: pause.seconds(ask, timeout_seconds=60), range(16)))
    assert asked == 1
    assert all(500 < seconds <= 600 for seconds in found)
    assert gate.pause_seconds() > 500


def test_a_host_that_does_not_say_is_left_alone_with_the_question() -> None:
    pause, asked = HostPause(HostGate()), list[int]()

    def ask() -> None:
        asked.append(1)

    assert [pause.seconds(ask, timeout_seconds=1) for _ in range(3)] == [0.0, 0.0, 0.0]
    assert len(asked) == 1


def test_nobody_waits_longer_for_the_question_than_it_may_take() -> None:
    pause, is_asked, goes_on = HostPause(HostGate()), threading.Event(), threading.Event()

    def ask() -> float:
        is_asked.set()
        goes_on.wait(60)
        return 0.0

    asking = threading.Thread(target=lambda: pause.seconds(ask, timeout_seconds=1))
    asking.start()
    assert is_asked.wait(60)
    assert pause.seconds(ask, timeout_seconds=0.05) == 0.0
    assert asking.is_alive(), "the question was not waited for"
    goes_on.set()
    asking.join()
