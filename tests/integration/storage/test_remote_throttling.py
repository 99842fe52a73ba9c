"""Stores that throttle: they are left alone as long as they ask for, by every scan, within the deadlines."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from lazydelta.errors import StorageError
from lazydelta.settings import Settings
from lazydelta.storage import Deadline, Storage, open_storage
from tests.support.proxy import BusyStore, Fault, HttpProxy, always
from tests.support.row_tables import eventually
from tests.support.servers import AZURITE_ACCOUNT, AZURITE_KEY, TableServer
from tests.support.signing import account_signature

BODY = os.urandom(10_000)
CALLS: dict[str, Callable[[Storage], Any]] = {
    "get": lambda storage: storage.get("x") == BODY,
    "stream": lambda storage: b"".join(storage.get_stream("x", 100)) == BODY,
    "list": lambda storage: [info.name for info in storage.list_from("")] == ["x"],
    "put": lambda storage: storage.put_if_absent("y", b"new"),
}


@pytest.fixture
def url(remote_store: TableServer) -> str:
    url = remote_store.url()
    remote_store.put_all(url, {"x": BODY})
    return url


def opened(store: TableServer, proxy: HttpProxy, url: str, **settings: Any) -> Storage:
    chosen = {"request_timeout_seconds": 20.0, "backoff_first_seconds": 0.01} | settings
    return open_storage(url, Settings(storage_options=store.through(proxy), **chosen))


@pytest.mark.parametrize("call", CALLS)
def test_every_request_waits_as_long_as_the_store_asks(
    remote_store: TableServer, remote_proxy: HttpProxy, url: str, call: str
) -> None:
    storage = opened(remote_store, remote_proxy, url)
    busy = BusyStore(0.9, retry_after=1, status=429 if call == "get" else 503, until_asked=True)
    remote_proxy.plan = busy
    assert CALLS[call](storage)
    now = storage.counters.snapshot()
    # The request, the question how long to wait, and a second later the request again.
    assert now.requests_by_kind["retry_after"] == now.retries == 1
    assert len(busy.gaps) == 2
    assert busy.gaps[1] >= 0.9
    assert now.requests == len(remote_proxy.requests)


def test_what_one_scan_learns_holds_for_all_tables_of_the_host(
    remote_store: TableServer, remote_proxy: HttpProxy, url: str
) -> None:
    busy = BusyStore(0.9, retry_after=1, until_asked=True)
    remote_proxy.plan = busy
    with ThreadPoolExecutor(1) as threads:
        other = opened(remote_store, remote_proxy, url)
        first = threads.submit(opened(remote_store, remote_proxy, url).get, "x")
        gate = other._link.host.gate  # type: ignore[attr-defined]  # of every table of the host
        assert eventually(lambda: gate.pause_seconds() > 0)
        assert other.get_range("x", 0, 10) == BODY[:10]
        assert first.result(60) == BODY
    assert other.counters.snapshot().retries == 0
    assert len(busy.arrivals) == 4, "the request and the question, then both scans"
    assert busy.arrivals[2] - busy.arrivals[1] >= 0.9


def test_a_store_that_wants_more_time_than_there_is_ends_the_request_at_once(
    remote_store: TableServer, remote_proxy: HttpProxy, url: str
) -> None:
    storage = opened(remote_store, remote_proxy, url, request_timeout_seconds=80.0)
    remote_proxy.plan = always(Fault(kind="status", status=503, retry_after=120))
    began = time.monotonic()
    with pytest.raises(StorageError, match=r"HTTP 503.*has to wait 1\d\d\.\d s") as caught:
        storage.get("x")
    assert "delta.request.timeout_seconds" in caught.value.fix
    with pytest.raises(StorageError, match="the store asks to wait 1"):
        opened(remote_store, remote_proxy, url).get("x")
    assert time.monotonic() - began < 60, "nothing was waited for"
    assert len(remote_proxy.requests) == 2, "nothing is asked of a store that wants to be left alone"


def test_a_scan_does_not_wait_past_its_deadline_for_a_busy_store(
    remote_store: TableServer, remote_proxy: HttpProxy, url: str
) -> None:
    remote_proxy.plan = always(Fault(kind="status", status=429, retry_after=10))
    began = time.monotonic()
    for _ in range(2):  # in its own pause, then in the host's
        storage = opened(remote_store, remote_proxy, url).scoped(Deadline.after(0.3))
        with pytest.raises(StorageError, match=r"deadline of 0\.3 s passed"):
            storage.get("x")
    assert time.monotonic() - began < 10, "the pause was not waited for"


def test_a_store_that_does_not_say_is_asked_once_and_left_alone_for_longer(
    remote_store: TableServer, remote_proxy: HttpProxy, url: str
) -> None:
    storage = opened(remote_store, remote_proxy, url, backoff_first_seconds=0.05, request_attempts_max=8)
    busy = BusyStore(1.0)
    remote_proxy.plan = busy
    assert storage.get("x") == BODY
    now = storage.counters.snapshot()
    assert now.requests_by_kind["retry_after"] == 1
    assert busy.gaps[1] >= 0.1
    assert now.retries <= 4


def test_the_question_shows_its_signature_to_nobody(
    remote_store: TableServer, remote_proxy: HttpProxy, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    storage = opened(remote_store, remote_proxy, url)
    remote_proxy.plan = always(Fault(kind="status", status=503))
    with caplog.at_level(logging.DEBUG), pytest.raises(StorageError) as caught:
        storage.get("x")
    signed = [request.path for request in remote_proxy.requests if "sig" in request.path.lower()]
    assert len(signed) == 1, "the question is signed"
    signature = signed[0].lower().rpartition("sig")[2]
    shown = f"{caught.value!r} {caught.value} {caught.value.__context__} {caplog.text} {storage!r}".lower()
    assert signature not in shown
    assert caught.value.__cause__ is None


def test_credentials_that_cannot_sign_wait_the_longer_pauses(azurite: TableServer) -> None:
    """A shared access signature opens the store, and obstore does not sign with it."""
    url = azurite.url()
    azurite.put_all(url, {"x": BODY})
    with HttpProxy(azurite.port) as proxy:
        options = {**azurite.through(proxy), "sas_token": account_signature(AZURITE_ACCOUNT, AZURITE_KEY)}
        del options["account_key"]
        settings = Settings(storage_options=options, backoff_first_seconds=0.05, request_attempts_max=8)
        storage = open_storage(url, settings)
        busy = BusyStore(0.5, retry_after=1)
        proxy.plan = busy
        assert storage.get("x") == BODY
        assert "retry_after" not in storage.counters.snapshot().requests_by_kind
        assert storage.counters.snapshot().requests == len(proxy.requests)
        assert busy.gaps[0] >= 0.1
