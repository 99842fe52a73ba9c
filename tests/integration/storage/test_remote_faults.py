"""Networks and stores that fail: another attempt, or an error that says what, where and what to do."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from lazydelta import limits
from lazydelta.errors import StorageError
from lazydelta.settings import Settings
from lazydelta.storage import Deadline, Storage, open_storage
from tests.support.proxy import Fault, HttpProxy, always, at, every
from tests.support.servers import TableServer

BODY = os.urandom(1_000_000)
STALL_SECONDS = 30  # far more than any deadline here
FAULTS = [
    Fault(kind="status", status=503),
    Fault(kind="status", status=500),
    Fault(kind="status", status=429),
    Fault(kind="cut", after_bytes=0),
    Fault(kind="cut", after_bytes=1000),
    Fault(kind="lose"),
    Fault(kind="reset"),
    Fault(kind="truncate", after_bytes=1000),
]
ids = [f"{fault.kind}-{fault.status}-{fault.after_bytes}" for fault in FAULTS]


@pytest.fixture
def storage(remote_store: TableServer, remote_proxy: HttpProxy) -> Storage:
    """A table with one object `x`, seen through the proxy."""
    url = remote_store.url()
    remote_store.put_all(url, {"x": BODY})
    return opened(remote_store, remote_proxy, url)


def opened(
    store: TableServer, proxy: HttpProxy, url: str, timeout: float = 20.0, attempts: int = 4
) -> Storage:
    return open_storage(
        url,
        Settings(
            storage_options=store.through(proxy),
            request_timeout_seconds=timeout,
            request_attempts_max=attempts,
            backoff_first_seconds=0.01,
        ),
    )


@pytest.mark.parametrize("fault", FAULTS, ids=ids)
def test_a_fault_is_followed_by_another_attempt(
    storage: Storage, remote_proxy: HttpProxy, fault: Fault
) -> None:
    # After a store that throttles the next request asks for how long.
    numbers = (1, 4, 7) if fault.kind == "status" and fault.status != 500 else (1, 3, 5, 7)
    remote_proxy.plan = at(dict.fromkeys(numbers, fault))
    assert storage.get("x") == BODY
    assert storage.get_range("x", 100, 5000) == BODY[100:5100]
    assert storage.get_ranges("x", [(0, 5000), (900_000, 5000)]) == [BODY[:5000], BODY[900_000:905_000]]
    now = storage.counters.snapshot()
    assert now.retries >= 3
    assert now.requests == len(remote_proxy.requests)


@pytest.mark.parametrize("fault", FAULTS, ids=ids)
def test_a_fault_that_stays_is_an_error_after_all_attempts(
    storage: Storage, remote_proxy: HttpProxy, fault: Fault
) -> None:
    remote_proxy.plan = always(fault)
    with pytest.raises(StorageError, match="gave up after 4 attempts") as caught:
        storage.get_range("x", 0, 5000)
    assert caught.value.where == f"{storage.root}/x"
    # A store that throttles without saying for how long is asked that once.
    questions = 1 if fault.status in (429, 503) and fault.kind == "status" else 0
    assert storage.counters.snapshot().requests_by_kind.get("retry_after", 0) == questions
    assert len(remote_proxy.requests) == 4 + questions
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


@pytest.mark.parametrize("status", [400, 405, 409])
def test_a_request_the_store_refuses_is_not_repeated(
    storage: Storage, remote_proxy: HttpProxy, status: int
) -> None:
    remote_proxy.plan = always(Fault(kind="status", status=status))
    with pytest.raises(StorageError, match=f"HTTP {status}"):
        storage.get("x")
    assert len(remote_proxy.requests) == 1


def test_a_store_nobody_listens_at_is_an_error(storage: Storage, remote_proxy: HttpProxy) -> None:
    remote_proxy.refuses_connections = True
    for call in (lambda: storage.get("x"), lambda: list(storage.list_from(""))):
        with pytest.raises(StorageError, match="gave up after 4 attempts"):
            call()


def test_a_stalled_answer_is_given_up_and_asked_for_again(
    remote_store: TableServer, remote_proxy: HttpProxy
) -> None:
    url = remote_store.url()
    remote_store.put_all(url, {"x": BODY})
    storage = opened(remote_store, remote_proxy, url, timeout=12.0)  # a quarter for each attempt
    remote_proxy.plan = at({1: Fault(kind="stall", seconds=STALL_SECONDS)})
    assert storage.get("x") == BODY
    assert storage.counters.snapshot().retries >= 1


def test_a_store_that_only_stalls_is_an_error_within_the_deadline(
    remote_store: TableServer, remote_proxy: HttpProxy
) -> None:
    storage = opened(remote_store, remote_proxy, remote_store.url(), timeout=1.0)
    remote_proxy.plan = always(Fault(kind="stall", seconds=STALL_SECONDS))
    for call in (
        lambda: storage.get("x"),
        lambda: list(storage.list_from("")),
        lambda: storage.put_if_absent("y", b""),
    ):
        began = time.monotonic()
        with pytest.raises(StorageError, match="timed out") as caught:
            call()
        assert time.monotonic() - began < STALL_SECONDS
        assert "delta.request.timeout_seconds" in caught.value.fix


def test_a_stream_resumes_where_it_was_cut(storage: Storage, remote_proxy: HttpProxy) -> None:
    cut = Fault(kind="cut", after_bytes=200_000)
    remote_proxy.plan = lambda request: cut if request.number <= 4 else None
    assert b"".join(storage.get_stream("x", 50_000)) == BODY
    now = storage.counters.snapshot()
    assert now.requests == len(remote_proxy.requests) == 5
    assert now.bytes_read == len(BODY)


def test_a_stream_that_makes_no_progress_is_an_error(storage: Storage, remote_proxy: HttpProxy) -> None:
    remote_proxy.plan = lambda request: Fault(kind="cut", after_bytes=300_000 if request.number == 1 else 0)
    stream = storage.get_stream("x", 50_000)
    with pytest.raises(StorageError, match="gave up"):
        list(stream)


@pytest.mark.parametrize("fault", FAULTS, ids=ids)
def test_a_stream_is_whole_whatever_happens_to_it(
    storage: Storage, remote_proxy: HttpProxy, fault: Fault
) -> None:
    remote_proxy.plan = at({1: fault, 3: fault, 5: fault})
    assert b"".join(storage.get_stream("x", 50_000)) == BODY
    assert storage.counters.snapshot().retries >= 1


@pytest.mark.parametrize("after_bytes", [0, 1, 200, 2000, -500, -3])
def test_a_page_of_a_listing_that_ends_early_is_asked_for_again(
    remote_store: TableServer, remote_proxy: HttpProxy, after_bytes: int
) -> None:
    url = remote_store.url()
    names = [f"_delta_log/{number:020}.json" for number in range(30)]
    remote_store.put_all(url, dict.fromkeys(names, b"{}"))
    storage = opened(remote_store, remote_proxy, url)
    remote_proxy.plan = at({1: Fault(kind="truncate", after_bytes=after_bytes)})
    assert sorted(info.name for info in storage.list_from("_delta_log")) == names
    assert storage.counters.snapshot().retries == 1
    remote_proxy.plan = always(Fault(kind="truncate", after_bytes=after_bytes))
    with pytest.raises(StorageError, match=r"listing is not whole.*gave up after 4 attempts"):
        list(storage.list_from("_delta_log"))


@pytest.mark.parametrize("empty", ["get", "stream"])
def test_an_empty_object_is_empty(remote_store: TableServer, empty: str) -> None:
    url = remote_store.url()
    remote_store.put_all(url, {"nothing.json": b""})
    storage = remote_store.open(url)
    body = storage.get("nothing.json") if empty == "get" else b"".join(storage.get_stream("nothing.json", 10))
    assert body == b""


def test_an_answer_that_drips_is_given_up_when_the_request_has_no_time_left(
    remote_store: TableServer, remote_proxy: HttpProxy
) -> None:
    url = remote_store.url()
    remote_store.put_all(url, {"x": BODY})
    storage = opened(remote_store, remote_proxy, url, timeout=1.0)
    remote_proxy.plan = always(Fault(kind="drip", after_bytes=100, seconds=0.1))
    began = time.monotonic()
    with pytest.raises(StorageError, match="timed out"):
        storage.get_range("x", 0, 100_000)
    assert time.monotonic() - began < STALL_SECONDS
    storage = opened(remote_store, remote_proxy, url, timeout=12.0)
    hang = Fault(kind="hang", after_bytes=100, seconds=STALL_SECONDS)
    remote_proxy.plan = at({len(remote_proxy.requests) + 1: hang})
    assert storage.get_range("x", 0, 100_000) == BODY[:100_000]


@pytest.mark.parametrize("kind", ["stall", "hang"])
def test_a_scans_deadline_does_not_wait_for_a_silent_store(
    remote_store: TableServer, remote_proxy: HttpProxy, kind: str
) -> None:
    url = remote_store.url()
    remote_store.put_all(url, {"x": BODY})
    silent = Fault(kind=kind, after_bytes=100, seconds=STALL_SECONDS)  # type: ignore[arg-type]
    remote_proxy.plan = always(silent)
    for call in (
        lambda storage: storage.get("x"),
        lambda storage: storage.get_ranges("x", [(0, 1000), (500_000, 1000)]),
        lambda storage: list(storage.get_stream("x", 10)),
        lambda storage: list(storage.list_from("")),
    ):
        storage = opened(remote_store, remote_proxy, url, timeout=4 * STALL_SECONDS)
        storage = storage.scoped(Deadline.after(0.3))
        began = time.monotonic()
        with pytest.raises(StorageError, match=r"deadline of 0\.3 s passed"):
            call(storage)
        assert time.monotonic() - began < STALL_SECONDS


def test_a_stream_of_an_object_that_was_replaced_is_an_error(
    remote_store: TableServer, remote_proxy: HttpProxy
) -> None:
    url = remote_store.url()
    remote_store.put_all(url, {"x": BODY})
    storage = opened(remote_store, remote_proxy, url)
    remote_proxy.plan = at({1: Fault(kind="cut", after_bytes=300_000)})
    stream = storage.get_stream("x", 50_000)
    next(stream)
    remote_store.put_all(url, {"x": os.urandom(len(BODY))})
    with pytest.raises(StorageError, match="was replaced while it was being read"):
        list(stream)


def test_many_requests_through_a_store_that_fails_now_and_then_are_all_right(
    remote_store: TableServer, remote_proxy: HttpProxy
) -> None:
    url = remote_store.url()
    remote_store.put_all(url, {"x": BODY})
    storage = opened(remote_store, remote_proxy, url, attempts=20)
    remote_proxy.plan = every(5, Fault(kind="cut", after_bytes=100))
    with ThreadPoolExecutor(8) as threads:
        bodies = threads.map(lambda at: storage.get_range("x", at * 1000, 1000), range(100))
        assert b"".join(bodies) == BODY[:100_000]
    assert storage.counters.snapshot().retries >= 20


def test_all_tables_of_a_host_share_its_connections_and_none_starves(
    remote_store: TableServer, remote_proxy: HttpProxy
) -> None:
    """Eight tables, each with more threads than it may have connections."""
    now, most, lock, served = 0, 0, threading.Lock(), Counter[int]()

    def watch(_request: object) -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.01)
        with lock:
            now -= 1

    tables = []
    for _ in range(8):
        url = remote_store.url()
        remote_store.put_all(url, {"x": BODY[:1000]})
        tables.append(opened(remote_store, remote_proxy, url).scoped())
    remote_proxy.plan = watch

    def ask(number: int) -> None:
        assert tables[number % 8].get_range("x", number, 10) == BODY[number : number + 10]
        with lock:
            served[number % 8] += 1

    with ThreadPoolExecutor(3 * limits.CONNECTIONS_MAX) as threads:
        list(threads.map(ask, range(6 * limits.CONNECTIONS_MAX)))
    assert 1 < most <= limits.CONNECTIONS_MAX
    assert len(set(served.values())) == 1


def test_latency_shows_in_round_trips_and_not_in_requests(storage: Storage, remote_proxy: HttpProxy) -> None:
    storage.get("x")
    remote_proxy.latency_ms = 100
    all_four = threading.Barrier(4)  # passed only when they are under way side by side

    def meet(_request: object) -> None:
        all_four.wait(STALL_SECONDS)

    remote_proxy.plan = meet
    began = time.monotonic()
    storage.get_ranges("x", [(at * 300_000, 10) for at in range(4)])
    assert time.monotonic() - began >= 0.1
    assert storage.counters.snapshot().retries == 0
