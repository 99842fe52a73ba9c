"""The contract of `Storage`, on a local folder, on Azurite and on an S3 server."""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from lazydelta import limits
from lazydelta.errors import StorageError
from lazydelta.settings import Settings
from lazydelta.storage import Deadline, ObjectNotFoundError, open_storage
from tests.support.proxy import HttpProxy, side_by_side
from tests.support.servers import TableServer

ODD_NAMES = [
    "a b.json",
    "a%20b.json",
    "ü+&=;,!.json",
    "c:d'e\"f.json",
    "~x.json",
    "a%b",
    "#1?.json",
    "日本.json",
]
BODY = os.urandom(3_000_000)


def test_objects_come_back_as_they_were_put(table_store: TableServer) -> None:
    storage = table_store.open(table_store.url())
    assert storage.put_if_absent("_delta_log/0.json", BODY)
    assert storage.get("_delta_log/0.json") == BODY
    assert storage.get_range("_delta_log/0.json", 1_000_000, 77) == BODY[1_000_000:1_000_077]
    assert storage.get_range("_delta_log/0.json", len(BODY) - 5, 5) == BODY[-5:]
    assert storage.get_range("_delta_log/0.json", 5, 0) == b""
    assert b"".join(storage.get_stream("_delta_log/0.json", 250_000)) == BODY


def test_an_empty_object_is_an_object(table_store: TableServer) -> None:
    storage = table_store.open(table_store.url())
    assert storage.put_if_absent("_delta_log/0.json", b"")
    assert storage.get("_delta_log/0.json") == b""
    assert list(storage.get_stream("_delta_log/0.json", 10)) == []
    assert [(info.name, info.size_bytes) for info in storage.list_from("_delta_log")] == [
        ("_delta_log/0.json", 0)
    ]


def test_a_deleted_object_is_gone_and_deleting_says_whether_there_was_one(table_store: TableServer) -> None:
    storage = table_store.open(table_store.url())
    storage.put_if_absent("_delta_log/_lazy/a.parquet", BODY)
    assert storage.delete("_delta_log/_lazy/a.parquet")
    assert not storage.delete("_delta_log/_lazy/a.parquet")
    assert list(storage.list_from("_delta_log/_lazy")) == []
    assert storage.put_if_absent("_delta_log/_lazy/a.parquet", b"again")


def test_odd_names_are_listed_and_read_as_they_are(table_store: TableServer) -> None:
    storage = table_store.open(table_store.url("a b%25ü"))
    for name in ODD_NAMES:
        assert storage.put_if_absent(f"day=2026-01-01 10%3A00/{name}", name.encode())
    listed = {info.name: info for info in storage.list_from("day=2026-01-01 10%3A00")}
    assert set(listed) == {f"day=2026-01-01 10%3A00/{name}" for name in ODD_NAMES}
    for name, info in listed.items():
        assert storage.get(name).decode() == name.rpartition("/")[2]
        assert info.size_bytes == len(name.rpartition("/")[2].encode())


def test_a_listing_tells_size_and_time(table_store: TableServer) -> None:
    storage = table_store.open(table_store.url())
    storage.put_if_absent("_delta_log/0.json", b"12345")
    [info] = storage.list_from("_delta_log")
    assert info.size_bytes == 5
    assert abs(info.modified_ms - time.time() * 1000) < 60_000
    assert info.etag


def test_a_listing_starts_after_a_name_and_stays_in_its_folder(table_store: TableServer) -> None:
    storage = table_store.open(table_store.url())
    for name in ["1.json", "2.json", "2.json.x", "3.json", "_sidecars/a.parquet", "_sidecars/b/c", "_z"]:
        storage.put_if_absent(f"_delta_log/{name}", b"x")
    storage.put_if_absent("_delta_log2/9.json", b"x")
    storage.put_if_absent("other.json", b"x")

    def names(folder: str, after: str | None = None) -> list[str]:
        return sorted(info.name for info in storage.list_from(folder, after))

    assert names("_delta_log", "2.json") == ["_delta_log/2.json.x", "_delta_log/3.json", "_delta_log/_z"]
    assert names("_delta_log", "2") == [
        f"_delta_log/{name}" for name in ("2.json", "2.json.x", "3.json", "_z")
    ]
    assert names("_delta_log", "zzz") == []
    assert names("") == ["other.json"]
    assert names("_delta_log/_sidecars") == ["_delta_log/_sidecars/a.parquet"]


def test_a_folder_that_does_not_exist_is_empty(table_store: TableServer) -> None:
    assert list(table_store.open(table_store.url()).list_from("_delta_log")) == []


def test_an_absent_object_is_not_found_and_not_tried_again(table_store: TableServer) -> None:
    storage = table_store.open(table_store.url())
    calls = [
        lambda: storage.get("nope"),
        lambda: storage.get_range("nope", 0, 5),
        lambda: storage.get_ranges("nope", [(0, 5), (5_000_000, 5)]),
        lambda: list(storage.get_stream("nope", 5)),
    ]
    for call in calls:
        with pytest.raises(ObjectNotFoundError) as caught:
            call()
        assert caught.value.where == f"{storage.root}/nope"
    assert storage.counters.snapshot().retries == 0


def test_a_range_past_the_end_is_an_error_and_never_short(table_store: TableServer) -> None:
    storage = table_store.open(table_store.url())
    storage.put_if_absent("x", b"0123456789")
    for start, length in ((5, 6), (10, 1), (50, 5)):
        with pytest.raises(StorageError, match="shorter than the bytes asked for"):
            storage.get_range("x", start, length)
    with pytest.raises(StorageError, match="shorter than the bytes asked for"):
        storage.get_ranges("x", [(0, 2), (1_000_000, 5)])
    assert storage.counters.snapshot().retries == 0


def test_near_ranges_are_one_request_and_far_ones_go_side_by_side(table_store: TableServer) -> None:
    storage = table_store.open(table_store.url())
    storage.put_if_absent("x", BODY)
    gap = limits.RANGE_COALESCE_BYTES
    ranges = [(2_000_000, 10), (0, 10), (10 + gap - 1, 10), (2_500_000, 0), (5, 20), (1_000_000, 10)]
    scoped = storage.scoped()
    assert scoped.get_ranges("x", ranges) == [BODY[start : start + length] for start, length in ranges]
    now = scoped.counters.snapshot()
    assert (now.requests_by_kind, now.round_trips) == ({"get_range": 3}, 1)
    assert now.bytes_read == (10 + gap - 1 + 10) + 10 + 10


def test_ten_gets_side_by_side_are_one_round_trip(remote_store: TableServer, remote_proxy: HttpProxy) -> None:
    url = remote_store.url()
    remote_store.put_all(url, {"x": b"0123456789"})
    scoped = open_storage(url, Settings(storage_options=remote_store.through(remote_proxy))).scoped()
    remote_proxy.plan = side_by_side(10)
    with ThreadPoolExecutor(10) as threads:
        assert set(threads.map(lambda _: scoped.get("x"), range(10))) == {b"0123456789"}
    now = scoped.counters.snapshot()
    assert (now.requests, now.bytes_read, now.round_trips) == (10, 100, 1)
    scoped.get("x")
    assert scoped.counters.snapshot().round_trips == 2


def test_one_of_many_racing_writers_wins(table_store: TableServer) -> None:
    storage = table_store.open(table_store.url())
    together = threading.Barrier(8)

    def write(number: int) -> bool:
        together.wait()
        return storage.put_if_absent("_delta_log/_lazy/v1.manifest.json", str(number).encode())

    with ThreadPoolExecutor(8) as threads:
        outcomes = list(threads.map(write, range(8)))
    assert outcomes.count(True) == 1
    assert storage.get("_delta_log/_lazy/v1.manifest.json") == str(outcomes.index(True)).encode()


def test_a_scope_has_its_own_account_and_adds_to_its_parents(table_store: TableServer) -> None:
    storage = table_store.open(table_store.url())
    storage.put_if_absent("x", b"0123456789")
    first, second = storage.scoped(), storage.scoped()
    first.get("x")
    second.get("x")
    second.get_range("x", 0, 4)
    assert first.counters.snapshot().requests == 1
    assert second.counters.snapshot().bytes_read == 14
    assert storage.counters.snapshot().requests_by_kind == {"put": 1, "get": 2, "get_range": 1}
    assert storage.counters.snapshot().bytes_written == 10


def test_after_its_deadline_a_scan_asks_for_nothing(remote_store: TableServer) -> None:
    storage = remote_store.open(remote_store.url())
    storage.put_if_absent("x", BODY)
    deadline = Deadline.after(600)
    late = storage.scoped(deadline)
    stream = late.get_stream("x", 1000)
    assert next(stream)
    msgspec.structs.force_setattr(deadline, "at", time.monotonic())
    for call in (lambda: late.get("x"), lambda: list(stream), lambda: list(late.list_from(""))):
        with pytest.raises(StorageError, match="the scan's deadline"):
            call()


def test_a_stream_that_is_dropped_reads_no_further(remote_store: TableServer) -> None:
    storage = remote_store.open(remote_store.url())
    storage.put_if_absent("x", BODY)
    stream = storage.get_stream("x", 10_000)
    next(stream)
    del stream
    assert storage.counters.snapshot().bytes_read < len(BODY)
