"""The bucket that the ladder reads from behaves like a store, and its account is right."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bench.ladder_runs import Place
from bench.ladder_server import make_server
from lazydelta.settings import Settings
from lazydelta.storage import ObjectNotFoundError, Storage, open_storage

LATENCY_MS = 20.0


@pytest.fixture
def bucket(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Place]:
    """As far away as the test says, if it does."""
    log = tmp_path / "tables" / "one" / "_delta_log"
    log.mkdir(parents=True)
    for number in range(5):
        (log / f"{number:020d}.json").write_bytes(b"0123456789" * (number + 1))
    (tmp_path / "secret").write_bytes(b"outside")
    server = make_server(tmp_path / "tables", getattr(request, "param", LATENCY_MS))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield Place(name="store", account=f"http://127.0.0.1:{server.server_port}")
    server.shutdown()
    server.server_close()
    thread.join()


def _storage(bucket: Place) -> Storage:
    return open_storage("s3://ladder/one", Settings(storage_options=bucket.options()))


def _account(bucket: Place, word: str = "account") -> Any:
    with urllib.request.urlopen(f"{bucket.account}/-/{word}") as answer:
        return json.load(answer)


def test_objects_ranges_and_listings_are_those_of_the_folder(bucket: Place) -> None:
    storage = _storage(bucket)
    third = f"_delta_log/{2:020d}.json"
    assert storage.get(third) == b"0123456789" * 3
    assert storage.get_range(third, 8, 4) == b"8901"
    listed = sorted(info.name for info in storage.list_from("_delta_log", after=f"{2:020d}.json"))
    assert listed == [f"_delta_log/{number:020d}.json" for number in (3, 4)]


def test_what_is_not_there_is_not_found(bucket: Place) -> None:
    with pytest.raises(ObjectNotFoundError):
        _storage(bucket).get("_delta_log/none.json")


def test_nothing_outside_the_folder_is_served(bucket: Place) -> None:
    with pytest.raises(urllib.error.HTTPError) as refusal:
        urllib.request.urlopen(f"{bucket.account}/ladder/%2e%2e/secret")
    with refusal.value:
        assert refusal.value.code == 404


def test_every_request_waits(bucket: Place) -> None:
    storage = _storage(bucket)
    began = time.perf_counter()
    storage.get(f"_delta_log/{0:020d}.json")
    assert time.perf_counter() - began >= LATENCY_MS / 1000


@pytest.mark.parametrize("bucket", [500.0], indirect=True)  # longer than a busy machine holds one back
def test_the_account_tells_requests_bytes_and_what_went_side_by_side(bucket: Place) -> None:
    storage = _storage(bucket)
    _account(bucket, "reset")
    storage.get(f"_delta_log/{0:020d}.json")
    with ThreadPoolExecutor(3) as threads:
        list(threads.map(storage.get, [f"_delta_log/{number:020d}.json" for number in (1, 2, 3)]))
    told = _account(bucket)
    assert told["requests"] == 4
    assert told["bytes_read"] == 10 + 20 + 30 + 40
    assert told["round_trips"] == 2
    assert [row["depth"] for row in _account(bucket, "log")] == [1, 2, 2, 2]


def test_the_reader_and_the_server_count_alike(bucket: Place) -> None:
    storage = _storage(bucket)
    _account(bucket, "reset")
    list(storage.list_from("_delta_log"))
    storage.get(f"_delta_log/{4:020d}.json")
    own, told = msgspec.to_builtins(storage.counters.snapshot()), _account(bucket)
    names = ("requests", "bytes_read", "round_trips")
    assert [own[name] for name in names] == [told[name] for name in names]
