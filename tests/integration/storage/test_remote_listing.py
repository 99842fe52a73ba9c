"""Listings longer than a page, from an offset, past sub-folders: what they cost is counted."""

from __future__ import annotations

import pytest

from lazydelta.settings import Settings
from lazydelta.storage import Storage, open_storage
from tests.support.proxy import Fault, HttpProxy, at
from tests.support.servers import TableServer

SIDECARS = {"azurite": 5050, "s3": 1050}  # more than a page of the store
COMMITS = 100
_FILLED: dict[str, str] = {}


@pytest.fixture
def long_log(remote_store: TableServer) -> str:
    """A table whose log has some commits, a sub-folder of more than a page, and files after it."""
    if remote_store.kind not in _FILLED:
        url = remote_store.url("long")
        commits = {f"_delta_log/{version:020d}.json": b"{}" for version in range(COMMITS)}
        sidecars = dict.fromkeys(sidecar_names(remote_store), b"x")
        others = {f"_delta_log/{name}": b"t" for name in ("_last_checkpoint", "_sidecars.txt", "_z.txt")}
        remote_store.put_all(url, {**commits, **sidecars, **others})
        _FILLED[remote_store.kind] = url
    return _FILLED[remote_store.kind]


def sidecar_names(store: TableServer) -> list[str]:
    return [f"_delta_log/_sidecars/{number:05d}.parquet" for number in range(SIDECARS[store.kind])]


def through(store: TableServer, proxy: HttpProxy, url: str) -> Storage:
    settings = Settings(storage_options=store.through(proxy), backoff_first_seconds=0.01)
    return open_storage(url, settings)


def test_a_log_is_listed_whole_without_the_pages_of_its_sub_folder(
    remote_store: TableServer, remote_proxy: HttpProxy, long_log: str
) -> None:
    storage = through(remote_store, remote_proxy, long_log)
    names = [info.name for info in storage.list_from("_delta_log")]
    commits = [f"_delta_log/{version:020d}.json" for version in range(COMMITS)]
    others = [f"_delta_log/{name}" for name in ("_last_checkpoint", "_sidecars.txt", "_z.txt")]
    assert sorted(names) == commits + others
    # The first page ends in the sub-folder, one more lists what comes after it.
    assert len(remote_proxy.requests) == 2
    assert storage.counters.snapshot().requests_by_kind == {"list": 2}


def test_a_folder_longer_than_a_page_is_listed_whole(
    remote_store: TableServer, remote_proxy: HttpProxy, long_log: str
) -> None:
    storage = through(remote_store, remote_proxy, long_log)
    names = [info.name for info in storage.list_from("_delta_log/_sidecars")]
    assert sorted(names) == sidecar_names(remote_store)
    assert storage.counters.snapshot().requests == len(remote_proxy.requests) == 2


def test_a_listing_from_an_offset_is_served_by_the_store(
    remote_store: TableServer, remote_proxy: HttpProxy, long_log: str
) -> None:
    storage = through(remote_store, remote_proxy, long_log)
    for after, count in (("00010.parquet", SIDECARS[remote_store.kind] - 11), ("01000.parquet", -1)):
        remote_proxy.reset()
        entries = storage.list_from("_delta_log/_sidecars", after)
        assert next(entries).name > f"_delta_log/_sidecars/{after}"
        assert len(remote_proxy.requests) == 1
        assert count in (-1, 1 + sum(1 for _ in entries))


def test_who_stops_pulling_stops_the_pages(
    remote_store: TableServer, remote_proxy: HttpProxy, long_log: str
) -> None:
    storage = through(remote_store, remote_proxy, long_log)
    entries = storage.list_from("_delta_log/_sidecars")
    assert remote_proxy.requests == []
    for _ in range(SIDECARS[remote_store.kind] - 60):
        next(entries)
    assert len(remote_proxy.requests) == 1


@pytest.mark.parametrize("fault", [Fault(kind="status", status=500), Fault(kind="cut", after_bytes=100)])
@pytest.mark.parametrize("folder", ["_delta_log", "_delta_log/_sidecars"])
def test_a_page_that_fails_is_asked_for_again_and_nothing_comes_twice(
    remote_store: TableServer, remote_proxy: HttpProxy, long_log: str, fault: Fault, folder: str
) -> None:
    storage = through(remote_store, remote_proxy, long_log)
    expected = sorted(info.name for info in storage.list_from(folder))
    remote_proxy.reset()
    remote_proxy.plan = at({1: fault, 3: fault})
    scoped = storage.scoped()
    assert sorted(info.name for info in scoped.list_from(folder)) == expected
    assert scoped.counters.snapshot().retries == 2
    assert scoped.counters.snapshot().requests == len(remote_proxy.requests) == 4


def test_empty_objects_that_stand_for_folders_are_not_listed(remote_store: TableServer) -> None:
    url = remote_store.url()
    placeholders = {"_delta_log/_sidecars": b"", "_delta_log/_lazy_$folder$": b"", "_delta_log/1.json": b""}
    remote_store.put_all(url, {**placeholders, "_delta_log/_last_checkpoint": b"{}"})
    names = sorted(info.name for info in remote_store.open(url).list_from("_delta_log"))
    assert names == ["_delta_log/1.json", "_delta_log/_last_checkpoint"]
