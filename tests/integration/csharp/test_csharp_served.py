"""The C# client against the server itself: the files of the scan in process; scans end with their client."""

from __future__ import annotations

import hashlib
import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

import lazydelta as ld
from tests.support.csharp import Driver
from tests.support.row_tables import eventually, readings_table
from tests.support.serving import RunningServer, running_server
from tests.support.table_builder import TableBuilder

TOKEN = "the-token-of-ann"
CLIENTS = f"""
[[clients]]
name = "ann"
token_sha256 = "{hashlib.sha256(TOKEN.encode()).hexdigest()}"
"""


@pytest.fixture(scope="module")
def readings(tmp_path_factory: pytest.TempPathFactory) -> str:
    return readings_table(tmp_path_factory.mktemp("served-readings"), hours=4)


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, readings: str, shared_table: str
) -> Iterator[RunningServer]:
    builder = TableBuilder(tmp_path_factory.mktemp("served-many"))
    for commit in range(4):
        builder.commit([f"f-{commit}-{number}-{'x' * 200}.parquet" for number in range(10_000)])
    tables = {"readings": readings, "mixed": shared_table, "many": str(builder.path)}
    more = CLIENTS + "".join(
        f'[tables.{name}]\nurl = {json.dumps(url)}\nshare = "lake"\nschema = "own"\n'
        for name, url in tables.items()
    )
    with running_server(tmp_path_factory.mktemp("served"), {}, more) as running:
        yield running


def test_files_are_those_of_the_scan_in_process(
    driver: Driver, server: RunningServer, shared_table: str
) -> None:
    done = driver("list", "http", _endpoint(server), TOKEN, "lake.own.mixed")
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    files = list(ld.open(shared_table).scan().files())
    assert [(line["size"], line["modified"], line["partitions"]) for line in found] == [
        (file.size, file.modification_time, file.partition_values) for file in files
    ]
    vectors = [line["vector"][-1] for line in found if "vector" in line]
    assert vectors == [str(file.deletion_vector.cardinality) for file in files if file.deletion_vector]


def test_a_path_is_a_url_that_gives_the_file(driver: Driver, server: RunningServer, readings: str) -> None:
    done = driver("list", "http", _endpoint(server), TOKEN, "lake.own.readings", "limit=1")
    (file,) = ld.open(readings).scan(limit=1).files()
    with urllib.request.urlopen(json.loads(done.stdout)["path"], timeout=60) as answer:
        assert answer.read() == (Path(readings) / file.path).read_bytes()


def test_a_filter_leaves_out_the_same_files(driver: Driver, server: RunningServer, readings: str) -> None:
    predicate = '{"_event_hour": {"gte": "2026021002"}}'
    done = driver("list", "http", _endpoint(server), TOKEN, "lake.own.readings", f"predicate={predicate}")
    sizes = [json.loads(line)["size"] for line in done.stdout.splitlines()]
    assert sizes == [file.size for file in ld.open(readings).scan(json.loads(predicate)).files()]
    assert len(sizes) == 2


@pytest.mark.parametrize("action", ["break", "dispose"])
def test_leaving_early_ends_the_scan_of_the_server(
    driver: Driver, server: RunningServer, action: str
) -> None:
    running = driver.start(action, "http", _endpoint(server), TOKEN, "lake.own.many")
    with running:
        assert running.stdout.readline()
        assert eventually(lambda: _scans_running(server) == 0)
        assert running.poll() is None
        running.communicate("\n", timeout=120)


def test_every_file_of_a_large_answer_arrives(driver: Driver, server: RunningServer) -> None:
    done = driver("count", "http", _endpoint(server), TOKEN, "lake.own.many")
    assert done.stdout.split()[:2] == ["40000", "40000000"], done.stderr


def test_what_the_server_refuses_has_its_code(driver: Driver, server: RunningServer) -> None:
    refused = driver("list", "http", _endpoint(server), "wrong", "lake.own.readings")
    assert refused.returncode == 8 and "fix:" in refused.stderr
    unknown = driver("list", "http", _endpoint(server), TOKEN, "lake.own.nothing")
    assert unknown.returncode == 3 and "fix:" in unknown.stderr
    late = driver("list", "http", _endpoint(server), TOKEN, "lake.own.readings", "version=99")
    assert late.returncode == 4 and "99" in late.stderr


def _endpoint(server: RunningServer) -> str:
    return f"{server.http_url}/delta-sharing"


def _scans_running(server: RunningServer) -> int:
    return len(server.process.served.admission.running())
