"""One gate for a host: in turn, within the deadline, over forks; and the pauses that a host asks for."""

from __future__ import annotations

import gc
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from email.message import Message
from typing import Any

import pytest

from lazydelta import limits
from lazydelta.errors import StorageError
from lazydelta.settings import build_settings
from lazydelta.storage import NEVER, Deadline, open_storage
from lazydelta.storage.host_gate import HostGate
from lazydelta.storage.hosts import host_named, host_of
from lazydelta.storage.throttling import HostPause, pause_of
from tests.support.row_tables import eventually

WHERE = "s3://b/x"


def waiting(gate: HostGate, count: int) -> None:
    """Return when so many threads wait for a permit."""
    give_up = time.monotonic() + 60
    while len(gate._waiting) < count:
        assert time.monotonic() < give_up
        time.sleep(0.001)


def test_permits_go_to_whoever_waited_longest() -> None:
    gate, order = HostGate(1), list[int]()
    gate.enter(NEVER, WHERE)

    def wait(number: int) -> None:
        gate.enter(NEVER, WHERE)
        order.append(number)
        gate.leave()

    threads = [threading.Thread(target=wait, args=(number,)) for number in range(20)]
    for number, thread in enumerate(threads):
        thread.start()
        waiting(gate, number + 1)
    gate.leave()
    for thread in threads:
        thread.join()
    assert order == list(range(20))


def test_nobody_overtakes_those_who_wait() -> None:
    gate, order = HostGate(1), list[str]()
    gate.enter(NEVER, WHERE)
    patient = threading.Thread(target=lambda: (gate.enter(NEVER, WHERE), order.append("first"), gate.leave()))
    patient.start()
    waiting(gate, 1)
    gate.leave()  # handed over, even if the other thread has not woken up yet
    gate.enter(NEVER, WHERE)
    order.append("second")
    gate.leave()
    patient.join()
    assert order == ["first", "second"]


def test_waiting_ends_at_the_deadline_and_leaves_no_trace() -> None:
    gate = HostGate(1)
    gate.enter(NEVER, WHERE)
    began = time.monotonic()
    with pytest.raises(StorageError, match=r"deadline of 0\.05 s") as caught:
        gate.enter(Deadline.after(0.05), WHERE)
    assert time.monotonic() - began > 0.04
    assert caught.value.where == WHERE
    gate.leave()
    gate.enter(Deadline.after(60), WHERE)  # the permit did not go to the one who gave up


def test_no_permit_is_lost_when_deadlines_and_hand_overs_meet() -> None:
    gate, lock, now, most = HostGate(3), threading.Lock(), 0, 0

    def use(number: int) -> None:
        nonlocal now, most
        try:
            gate.enter(Deadline.after(0.0005 * (number % 7 + 1)), WHERE)
        except StorageError:
            return
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.0005)
        with lock:
            now -= 1
        gate.leave()

    with ThreadPoolExecutor(24) as threads:
        list(threads.map(use, range(2000)))
    assert 0 < most <= 3
    for _ in range(3):
        gate.enter(Deadline.after(60), WHERE)
    with pytest.raises(StorageError):
        gate.enter(Deadline.after(0.01), WHERE)


def test_a_pause_that_the_host_asked_for_runs_out() -> None:
    gate = HostGate()
    assert gate.pause_seconds() == 0
    gate.hold_back(0.05)
    assert eventually(lambda: gate.pause_seconds() == 0)
    gate.hold_back(600)
    gate.hold_back(0.01)  # a shorter one later does not end it
    assert 60 < gate.pause_seconds() <= 600


def test_an_endpoint_is_one_host_however_it_is_spelled() -> None:
    def host(container: str, **endpoint: str) -> object:
        given = {"account_name": "x", "account_key": "a2V5", "allow_http": "true", **endpoint}
        storage: Any = open_storage(f"az://{container}/t", build_settings(given, environment={}))
        return storage._link.host

    one = host("one", endpoint="http://127.0.0.1:1/x/")
    assert host("two", AZURE_ENDPOINT="http://127.0.0.1:1/x") is one
    assert host("two", endpoint="http://127.0.0.1:2/x") is not one


def test_tables_of_one_host_share_its_gate_and_others_do_not() -> None:
    assert host_of("abfss://a@acct/t/u") == host_of("abfss://b@acct") == "abfss://acct"
    assert host_of("s3://one/t") != host_of("s3://two/t")
    one = host_named("s3://one")
    assert host_named("s3://one") is one
    assert host_named("s3://two") is not one


def test_a_host_that_nobody_uses_is_forgotten() -> None:
    host_named("s3://forgotten").gate.hold_back(60)
    gc.collect()
    assert host_named("s3://forgotten").gate.pause_seconds() == 0


def test_a_forked_child_begins_with_an_empty_gate() -> None:
    code = """
        import os, sys
        from lazydelta.errors import StorageError
        from lazydelta.storage import Deadline
        from lazydelta.storage.deadline import NEVER
        from lazydelta.storage.hosts import host_named
        host = host_named("s3://forked")
        for _ in range(host.gate._permits):
            host.gate.enter(NEVER, "here")
        host.gate.hold_back(6000)
        child = os.fork()
        if child == 0:
            host_named("s3://forked").gate.enter(Deadline.after(60), "here")
            os._exit(7 if host.gate.pause_seconds() == 0 else 1)
        print("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        try:
            host.gate.enter(Deadline.after(0.01), "here")
        except StorageError:
            print("parent waits")
    """
    # In a process of its own, which has no threads that a fork could catch in the middle of something.
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=300, check=True
    )
    assert done.stdout == "child 7\nparent waits\n"


# --- how long a store that throttles wants to be left alone -------------------

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
