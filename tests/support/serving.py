"""A server in the test's own process, on free ports, with tables and clients of the test's choice."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyarrow import flight

from lazydelta.memory_budget import PROCESS_MEMORY
from lazydelta.serve.process import Ports, ServerProcess


class RunningServer:
    """What a test talks to."""

    def __init__(self, process: ServerProcess, ports: Ports, path: Path) -> None:
        self.process = process
        self.ports = ports
        self.path = path  # of the configuration

    def flight(self) -> flight.FlightClient:
        """A client of Flight."""
        return flight.connect(f"grpc://127.0.0.1:{self.ports.flight}")

    @property
    def http_url(self) -> str:
        """Of HTTP."""
        return f"http://127.0.0.1:{self.ports.http}"


@contextmanager
def running_server(folder: Path, tables: dict[str, str], more: str = "") -> Iterator[RunningServer]:
    """Serve these (name to URL); `more` is further TOML."""
    path = folder / "serve.toml"
    named = "".join(f"[tables.{name}]\nurl = {json.dumps(url)}\n" for name, url in tables.items())
    path.write_text(f"[server]\nflight_port = 0\nhttp_port = 0\ndrain_seconds = 5\n{more}\n{named}", "utf-8")
    memory_bytes = (
        PROCESS_MEMORY.limit_bytes
    )  # the configuration may change it, and it is this process's, too
    process = ServerProcess(str(path), environment={})
    ports = process.start()
    try:
        yield RunningServer(process, ports, path)
    finally:
        process.stop()
        PROCESS_MEMORY.limit_to(memory_bytes)


def bearer(token: str) -> flight.FlightCallOptions:
    """Options of a call that signs in."""
    return flight.FlightCallOptions(headers=[(b"authorization", f"Bearer {token}".encode())])


def planned(client: flight.FlightClient, options: Any = None, **command: Any) -> flight.FlightInfo:
    """GetFlightInfo of a command."""
    descriptor = flight.FlightDescriptor.for_command(json.dumps(command))
    return client.get_flight_info(descriptor, options=options)


def threads_named(prefix: str) -> list[threading.Thread]:
    """Threads that are alive."""
    return [thread for thread in threading.enumerate() if thread.name.startswith(prefix)]
