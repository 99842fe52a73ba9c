"""What a reload takes, what it leaves as it was, and what it must not take."""

from __future__ import annotations

import logging
import socket
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import flight

from lazydelta.errors import LazyDeltaError
from lazydelta.memory_budget import PROCESS_MEMORY
from lazydelta.serve.process import ServerProcess
from lazydelta.serve.sign_in import token_digest
from tests.support.row_tables import readings_table
from tests.support.serving import bearer, planned, running_server
from tests.support.sharing import Sharing

CLIENT = f'[[clients]]\nname = "ann"\ntoken_sha256 = "{token_digest("ann-token")}"\n'


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    return readings_table(tmp_path_factory.mktemp("served"), hours=1)


def test_a_server_that_others_reach_does_not_open_up_by_a_reload(
    url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A file that would be right at a start: the address it was started with is still listened at."""
    with running_server(tmp_path, {"readings": url}, f'host = "0.0.0.0"\n{CLIENT}') as server:
        text = server.path.read_text("utf-8").replace(CLIENT, "").replace("0.0.0.0", "127.0.0.1")
        server.path.write_text(text, "utf-8")
        assert not server.process.reload()
        assert "0.0.0.0 is listened at until the next start" in caplog.text
        with server.flight() as client, pytest.raises(flight.FlightUnauthenticatedError):
            planned(client, table="readings")
        assert Sharing(server).ask("GET", "/metrics").status == 401


def test_clients_roles_and_limits_count_at_once_and_ports_at_the_next_start(
    url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    more = f'{CLIENT}roles = ["readers"]\n'
    memory = PROCESS_MEMORY.limit_bytes
    with running_server(tmp_path, {"readings": url}, more) as server, server.flight() as client:
        served = server.process.served
        text = server.path.read_text("utf-8") + 'readers = ["readers"]\n'
        server.path.write_text(text, "utf-8")
        assert server.process.reload()
        ticket = planned(client, bearer("ann-token"), table="readings").endpoints[0].ticket

        lost = text.replace('roles = ["readers"]', "roles = []").replace("http_port = 0", "http_port = 1")
        limits = "[limits]\nmemory_bytes = 123_000_000\nscans = 3\n"
        server.path.write_text(lost + limits, "utf-8")
        with caplog.at_level(logging.WARNING):
            assert server.process.reload()
        assert "in force from the next start on: server.http_port" in caplog.text
        assert "'readers' is no client and no role" in caplog.text
        assert served.config.server.http_port == 0
        assert (PROCESS_MEMORY.limit_bytes, served.admission.limits.scans) == (123_000_000, 3)
        for ask in (
            lambda: planned(client, bearer("ann-token"), table="readings"),
            lambda: client.do_get(ticket, bearer("ann-token")).read_all(),
        ):
            with pytest.raises(pa.ArrowKeyError, match="there is no table"):
                ask()
        server.path.write_text(text, "utf-8")
        assert server.process.reload()
        assert PROCESS_MEMORY.limit_bytes == memory
        assert client.do_get(ticket, bearer("ann-token")).read_all().num_rows == 30


def test_both_protocols_listen_at_an_address_of_six(url: str, tmp_path: Path) -> None:
    path = tmp_path / "serve.toml"
    path.write_text(
        f'[server]\nhost = "::1"\nflight_port = 0\nhttp_port = 0\n[tables.readings]\nurl = "{url}"\n', "utf-8"
    )
    process = ServerProcess(str(path), environment={})
    if not has_addresses_of_six():
        with pytest.raises(LazyDeltaError, match=r"server\.(http|flight)_port: ::1"):
            process.start()
        return
    ports = process.start()
    try:
        with flight.connect(f"grpc://[::1]:{ports.flight}") as client:
            assert planned(client, table="readings").endpoints
        with socket.create_connection(("::1", ports.http or 0), timeout=60) as connection:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            assert connection.recv(100).startswith(b"HTTP/1.1 200")
    finally:
        assert process.stop()


def test_a_second_server_on_the_same_ports_is_refused(url: str, tmp_path: Path) -> None:
    with running_server(tmp_path, {"readings": url}) as server:
        for key, port in (("flight_port", server.ports.flight), ("http_port", server.ports.http)):
            path = tmp_path / f"{key}.toml"
            path.write_text(f"[server]\n{key} = {port}\n", "utf-8")
            with pytest.raises(Exception, match=rf"server\.{key}: .* Address already in use"):
                ServerProcess(str(path), environment={}).start()


def has_addresses_of_six() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True
