"""A table of many files in an S3 server behind a proxy, which counts what a scan goes on reading."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tests.support.proxy import HttpProxy
from tests.support.servers import TableServer
from tests.support.serving import RunningServer, running_server

FILES = 60
SECONDS_MAX = 60.0  # a busy machine takes its time
ROWS_A_FILE = 60_000  # more than all that lies between server and client can hold


@pytest.fixture(scope="session")
def many_files(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table of `FILES` commits, a file each, that do not compress; it is read only."""
    url = str(tmp_path_factory.mktemp("many") / "many")
    for number in range(FILES):
        first = number * ROWS_A_FILE
        noise = np.random.default_rng(number).random(ROWS_A_FILE)
        rows = pa.table({"id": np.arange(first, first + ROWS_A_FILE), "noise": noise})
        write_deltalake(url, rows, mode="append")
    return url


@pytest.fixture(scope="session")
def many_stored(s3_server: TableServer, many_files: str) -> str:
    """Its copy in the S3 server, which is read only, too."""
    url = s3_server.url("many")
    s3_server.upload(many_files, url)
    return url


@pytest.fixture(scope="module")
def served_afar(
    s3_server: TableServer, many_stored: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[RunningServer, HttpProxy]]:
    """That table on a server, from a store that takes 20 ms for each request."""
    with served_from_afar(s3_server, many_stored, tmp_path_factory.mktemp("config")) as found:
        yield found


@contextmanager
def served_from_afar(
    store: TableServer, url: str, folder: Path, more: str = "", *, latency_ms: float = 20.0
) -> Iterator[tuple[RunningServer, HttpProxy]]:
    """Serve a table of the store, through a proxy, as `many`."""
    with HttpProxy(store.port, latency_ms=latency_ms) as proxy:
        options = "".join(f"{key} = {json.dumps(value)}\n" for key, value in store.through(proxy).items())
        table = f"[tables.many]\nurl = {json.dumps(url)}\n[tables.many.storage_options]\n{options}"
        with running_server(folder, {}, f"{more}\n{table}") as server:
            yield server, proxy


def becomes_quiet(proxy: HttpProxy, *, for_seconds: float = 0.5) -> bool:
    """Whether nothing is asked of the store any more, soon: for so long, which is many times its latency."""
    until = time.monotonic() + SECONDS_MAX
    while time.monotonic() < until:
        before = len(proxy.requests)
        time.sleep(for_seconds)
        if len(proxy.requests) == before:
            return True
    return False


def files_read(proxy: HttpProxy) -> int:
    """How many data files the store was asked for."""
    return len({request.path.partition("?")[0] for request in proxy.requests if ".parquet" in request.path})
