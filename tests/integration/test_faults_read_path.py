"""Files, rows, pages and SQL from stores, over networks that fail: the right answer, or an error in time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import lazydelta as ld
from lazydelta.errors import LazyDeltaError, StorageError
from lazydelta.upkeep.build import build_sidecar
from lazydelta.upkeep.verify import verify_sidecar
from tests.support.proxy import BusyStore, Fault, HttpProxy, always, by_seed
from tests.support.servers import TableServer
from tests.support.stored_rows import CONFIG, READS, row_table, stored_table

# What a network does to a connection now and then; every one of them another attempt mends.
PASSING = (
    Fault(kind="reset"),
    Fault(kind="lose"),
    Fault(kind="cut", after_bytes=0),
    Fault(kind="cut", after_bytes=700),
    Fault(kind="truncate", after_bytes=0),
    Fault(kind="truncate", after_bytes=700),
    Fault(kind="status", status=500),
    Fault(kind="drip", after_bytes=40_000, seconds=0.002),
)
STALL_SECONDS = 60  # far more than any deadline here
PATIENT = {"delta.request.attempts_max": "12", "delta.request.backoff_seconds": "0.005"}


@pytest.fixture(scope="module", params=["azurite", "s3_server"])
def store(request: pytest.FixtureRequest) -> TableServer:
    found: TableServer = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="module")
def url(store: TableServer, tmp_path_factory: pytest.TempPathFactory) -> str:
    return stored_table(store, tmp_path_factory.mktemp("rows"))


@pytest.fixture
def proxy(store: TableServer) -> Iterator[HttpProxy]:
    with HttpProxy(store.port) as proxy:
        yield proxy


def opened(store: TableServer, proxy: HttpProxy, url: str, **more: str) -> ld.Table:
    return ld.open(url, storage_options={**store.through(proxy), **PATIENT, **more})


def _opened_in_time(store: TableServer, proxy: HttpProxy, url: str) -> ld.Table:
    """With little time for each scan; opening, which would have no more, took as long as it had to."""
    table = opened(store, proxy, url, **{"delta.scan.timeout_seconds": "0"})
    table.scan().explain()  # what opening has asked for beside the log has come
    table._settings = msgspec.structs.replace(table._settings, scan_timeout_seconds=0.4)
    return table


def test_every_store_gives_the_same_answers(table_store: TableServer, tmp_path: Path) -> None:
    table = ld.open(stored_table(table_store, tmp_path), storage_options=table_store.storage_options)
    assert {name: read(table) for name, read in READS.items()} == dict.fromkeys(READS, True)


def test_the_sidecar_that_was_written_to_the_store_is_used(store: TableServer, url: str) -> None:
    scan = ld.open(url, storage_options=store.storage_options).scan()
    assert len(list(scan.files())) == 8
    assert scan.explain().source.startswith("sidecar")


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("read", READS)
def test_passing_faults_change_no_answer(
    store: TableServer, proxy: HttpProxy, url: str, read: str, seed: int
) -> None:
    proxy.plan = by_seed(seed, 0.2, *PASSING)
    assert READS[read](opened(store, proxy, url))


def test_a_sidecar_written_over_a_failing_network_is_whole(
    store: TableServer, proxy: HttpProxy, tmp_path: Path
) -> None:
    url = store.url("written")
    store.upload(row_table(tmp_path).path, url)
    proxy.plan = by_seed(7, 0.2, *PASSING)
    storage = opened(store, proxy, url)._snapshot.storage
    assert build_sidecar(storage, config=CONFIG).kind == "full"
    assert verify_sidecar(store.open(url), config=CONFIG).is_ok


@pytest.mark.parametrize("read", ["rows", "sql"])
def test_a_busy_store_is_waited_for(store: TableServer, proxy: HttpProxy, url: str, read: str) -> None:
    table = opened(store, proxy, url)
    busy = BusyStore(0.5, status=429, retry_after=1, until_asked=True)
    proxy.plan = busy
    assert READS[read](table)
    # Requests that were under way when the store began to throttle, one question, then a second of silence.
    assert max(busy.gaps) >= 0.9


@pytest.mark.parametrize(
    ("kind", "read"), [*(("stall", read) for read in READS), ("hang", "files"), ("hang", "rows")]
)
def test_a_silent_store_ends_every_read_at_the_scans_deadline(
    store: TableServer, proxy: HttpProxy, url: str, kind: Any, read: str
) -> None:
    table = _opened_in_time(store, proxy, url)
    proxy.plan = always(Fault(kind=kind, after_bytes=300, seconds=STALL_SECONDS))
    began = time.monotonic()
    with pytest.raises(LazyDeltaError, match=r"deadline of 0\.4 s passed"):
        READS[read](table)
    assert time.monotonic() - began < STALL_SECONDS


def test_a_store_that_is_silent_once_is_asked_again(store: TableServer, proxy: HttpProxy, url: str) -> None:
    options = {"delta.request.timeout_seconds": "12", "delta.request.attempts_max": "4"}
    table = opened(store, proxy, url, **options)
    first = len(proxy.requests) + 1
    proxy.plan = lambda request: (
        Fault(kind="stall", seconds=STALL_SECONDS) if request.number == first else None
    )
    assert READS["rows"](table)


@pytest.mark.parametrize("read", READS)
def test_a_store_that_only_fails_is_an_error_that_says_what_where_and_what_to_do(
    store: TableServer, proxy: HttpProxy, url: str, read: str
) -> None:
    table = opened(store, proxy, url, **{"delta.request.attempts_max": "2"})
    proxy.plan = always(Fault(kind="reset"))
    with pytest.raises(StorageError, match="gave up after 2 attempts") as caught:
        READS[read](table)
    assert url.rpartition("/")[2] in caught.value.where
    assert "check the network" in caught.value.fix
