"""Lines go out as fast as the client reads: stalled, gone, cut off by an error, or by the server's end."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from lazydelta.serve.admitted import Admitted
from lazydelta.serve.sharing import PREFIX
from tests.support import actions
from tests.support.row_tables import eventually
from tests.support.serving import RunningServer, running_server, threads_named
from tests.support.sharing import Sharing, as_delta, table_path
from tests.support.table_builder import TableBuilder

FILES = 12_000
PLAIN = {"minReaderVersion": 1, "minWriterVersion": 2}
STATS = json.dumps({"numRecords": 1, "minValues": {"device_id": "x" * 1500}})


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """So many files that their lines are far more than what lies between a server and a client."""
    table = TableBuilder(tmp_path_factory.mktemp("large") / "t", protocol=PLAIN)
    table.commit(adds=["first"])
    for part in range(4):
        names = [f"{part}-{number:06}" for number in range(FILES // 4)]
        table.commit(adds=[actions.add(name, stats=STATS) for name in names])
    return str(table.path)


@pytest.fixture
def server(url: str, tmp_path: Path) -> Iterator[RunningServer]:
    with running_server(tmp_path, {"large": url}) as running:
        yield running


@contextmanager
def slow_client(server: RunningServer, path: str = "/query", body: bytes = b"{}") -> Iterator[socket.socket]:
    """A client that asked for the files and read the first lines, no more."""
    with socket.create_connection(("127.0.0.1", server.ports.http or 0)) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        head = f"POST {PREFIX}{table_path('large')}{path} HTTP/1.1\r\nHost: localhost\r\n"
        client.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        client.settimeout(60)
        assert b" 200 OK" in client.recv(16_384)
        yield client


def running(server: RunningServer) -> list[Admitted]:
    return server.process.served.admission.running()


def stalled(server: RunningServer) -> Admitted:
    """The only scan, once nothing is pulled from it any more."""
    assert eventually(lambda: len(running(server)) == 1 and running(server)[0].rows > 0)
    (scan,) = running(server)
    seen = [-1]
    while len(seen) < 3 or len(set(seen[-3:])) > 1:  # the same number after a second, and after another
        seen.append(scan.rows)
        time.sleep(1.0)
    return scan


def test_all_files_come(server: RunningServer) -> None:
    answer = Sharing(server).query("large")
    assert len(answer.files) == FILES + 1
    assert eventually(lambda: not running(server))


def test_a_stalled_client_is_not_read_ahead_for(server: RunningServer) -> None:
    with slow_client(server):
        scan = stalled(server)
        assert 0 < scan.rows < FILES / 2
        time.sleep(0.5)
        assert running(server) == [scan]


@pytest.mark.parametrize("is_abrupt", [True, False])
def test_a_client_that_goes_away_ends_its_scan(server: RunningServer, is_abrupt: bool) -> None:
    with slow_client(server) as client:
        scan = stalled(server)
        given = scan.rows
        if is_abrupt:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        client.close()
        assert eventually(lambda: not running(server))
        assert scan.rows - given <= 2 * 512


def test_many_clients_that_go_away_leave_nothing_behind(server: RunningServer) -> None:
    for _ in range(8):
        with slow_client(server):
            pass
    assert eventually(lambda: not running(server))
    assert eventually(lambda: not threads_named("lazydelta-commit"))


def test_a_server_that_goes_down_tells_a_client_that_reads(server: RunningServer) -> None:
    with slow_client(server) as client:
        stalled(server)
        found = bytearray()

        def read() -> None:
            while part := client.recv(1 << 16):
                found.extend(part)
                time.sleep(0.01)  # slower than the server

        reading = threading.Thread(target=read)
        reading.start()
        server.process.served.admission.drain(0.0)
        reading.join(60)
        assert not reading.is_alive()
        assert b'"errorMessage":"the scan was stopped: the server goes down' in found[-2000:]
        assert not found.endswith(b"0\r\n\r\n")  # cut off: the client did not ask how it ends
        assert eventually(lambda: not running(server))


def test_a_server_that_goes_down_does_not_wait_for_a_stalled_client(server: RunningServer) -> None:
    with slow_client(server):
        stalled(server)
        server.process.served.admission.drain(0.0)
        assert eventually(lambda: not running(server))
        server.process.stop()
        assert eventually(lambda: not threads_named("lazydelta-http"))
    assert eventually(lambda: not threads_named("AnyIO"))


def test_an_error_behind_the_first_lines_is_told_by_the_last(tmp_path: Path) -> None:
    table = TableBuilder(tmp_path / "t", protocol=PLAIN).commit(adds=["old"])
    for part in range(4):
        table.commit(adds=[actions.add(f"{part}-{number:06}", stats=STATS) for number in range(2000)])
    table.crc()
    table.corrupt(f"{1:020}.json", b'{"add": 5}\n' * 2)
    with running_server(tmp_path, {"broken": str(table.path)}) as server:
        answer = Sharing(server).query("broken", as_delta(end=True))
        assert answer.status == 200
        assert len(answer.files) >= 2000
        assert answer.end is not None and "line 1" in answer.end["errorMessage"]
        assert str(tmp_path) not in json.dumps(answer.end)
        with pytest.raises(Exception, match=r"IncompleteRead"):
            Sharing(server).query("broken")


def test_too_many_scans_of_a_client_are_refused_with_the_limit(url: str, tmp_path: Path) -> None:
    limits = "[limits]\nscans_per_client = 1\nwaiting_seconds = 0.1\n"
    with running_server(tmp_path, {"large": url}, limits) as server, slow_client(server):
        stalled(server)
        answer = Sharing(server).query("large")
        assert answer.status == 429
        assert answer.json["errorCode"] == "RESOURCE_EXHAUSTED"
        assert "scans_per_client" in answer.json["message"]


def test_a_client_that_takes_nothing_for_too_long_is_cut_off(url: str, tmp_path: Path) -> None:
    with running_server(tmp_path, {"large": url}, "[limits]\nstalled_seconds = 3\n") as server:
        with slow_client(server) as client:
            assert eventually(lambda: not running(server))
            on_its_way = 0
            with suppress(ConnectionError):
                while part := client.recv(1 << 20):
                    on_its_way += len(part)
            assert 0 < on_its_way < FILES * 1500 / 2
        assert len(Sharing(server).query("large").files) == FILES + 1


def test_many_clients_at_once_have_their_answers(server: RunningServer) -> None:
    def ask(number: int) -> int:
        return len(Sharing(server).query("large", limitHint=number).files)

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(ask, range(60))) == list(range(60))
    assert eventually(lambda: not running(server))


@pytest.mark.parametrize("actual", [2 << 20, 4 << 20])
def test_a_file_of_another_size_than_told_is_cut_off(tmp_path: Path, actual: int) -> None:
    table = TableBuilder(tmp_path / "t", protocol=PLAIN).commit(adds=[actions.add("short", size=3 << 20)])
    (table.path / "short").write_bytes(bytes(actual))
    with running_server(tmp_path, {"cut": str(table.path)}) as server:
        client = Sharing(server)
        link = client.query("cut").files[0]["url"]
        with pytest.raises(Exception, match=r"IncompleteRead"):
            client.ask("GET", link)
        assert client.ask("GET", link, headers={"Range": "bytes=0-9"}).body == bytes(10)


def test_calls_are_counted_and_logged(server: RunningServer, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "lazydelta.access"):
        client = Sharing(server)
        client.headers["x-request-id"] = "asked-by-the-test"
        client.query("large", limitHint=5)
        client.query("nothing")
        client.query("large", limitHint="many")
        client.get("/shares", maxResults=-1)
        with slow_client(server):
            stalled(server)
        assert eventually(lambda: len(caplog.records) == 5)
    lines = [json.loads(record.getMessage()) for record in caplog.records]
    assert [(line["method"], line["status"]) for line in lines] == [
        ("query", "ok"),
        ("query", "TableNotFound"),
        ("query", "InvalidRequest"),
        ("shares", "InvalidRequest"),
        ("query", "cancelled"),
    ]
    assert (lines[0]["id"], lines[0]["table"], lines[0]["rows"]) == ("asked-by-the-test", "large", 5)
    metrics = client.ask("GET", "/metrics").body.decode()
    assert 'lazydelta_calls_total{protocol="sharing",method="query",status="ok"} 1' in metrics
