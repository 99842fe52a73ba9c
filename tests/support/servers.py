"""Object stores that a test run starts itself: Azurite, moto's S3, and a local folder with the same face.

Contract: `table_store` runs a test's body on all three; `azurite` and `s3_server` are one process each per
run, on free loopback ports that nobody else is given, stopped at the end. `.url(name)` is a table root
nobody used before. Azurite is installed once, pinned, into the project's cache (`LAZYDELTA_CACHE`, `.cache`
of the repository by default) with the machine's npm, or with the one that the dev dependencies bring.
"""

from __future__ import annotations

import base64
import email.utils
import hashlib
import hmac
import http.client
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import obstore
import pytest
from obstore.store import AzureStore, S3Store

from lazydelta.settings import Settings
from lazydelta.storage import Storage, open_storage, parse_address
from tests.support.node import installed, node
from tests.support.proxy import HttpProxy

AZURITE_VERSION = "3.37.0"
# Azurite's telemetry client, which is off here: a later version needs a dependency that mirrors may lack.
AZURITE_PACKAGE = {
    "private": True,
    "dependencies": {"azurite": AZURITE_VERSION},
    "overrides": {"applicationinsights": "3.16.0"},
}
AZURITE_ACCOUNT = "devstoreaccount1"
# Azurite's published development key; it opens nothing else.
AZURITE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
CONTAINER = "tables"
_CLIENT_OPTIONS = {"allow_http", "root_certificate"}  # of the connection, not of the store
START_SECONDS_MAX = 180.0  # a busy machine takes its time
_PORTS = range(20_000, 32_000)  # below those that systems give to whoever asks for any


class TableServer:
    """A place to put tables: its kind, its options, fresh roots and a way to fill them."""

    def __init__(
        self, *, kind: str, base_url: str, port: int = 0, options: dict[str, str] | None = None
    ) -> None:
        self.kind = kind
        self.port = port
        self.storage_options = options or {}
        self._base_url = base_url

    def __repr__(self) -> str:
        return f"TableServer({self.kind})"

    @property
    def settings(self) -> Settings:
        """Settings that open tables here; failures end quickly."""
        return Settings(
            storage_options=self.storage_options, request_timeout_seconds=20.0, backoff_first_seconds=0.01
        )

    def url(self, name: str = "table") -> str:
        """A table root that no other test has."""
        return f"{self._base_url}/{name}-{uuid.uuid4().hex[:12]}"

    def open(self, url: str) -> Storage:
        """The storage for a root on this server."""
        return open_storage(url, self.settings)

    def upload(self, local_folder: Path | str, url: str) -> None:
        """Copy a folder, as it is, to the table root."""
        if self.kind == "local":
            shutil.copytree(local_folder, parse_address(url).path, dirs_exist_ok=True)
            return
        files = [path for path in Path(local_folder).rglob("*") if path.is_file()]
        self.put_all(url, {str(path.relative_to(local_folder)): path for path in files})

    def put_all(self, url: str, bodies: dict[str, bytes | Path]) -> None:
        """Write objects by name below the table root, replacing what is there."""
        if self.kind == "local":
            address = parse_address(url)
            for name, body in bodies.items():
                target = Path(address.path) / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(body.read_bytes() if isinstance(body, Path) else body)
            return
        store, path = self.objects(url)

        def put(name: str) -> None:
            obstore.put(store, f"{path}/{name}" if path else name, bodies[name])

        with ThreadPoolExecutor(8) as threads:
            list(threads.map(put, bodies))

    def objects(self, url: str) -> tuple[AzureStore | S3Store, str]:
        """A client of the server that is not the product's, and the path of the table root there."""
        address = parse_address(url)
        options = dict(self.storage_options)
        client: Any = {name: options.pop(name) for name in _CLIENT_OPTIONS & options.keys()}
        config: Any = options
        if self.kind == "s3":
            return S3Store(address.container, config=config, client_options=client), address.path
        config |= {"account_name": address.account}
        return AzureStore(address.container, config=config, client_options=client), address.path

    def through(self, proxy: HttpProxy) -> dict[str, str]:
        """The options that reach this server by way of the proxy."""
        here, there = f"127.0.0.1:{self.port}", f"127.0.0.1:{proxy.port}"
        return {key: value.replace(here, there) for key, value in self.storage_options.items()}


@pytest.fixture(scope="session")
def local_server(tmp_path_factory: pytest.TempPathFactory) -> TableServer:
    return TableServer(kind="local", base_url=str(tmp_path_factory.mktemp("tables")))


@pytest.fixture(scope="session")
def azurite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TableServer]:
    with running_azurite(tmp_path_factory.mktemp("azurite")) as server:
        yield server


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TableServer]:
    with running_moto(tmp_path_factory.mktemp("moto-log"), {}) as server:
        yield server


@pytest.fixture(scope="session")
def s3_server_that_checks_keys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TableServer]:
    """moto with its permission checks on: no key is known to it, so every one is refused."""
    with running_moto(tmp_path_factory.mktemp("moto-log"), {"INITIAL_NO_AUTH_ACTION_COUNT": "1"}) as server:
        yield server


@pytest.fixture(params=["local", "azurite", "s3"])
def table_store(request: pytest.FixtureRequest) -> TableServer:
    return request.getfixturevalue(_FIXTURES[request.param])


@pytest.fixture(params=["azurite", "s3"])
def remote_store(request: pytest.FixtureRequest) -> TableServer:
    return request.getfixturevalue(_FIXTURES[request.param])


@pytest.fixture
def remote_proxy(remote_store: TableServer) -> Iterator[HttpProxy]:
    """A proxy in front of `remote_store`; open tables with `remote_store.through(remote_proxy)`."""
    with HttpProxy(remote_store.port) as proxy:
        yield proxy


_FIXTURES = {"local": "local_server", "azurite": "azurite", "s3": "s3_server"}


@contextmanager
def running_azurite(place: Path) -> Iterator[TableServer]:
    """Azurite with its container; what it keeps and says is below `place`."""
    port = _free_port()
    command = [node(), str(_azurite_script()), "--silent", "--skipApiVersionCheck", "--disableTelemetry"]
    command += ["--location", str(place / "azurite"), "--blobHost", "127.0.0.1"]
    with _running([*command, "--blobPort", str(port)], port, place):
        _create_azure_container(port)
        yield TableServer(
            kind="azurite",
            port=port,
            base_url=f"abfss://{CONTAINER}@{AZURITE_ACCOUNT}",
            options={
                "account_key": AZURITE_KEY,
                "endpoint": f"http://127.0.0.1:{port}/{AZURITE_ACCOUNT}",
                "allow_http": "true",
            },
        )


@contextmanager
def running_moto(log_folder: Path, environment: dict[str, str]) -> Iterator[TableServer]:
    port = _free_port()
    command = [sys.executable, "-m", "moto.server", "--host", "127.0.0.1", "--port", str(port)]
    with _running(command, port, log_folder, environment):
        _expect(port, "PUT", f"/{CONTAINER}", {}, 200)
        yield TableServer(
            kind="s3",
            port=port,
            base_url=f"s3://{CONTAINER}",
            options={
                "access_key_id": "testing",
                "secret_access_key": "testing",
                "endpoint": f"http://127.0.0.1:{port}",
                "region": "us-east-1",
                "allow_http": "true",
            },
        )


@contextmanager
def _running(
    command: list[str], port: int, log_folder: Path, environment: dict[str, str] | None = None
) -> Iterator[None]:
    """The process, once its port answers; stopped at the end."""
    log = log_folder / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=output, env={**os.environ, **(environment or {})}
        )
    try:
        give_up = time.monotonic() + START_SECONDS_MAX
        while not _answers(port):
            if process.poll() is not None or time.monotonic() > give_up:
                raise RuntimeError(f"{command[0]} did not start:\n{log.read_text(errors='replace')}")
            time.sleep(0.05)
        yield
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def _free_port() -> int:
    """A port that is nobody's until the server takes it, seconds from now: no connection is given it."""
    while True:
        port = random.SystemRandom().choice(_PORTS)
        with socket.socket() as probe, suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            return port


def _create_azure_container(port: int) -> None:
    """obstore cannot create containers, so the one request that does it is signed here."""
    path, headers = container_request(AZURITE_ACCOUNT, AZURITE_KEY)
    _expect(port, "PUT", path, headers, 201)


def container_request(account: str, key: str) -> tuple[str, dict[str, str]]:
    """Path and headers of a PUT that creates the container."""
    date = email.utils.formatdate(usegmt=True)
    resource = f"/{account}/{account}/{CONTAINER}\nrestype:container"
    signed = "\n".join(["PUT", *[""] * 11, f"x-ms-date:{date}", "x-ms-version:2021-08-06", resource])
    digest = hmac.new(base64.b64decode(key), signed.encode(), hashlib.sha256).digest()
    return f"/{account}/{CONTAINER}?restype=container", {
        "x-ms-date": date,
        "x-ms-version": "2021-08-06",
        "Authorization": f"SharedKey {account}:{base64.b64encode(digest).decode()}",
        "Content-Length": "0",
    }


def _expect(port: int, method: str, path: str, headers: dict[str, str], status: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=START_SECONDS_MAX)
    try:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        body = answer.read()
    finally:
        connection.close()
    assert answer.status == status, (answer.status, body)


def _azurite_script() -> Path:
    """Azurite's entry point in the cache."""
    package = installed("npm", AZURITE_PACKAGE) / "node_modules" / "azurite" / "package.json"
    return package.parent / json.loads(package.read_text())["bin"]["azurite-blob"]
