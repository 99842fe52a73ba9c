"""The server process: ports opened, signals answered, tables read anew, the end in order.

Contract: `start` returns when every port listens. SIGHUP, or another content of the file or of one that it
refers to, reads the configuration anew; one that is wrong changes nothing, is logged and counted. SIGTERM and
SIGINT: the server is not ready any more, for `server.unready_seconds` it still takes requests, then nobody
new is admitted, scans and answers have `server.drain_seconds` to end, and are stopped. What does not stop
then does not hold the process up: it ends a few seconds later all the same, with exit code 1. A second signal
ends at once.
"""

from __future__ import annotations

import faulthandler
import gc
import logging
import os
import queue
import signal
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from hashlib import sha256
from pathlib import Path

import msgspec
import uvicorn

from lazydelta.errors import InvalidRequestError, LazyDeltaError
from lazydelta.serve.config import ServeConfig, is_loopback, load_config
from lazydelta.serve.flight.server import LazyFlightServer
from lazydelta.serve.http.app import make_app
from lazydelta.serve.http.connection import Connection
from lazydelta.serve.kusto import KustoApi
from lazydelta.serve.listening import Listening, bound, check_free
from lazydelta.serve.log_lines import conceal
from lazydelta.serve.page import PageApi
from lazydelta.serve.served import Served
from lazydelta.serve.sharing import sharing_routes
from lazydelta.serve.trace_export import export_as

LOGGER = logging.getLogger("lazydelta.serve")
_LOOK_SECONDS = 1.0  # between two looks at the file; a change counts once two looks agree on it
_CLOSING_SECONDS = 3.0  # that answers of HTTP have to end at the least, once scans have
_LAST_SECONDS = 10.0  # that everything has to close once it was drained, whatever still works
# Keys that need another start.
_OF_START = ("host", "flight_port", "http_port", "ticket_seconds", "signing_key")


class Ports(msgspec.Struct, frozen=True, kw_only=True):
    """Where the server listens; None: not at all."""

    flight: int | None = None
    http: int | None = None


class ServerProcess:
    """Everything that listens."""

    def __init__(self, path: str, *, environment: Mapping[str, str]) -> None:
        self._path = path
        self._environment = environment
        config = load_config(path, environment=environment)
        self._first = config
        self._seen = _content(config.files)
        conceal(config.tables.values())
        self.served = Served(config)
        self._flight: LazyFlightServer | None = None
        self._http: uvicorn.Server | None = None
        self._kusto: KustoApi | None = None
        self._page: PageApi | None = None
        self._threads: dict[str, threading.Thread] = {}
        # May be filled by a handler of signals, whatever this thread is at: nothing else is as safe.
        self._told: queue.SimpleQueue[int] = queue.SimpleQueue()

    def start(self) -> Ports:
        """Listen."""
        part = self.served.config.server
        listening = None if part.http_port is None else bound(self._place("http_port", part.http_port))
        try:
            flight = None if part.flight_port is None else self._start_flight(part.flight_port)
        except BaseException:
            if listening is not None:
                listening.close()
            raise
        http = None
        if listening is not None:
            http = listening.getsockname()[1]
            self._start_http(listening)
        return Ports(flight=flight, http=http)

    def reload(self) -> bool:
        """Read the configuration anew; whether it is in force."""
        try:
            config = self._kept(load_config(self._path, environment=self._environment))
        except LazyDeltaError as error:
            LOGGER.error("the configuration is not taken: %s", error)  # noqa: TRY400 - its text says it all
            self.served.metrics.reloaded(is_taken=False)
            return False
        conceal([*self.served.config.tables.values(), *config.tables.values()])  # what runs goes on
        self.served.reload(config)
        self.served.metrics.reloaded(is_taken=True)
        LOGGER.info("configuration taken: %s", ", ".join(sorted(config.tables)))
        _warn(config)
        return True

    def watch(self) -> None:
        """Stay until told to end; read the file anew when told, or where it has changed."""
        before = self._seen
        while True:
            try:
                told = self._told.get(timeout=_LOOK_SECONDS)
            except queue.Empty:
                now = _content(self.served.config.files)
                if now == before != self._seen:  # it is not being written any more
                    self._seen = now
                    self.reload()
                before = now
                continue
            if told != signal.SIGHUP:
                return
            self._seen = before = _content(self.served.config.files)
            self.reload()

    def tell(self, number: int) -> None:
        """A signal came."""
        self._told.put(number)

    def stop(self) -> bool:
        """Drain, then close; whether everything ended by itself."""
        part = self.served.config.server
        self.served.admission.retire()
        time.sleep(part.unready_seconds)
        until = time.monotonic() + part.drain_seconds
        is_clean = self.served.admission.drain(part.drain_seconds)
        if self._http is not None:
            self._http.should_exit = True  # what it answers goes on
        if "http" in self._threads:
            self._threads["http"].join(max(_CLOSING_SECONDS, until - time.monotonic()))
            if self._threads["http"].is_alive():
                is_clean = False
                self._cut_off()
        if self._flight is not None:
            self._flight.end()
        for thread in self._threads.values():
            thread.join(_CLOSING_SECONDS)
        for api in (self._page, self._kusto):
            if api is not None:
                api.close()
        return is_clean and not any(thread.is_alive() for thread in self._threads.values())

    def _kept(self, config: ServeConfig) -> ServeConfig:
        """The same but for what stays as it was at the start, which the log tells."""
        first = self._first
        if not config.clients and not is_loopback(first.server.host):
            raise InvalidRequestError(
                f"clients: there are none, and {first.server.host} is listened at until the next start",
                self._path,
                "leave some, or start it anew with host = 127.0.0.1",
            )
        if late := _of_start(first, config):
            LOGGER.warning("in force from the next start on: %s", ", ".join(late))
        kept = {name: getattr(first.server, name) for name in _OF_START}
        server = msgspec.structs.replace(config.server, **kept)
        return msgspec.structs.replace(config, server=server, tls=first.tls, signing_key=first.signing_key)

    def _cut_off(self) -> None:
        """Close connections of HTTP whose clients read no more: nothing else would end them."""
        assert self._http is not None
        for server in self._http.servers:
            for connection in list(self._http.server_state.connections):
                server.get_loop().call_soon_threadsafe(connection.transport.abort)

    def _place(self, key: str, port: int) -> Listening:
        return Listening(self.served.config.server.host, port, f"server.{key}", self._path)

    def _start_flight(self, port: int) -> int:
        config, place = self.served.config, self._place("flight_port", port)
        check_free(place)
        tls = {} if config.tls is None else _flight_tls(config)
        scheme = "grpc" if config.tls is None else "grpc+tls"
        host = f"[{place.host}]" if ":" in place.host else place.host
        try:
            self._flight = LazyFlightServer(self.served, f"{scheme}://{host}:{port}", **tls)
        except Exception as problem:
            raise place.refused(problem) from problem
        # Not `serve`: it would answer signals itself, by waiting for every stream, however long that takes.
        self._run("flight", self._flight.wait)
        found: int = self._flight.port
        return found

    def _start_http(self, listening: socket.socket) -> None:
        tls = self.served.config.tls
        self._kusto = KustoApi(self.served)
        self._kusto.warm()
        self._page = PageApi(self.served, self._kusto.answers)
        options = uvicorn.Config(
            make_app(
                self.served, [*sharing_routes(self.served), *self._kusto.routes(), *self._page.routes()]
            ),
            http=Connection,
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,  # a client's word on how it came is not taken: `public_url` says it
            lifespan="off",
            ssl_certfile=None if tls is None else tls.certificate,
            ssl_keyfile=None if tls is None else tls.key,
            ssl_ca_certs=None if tls is None else tls.client_ca,
            ssl_cert_reqs=ssl.CERT_NONE if tls is None or tls.client_ca is None else ssl.CERT_REQUIRED,
        )
        self._http = uvicorn.Server(options)
        self._run("http", partial(self._http.run, sockets=[listening]))

    def _run(self, name: str, serve: Callable[[], object]) -> None:
        thread = threading.Thread(target=serve, name=f"lazydelta-{name}", daemon=True)
        thread.start()
        self._threads[name] = thread


def serve_until_told(
    path: str, *, environment: Mapping[str, str] | None = None, tell: Callable[[Ports], None] | None = None
) -> int:
    """The command: serve, tell the ports (on stdout as JSON), end by a signal; the exit code."""
    export_as(os.environ)
    process = ServerProcess(path, environment=os.environ if environment is None else environment)
    ends: list[int] = []

    def told(number: int, _: object) -> None:
        if number != signal.SIGHUP:
            ends.append(number)
        if len(ends) > 1:
            os._exit(128 + number)
        process.tell(number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, told)
    ports = process.start()
    gc.collect()
    gc.freeze()  # what is there from the start need not be looked at again and again
    LOGGER.info("serving: %s", ", ".join(sorted(process.served.config.tables)))
    _warn(process.served.config)
    (tell or _told_on_stdout)(ports)
    process.watch()
    LOGGER.info("told to end: draining")
    part = process.served.config.server
    _end_after(part.unready_seconds + part.drain_seconds + _LAST_SECONDS)
    is_clean = process.stop()
    LOGGER.info("ended" if is_clean else "ended; some scans or answers were stopped")
    return 0 if is_clean else 1


def _told_on_stdout(ports: Ports) -> None:
    print(msgspec.json.encode(ports).decode(), flush=True)


def _end_after(seconds: float) -> None:
    """End the process then, with exit code 1, whatever still works.

    Why: DuckDB and Arrow cannot always be interrupted, and Python waits for threads of theirs at its exit.
    This needs neither Python nor its lock.
    """
    nowhere = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - until the end
    faulthandler.dump_traceback_later(seconds, exit=True, file=nowhere)


def _warn(config: ServeConfig) -> None:
    for told in config.warnings:
        LOGGER.warning("%s", told)


def _content(paths: Iterable[str]) -> bytes:
    """Of all these files, as a digest."""
    found = sha256()
    for path in paths:
        try:
            content = Path(path).read_bytes()
        except OSError:
            content = b"\0"
        found.update(len(content).to_bytes(8, "big") + content)
    return found.digest()


def _of_start(first: ServeConfig, now: ServeConfig) -> list[str]:
    """Keys that have changed and cannot be taken while the server runs."""
    late = [
        f"server.{name}" for name in _OF_START if getattr(first.server, name) != getattr(now.server, name)
    ]
    if first.signing_key != now.signing_key and "server.signing_key" not in late:
        late.append("server.signing_key")
    return late if first.tls == now.tls else [*late, "tls"]


def _flight_tls(config: ServeConfig) -> dict[str, object]:
    assert config.tls is not None
    pair = (Path(config.tls.certificate).read_bytes(), Path(config.tls.key).read_bytes())
    found: dict[str, object] = {"tls_certificates": [pair]}
    if config.tls.client_ca is not None:
        found |= {"verify_client": True, "root_certificates": Path(config.tls.client_ca).read_bytes()}
    return found
