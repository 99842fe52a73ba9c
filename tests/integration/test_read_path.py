"""The same tables on a local folder, on Azure and on S3: same files, counted requests, faults survived."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import lazydelta as ld
from lazydelta.log import open_snapshot
from lazydelta.scan import FileScan, files_of
from tests.support.faulty_storage import fail_at, faulty
from tests.support.proxy import Fault, HttpProxy, always, at, every, side_by_side
from tests.support.reading import keys
from tests.support.servers import TableServer
from tests.support.settling import settled
from tests.support.table_builder import TableBuilder

TRIES = 6
CHECKPOINTS = ["v1", "v1-multipart", "v2-parquet", "v2-json"]


def telemetry(folder: Path, kind: str = "v1", *, commits: int = 12) -> TableBuilder:
    """A checkpoint in the middle, removes and odd names on both sides of it."""
    table = TableBuilder(folder)
    table.commit([f"date=2026-02-0{n}/old {n}%.parquet" for n in range(1, 10)])
    table.commit(["plain"], ["date=2026-02-01/old 1%.parquet"]).checkpoint(kind)
    for n in range(commits):
        table.commit([f"new-{n}"], ["plain"] if n == 3 else [])
    return table


def opened(server: TableServer, url: str, **settings: Any) -> ld.Table:
    return ld.open(url, storage_options={**server.storage_options, **settings})


@pytest.mark.parametrize("kind", CHECKPOINTS)
def test_every_store_gives_the_same_files_by_every_strategy(
    table_store: TableServer, tmp_path: Path, kind: str
) -> None:
    table = telemetry(tmp_path, kind)
    url = table_store.url()
    table_store.upload(tmp_path, url)
    for strategy in ("reverse", "forward", "auto"):
        found = keys(opened(table_store, url).scan(strategy=strategy).files())
        assert sorted(found) == sorted(table.live()), strategy


def test_old_versions_and_times_are_read_from_every_store(table_store: TableServer, tmp_path: Path) -> None:
    table = telemetry(tmp_path)
    url = table_store.url()
    table_store.upload(tmp_path, url)
    for version in (0, 1, 5, table.version):
        opened_there = ld.open(url, version=version, storage_options=table_store.storage_options)
        assert sorted(keys(opened_there.scan().files())) == sorted(table.live(version))
    with pytest.raises(ld.errors.VersionNotFoundError, match="before the first commit"):
        ld.open(url, timestamp="1990-01-01", storage_options=table_store.storage_options)
    with pytest.raises(ld.errors.VersionNotFoundError, match=str(table.version)):
        ld.open(url, version=99, storage_options=table_store.storage_options)


def test_the_first_files_cost_three_round_trips_when_a_checksum_is_there(
    remote_store: TableServer, remote_proxy: HttpProxy, tmp_path: Path
) -> None:
    telemetry(tmp_path).crc()
    url = remote_store.url()
    remote_store.upload(tmp_path, url)
    # The hint, the listing beside a manifest that is not there, then the checksum beside the newest commit.
    remote_proxy.plan = side_by_side(1, 2, 2)
    scan = ld.open(url, storage_options=remote_store.through(remote_proxy)).scan(limit=1)
    assert len(list(scan.files())) == 1
    report = scan.explain()
    assert report.round_trips == 3
    assert report.requests == 5 == len(remote_proxy.requests)
    assert report.requests_by_kind == {"get": 4, "list": 1}


def test_the_tail_is_fetched_side_by_side_and_read_in_order(
    remote_store: TableServer, remote_proxy: HttpProxy, tmp_path: Path
) -> None:
    telemetry(tmp_path, commits=20)
    url = remote_store.url()
    remote_store.upload(tmp_path, url)
    remote_proxy.latency_ms = 60
    trips: list[int] = []
    # Hint, listing, twenty commits ten at a time, footer, two places of the checkpoint's columns, rows. A
    # busy machine may hold one of them back.
    while not trips or trips[-1] > 9:
        assert len(trips) < TRIES, trips
        scan = ld.open(url, storage_options=remote_store.through(remote_proxy)).scan(strategy="reverse")
        newest = [file.path for file in scan.files() if file.path.startswith("new-")]
        assert newest == [f"new-{n}" for n in reversed(range(20))]
        trips.append(scan.explain().round_trips)


def test_a_scan_that_is_closed_asks_for_nothing_more(
    remote_store: TableServer, remote_proxy: HttpProxy, tmp_path: Path
) -> None:
    telemetry(tmp_path, commits=40).crc()
    url = remote_store.url()
    remote_store.upload(tmp_path, url)
    remote_proxy.latency_ms = 30
    table = ld.open(url, storage_options=remote_store.through(remote_proxy))
    files = table.scan(strategy="reverse", commit_read_parallelism=2).files()
    next(files)
    files.close()
    # What was under way may still end.
    assert settled(lambda: len(remote_proxy.requests)) < 20


@pytest.mark.parametrize(
    "fault",
    [
        Fault(kind="status", status=503),
        Fault(kind="status", status=429, retry_after=0),
        Fault(kind="cut", after_bytes=10),
        Fault(kind="reset"),
    ],
    ids=["503", "429", "cut", "reset"],
)
def test_passing_faults_are_retried_and_counted(
    remote_store: TableServer, remote_proxy: HttpProxy, tmp_path: Path, fault: Fault
) -> None:
    table = telemetry(tmp_path)
    url = remote_store.url()
    remote_store.upload(tmp_path, url)
    remote_proxy.plan = every(4, fault)
    options = {**remote_store.through(remote_proxy), "delta.request.backoff_seconds": "0.01"}
    scan = ld.open(url, storage_options=options).scan()
    assert sorted(keys(scan.files())) == sorted(table.live())
    assert scan.explain().retries > 0


def test_a_store_that_stalls_is_a_storage_error_that_says_what_to_do(
    remote_store: TableServer, remote_proxy: HttpProxy, tmp_path: Path
) -> None:
    telemetry(tmp_path)
    url = remote_store.url()
    remote_store.upload(tmp_path, url)
    remote_proxy.plan = always(Fault(kind="stall", seconds=30))
    options = {**remote_store.through(remote_proxy), "delta.request.timeout_seconds": "1"}
    with pytest.raises(ld.errors.StorageError, match="fix:"):
        ld.open(url, storage_options=options)


def test_a_store_that_breaks_in_the_middle_ends_the_stream_with_an_error(
    remote_store: TableServer, remote_proxy: HttpProxy, tmp_path: Path
) -> None:
    telemetry(tmp_path).crc()
    url = remote_store.url()
    remote_store.upload(tmp_path, url)
    options = {
        **remote_store.through(remote_proxy),
        "delta.request.attempts_max": "2",
        "delta.request.backoff_seconds": "0.01",
    }
    scan = ld.open(url, storage_options=options).scan(strategy="reverse")
    remote_proxy.plan = always(Fault(kind="status", status=500))
    with pytest.raises(ld.errors.StorageError):
        list(scan.files())


def test_a_deadline_for_the_whole_scan_ends_it(
    remote_store: TableServer, remote_proxy: HttpProxy, tmp_path: Path
) -> None:
    telemetry(tmp_path, commits=30).crc()
    url = remote_store.url()
    remote_store.upload(tmp_path, url)
    table = ld.open(url, storage_options=remote_store.through(remote_proxy))
    remote_proxy.latency_ms = 100
    with pytest.raises(ld.errors.StorageError, match="deadline"):
        list(table.scan(strategy="reverse", scan_timeout_seconds=0.3, commit_read_parallelism=1).files())


def test_refused_credentials_are_an_access_error(azurite: TableServer, tmp_path: Path) -> None:
    url = azurite.url()
    azurite.upload(telemetry(tmp_path).path, url)
    wrong = {**azurite.storage_options, "account_key": "d3Jvbmc="}
    with pytest.raises(ld.errors.AccessDeniedError) as refused:
        ld.open(url, storage_options=wrong)
    assert "d3Jvbmc=" not in str(refused.value)


def test_a_container_that_is_not_there_is_no_table(remote_store: TableServer) -> None:
    address = "s3://no-such-bucket/t" if remote_store.kind == "s3" else "abfss://nothere@devstoreaccount1/t"
    with pytest.raises(ld.errors.TableNotFoundError):
        ld.open(address, storage_options=remote_store.storage_options)


@pytest.mark.parametrize("kind", CHECKPOINTS)
@pytest.mark.parametrize("fault", ["permanent", "cut", "not_found"])
def test_a_fault_at_any_storage_call_gives_the_right_answer_or_an_error(
    local_server: TableServer, tmp_path: Path, kind: str, fault: Any
) -> None:
    table = telemetry(tmp_path, kind, commits=4).crc()
    for strategy in ("reverse", "forward"):
        for number in range(1, 60):
            storage = faulty(local_server.open(str(tmp_path)), fail_at(number, fault))
            found: list[Any] = []
            try:
                scan = FileScan(open_snapshot(storage, parallelism=3), ld.LazyScanConfig(strategy=strategy))
                for batch in scan.batches():
                    found.extend(keys(files_of(batch)))
            except ld.errors.LazyDeltaError:
                assert len(found) == len(set(found))
                assert set(found) <= set(table.live())
            else:
                assert sorted(found) == sorted(table.live()), (strategy, number)
            if number > len(storage.log.calls):
                break
        else:
            pytest.fail("the scan never ended without meeting the fault")


def test_a_fault_at_one_request_of_many_is_met_once(
    remote_store: TableServer, remote_proxy: HttpProxy, tmp_path: Path
) -> None:
    table = telemetry(tmp_path)
    url = remote_store.url()
    remote_store.upload(tmp_path, url)
    remote_proxy.plan = at({3: Fault(kind="status", status=500)})
    options = {**remote_store.through(remote_proxy), "delta.request.backoff_seconds": "0.01"}
    scan = ld.open(url, storage_options=options).scan()
    assert sorted(keys(scan.files())) == sorted(table.live())
    assert scan.explain().retries == 1
