"""The end of the server, as clients of HTTP see it: what they are sent comes whole, while there is time."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tests.support.serving import running_server
from tests.support.sharing import Sharing

MIB = 1 << 20


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table of one file that no buffer between two processes holds."""
    place = tmp_path_factory.mktemp("large") / "table"
    write_deltalake(str(place), pa.table({"noise": [os.urandom(2 * MIB) for _ in range(16)]}))
    return str(place)


def slow_download(link: str) -> socket.socket:
    """A connection that has asked for the file, and of which little has been read."""
    place = urlsplit(link)
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
    connection.settimeout(60)
    connection.connect((place.hostname or "", place.port or 0))
    asked = f"GET {place.path}?{place.query} HTTP/1.1\r\nHost: {place.netloc}\r\nConnection: close\r\n\r\n"
    connection.sendall(asked.encode())
    assert connection.recv(1024).startswith(b"HTTP/1.1 200")
    return connection


def read_rest(connection: socket.socket) -> int:
    count = 0
    try:
        while chunk := connection.recv(1 << 20):
            count += len(chunk)
    except ConnectionError:
        pass
    return count


@pytest.mark.parametrize(("drain_seconds", "is_whole"), [(30, True), (0, False)])
def test_a_download_goes_on_while_the_server_drains(
    url: str, tmp_path: Path, drain_seconds: int, is_whole: bool
) -> None:
    ended: list[bool] = []
    with running_server(tmp_path, {"large": url}) as server:
        config = server.path.read_text("utf-8")
        server.path.write_text(
            config.replace("drain_seconds = 5", f"drain_seconds = {drain_seconds}"), "utf-8"
        )
        assert server.process.reload()
        (file,) = Sharing(server).query("large").files
        with slow_download(file["url"]) as connection:
            ending = threading.Thread(target=lambda: ended.append(server.process.stop()))
            ending.start()
            ending.join(4.0 if is_whole else 60)  # longer than answers get at the least, or to its end
            count = read_rest(connection)
        ending.join(60)
        assert (count > file["size"] - 2048) == is_whole
        assert ended == [is_whole]
