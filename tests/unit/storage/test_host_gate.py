"""One gate for a host: in turn, within the deadline, over forks."""

from __future__ import annotations

import gc
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from lazydelta.errors import StorageError
from lazydelta.settings import build_settings
from lazydelta.storage import NEVER, Deadline, open_storage
from lazydelta.storage.host_gate import HostGate
from lazydelta.storage.hosts import host_named, host_of
from lazydelta.storage.remote import RemoteStorage

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
    gate.enter(Deadline.after(0.05), WHERE)  # the permit did not go to the one who gave up


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
    assert most == 3
    for _ in range(3):
        gate.enter(Deadline.after(0.05), WHERE)
    with pytest.raises(StorageError):
        gate.enter(Deadline.after(0.01), WHERE)


def test_a_pause_that_the_host_asked_for_runs_out() -> None:
    gate = HostGate()
    assert gate.pause_seconds() == 0
    gate.hold_back(0.05)
    time.sleep(0.06)
    assert gate.pause_seconds() == 0
    gate.hold_back(600)
    gate.hold_back(0.01)  # a shorter one later does not end it
    assert 60 < gate.pause_seconds() <= 600


def test_an_endpoint_is_one_host_however_it_is_spelled() -> None:
    def opened(container: str, **endpoint: str) -> RemoteStorage:
        given = {"account_name": "x", "account_key": "a2V5", "allow_http": "true", **endpoint}
        storage = open_storage(f"az://{container}/t", build_settings(given, environment={}))
        assert isinstance(storage, RemoteStorage)
        return storage

    one = opened("one", endpoint="http://127.0.0.1:1/x/")
    assert opened("two", AZURE_ENDPOINT="http://127.0.0.1:1/x")._link.host is one._link.host
    assert opened("two", endpoint="http://127.0.0.1:2/x")._link.host is not one._link.host


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
