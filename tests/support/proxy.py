"""An HTTP proxy on loopback that adds latency and faults, and counts what passes.

Why: a store on the same machine never stalls, never answers 503 and never cuts a body; networks do.
Contract: `HttpProxy(upstream_port)` as a context manager; `plan` is asked once per HTTP request (numbered
from 1 since `reset`) and may return a `Fault`. Requests and answers are framed by HTTP/1.1, so that a fault
hits exactly one request, whichever connection carries it.
"""

from __future__ import annotations

import random
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import BinaryIO, Literal


@dataclass(frozen=True)
class Request:
    """One HTTP request that reached the proxy."""

    number: int
    method: str
    path: str


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What goes wrong with one request.

    `status`: the proxy answers itself. `cut`: the connection ends after `after_bytes` of the body. `lose`:
    the store gets the request, the answer never arrives. `reset`: the connection ends before the store hears
    of it. `stall`: silence for `seconds`. `hang`: silence after `after_bytes` of the body. `drip`: the body
    in pieces of `after_bytes`, each after `seconds`. `truncate`: a well-formed answer with `after_bytes` of
    the body.
    """

    kind: Literal["status", "cut", "lose", "reset", "stall", "hang", "drip", "truncate"]
    status: int = 503
    retry_after: int | None = None
    after_bytes: int = 0
    seconds: float = 0.0


Plan = Callable[[Request], Fault | None]
_MEET_SECONDS_MAX = 60.0  # on a busy machine; who waits in vain is not answered


def at(faults: dict[int, Fault]) -> Plan:
    """Faults by request number."""
    return lambda request: faults.get(request.number)


def always(fault: Fault) -> Plan:
    """The same fault for every request."""
    return lambda _request: fault


def every(step: int, fault: Fault) -> Plan:
    """The fault for every `step`-th request."""
    return lambda request: fault if request.number % step == 0 else None


def by_seed(seed: int, probability: float, *faults: Fault) -> Plan:
    """One of the faults with that probability; the same requests, by number, for the same seed."""

    def plan(request: Request) -> Fault | None:
        dice = random.Random(f"{seed}:{request.number}")
        return dice.choice(faults) if dice.random() < probability else None

    return plan


def side_by_side(*sizes: int) -> Plan:
    """Groups of so many requests: none of a group is answered before all of it have come."""
    groups = [group for group in map(threading.Barrier, sizes) for _ in range(group.parties)]

    def meet(request: Request) -> None:
        if request.number <= len(groups):
            groups[request.number - 1].wait(_MEET_SECONDS_MAX)

    return meet


class BusyStore:
    """A plan: every request is throttled until `seconds` after the first one; when each came is kept.

    With `until_asked` the time begins with the question how long to wait, which its signature tells: however
    late it comes, it is throttled, too.
    """

    def __init__(
        self, seconds: float, *, status: int = 503, retry_after: int | None = None, until_asked: bool = False
    ) -> None:
        self.arrivals: list[float] = []
        self._seconds = seconds
        self._until_asked = until_asked
        self._ends_at: float | None = None
        self._fault = Fault(kind="status", status=status, retry_after=retry_after)

    def __call__(self, request: Request) -> Fault | None:
        now = time.monotonic()
        self.arrivals.append(now)
        if self._ends_at is None and (not self._until_asked or "sig" in request.path.lower()):
            self._ends_at = now + self._seconds
        return self._fault if self._ends_at is None or now < self._ends_at else None

    @property
    def gaps(self) -> list[float]:
        """Seconds between each request and the next."""
        return [later - sooner for sooner, later in pairwise(self.arrivals)]


class HttpProxy:
    """Listens on a free port; one thread per connection."""

    def __init__(self, upstream_port: int, *, latency_ms: float = 0.0) -> None:
        self.latency_ms = latency_ms
        self.plan: Plan = lambda _request: None
        self.refuses_connections = False
        self.connections = 0
        self.requests: list[Request] = []
        self._upstream_port = upstream_port
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = int(self._listener.getsockname()[1])
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> HttpProxy:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            sockets = list(self._sockets)
        for each in sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self._thread.join(5)

    def reset(self) -> None:
        """Begin counting anew, without faults."""
        with self._lock:
            self.requests = []
            self.connections = 0
            self.plan = lambda _request: None

    def _accept(self) -> None:
        while not self._stopping.is_set():
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                self.connections += 1
            if self.refuses_connections:
                _reset(client)
            else:
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            with self._kept(client), client.makefile("rb") as asked:
                while self._exchange(client, asked):
                    pass
        except (OSError, threading.BrokenBarrierError):
            pass  # either side went away: that is what this proxy is for

    @contextmanager
    def _kept(self, each: socket.socket) -> Iterator[None]:
        """The socket until the block or the proxy ends."""
        each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._lock:
            self._sockets.add(each)
        try:
            with each:
                yield
        finally:
            with self._lock:
                self._sockets.discard(each)

    def _exchange(self, client: socket.socket, asked: BinaryIO) -> bool:
        """One request and its answer. False when the connection is over."""
        head = _read_head(asked)
        if not head:
            return False
        body = asked.read(_content_length(head))
        request = self._note(head)
        fault = self.plan(request)
        if self.latency_ms:
            time.sleep(self.latency_ms / 1000)
        if fault is not None and fault.kind in ("status", "reset", "stall"):
            return self._answer_alone(client, fault)
        answer, answer_body = self._ask(head + body, request.method)
        if fault is None:
            client.sendall(answer + answer_body)
            return b"connection: close" not in answer.lower()
        return self._spoil(client, fault, answer, answer_body)

    def _spoil(self, client: socket.socket, fault: Fault, answer: bytes, body: bytes) -> bool:
        """What the fault makes of the store's answer."""
        if fault.kind == "truncate":
            short = _unchunked(answer, body)[: fault.after_bytes]
            client.sendall(_with_length(answer, len(short)) + short)
            return True
        if fault.kind == "drip":
            client.sendall(answer)
            for start in range(0, len(body), fault.after_bytes):
                if self._stopping.wait(fault.seconds):
                    return False
                client.sendall(body[start : start + fault.after_bytes])
            return True
        if fault.kind in ("cut", "hang"):
            client.sendall(answer + body[: fault.after_bytes])
        if fault.kind == "hang":
            self._stopping.wait(fault.seconds)
        return False

    def _ask(self, request: bytes, method: str) -> tuple[bytes, bytes]:
        """The store's answer, by a connection of its own: one that was kept the store may have closed."""
        upstream = socket.create_connection(("127.0.0.1", self._upstream_port))
        with self._kept(upstream), upstream.makefile("rb") as answered:
            upstream.sendall(request)
            head = _read_head(answered)
            if not head:
                raise ConnectionError("the store did not answer")
            return head, _read_body(head, answered, method)

    def _answer_alone(self, client: socket.socket, fault: Fault) -> bool:
        if fault.kind == "stall":
            self._stopping.wait(fault.seconds)
            return False
        if fault.kind == "reset":
            _reset(client)
            return False
        extra = "" if fault.retry_after is None else f"Retry-After: {fault.retry_after}\r\n"
        client.sendall(f"HTTP/1.1 {fault.status} Fault\r\n{extra}Content-Length: 0\r\n\r\n".encode())
        return True

    def _note(self, head: bytes) -> Request:
        method, path, _ = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ", 2)
        with self._lock:
            request = Request(len(self.requests) + 1, method, path)
            self.requests.append(request)
        return request


def _reset(client: socket.socket) -> None:
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


def _read_head(stream: BinaryIO) -> bytes:
    lines = []
    while line := stream.readline():
        lines.append(line)
        if line == b"\r\n":
            return b"".join(lines)
    return b""


def _header(head: bytes, name: str) -> str | None:
    for line in head.split(b"\r\n")[1:]:
        key, _, value = line.decode("latin-1").partition(":")
        if key.strip().lower() == name:
            return value.strip()
    return None


def _content_length(head: bytes) -> int:
    return int(_header(head, "content-length") or 0)


def _read_body(head: bytes, stream: BinaryIO, method: str) -> bytes:
    status = int(head.split(b" ", 2)[1])
    if method == "HEAD" or status in (204, 304):
        return b""
    if not _is_chunked(head):
        return _read_exactly(stream, _content_length(head))
    pieces = []
    while True:
        line = stream.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("the store broke off")
        piece = _read_exactly(stream, int(line.split(b";")[0], 16) + 2)
        pieces += [line, piece]
        if piece == b"\r\n":
            return b"".join(pieces)


def _read_exactly(stream: BinaryIO, count: int) -> bytes:
    found = stream.read(count)
    if len(found) < count:
        raise ConnectionError("the store broke off")
    return found


def _is_chunked(head: bytes) -> bool:
    return (_header(head, "transfer-encoding") or "").lower() == "chunked"


def _unchunked(head: bytes, body: bytes) -> bytes:
    if not _is_chunked(head):
        return body
    pieces, rest = [], body
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        length = int(size.split(b";")[0], 16)
        pieces.append(rest[:length])
        rest = rest[length + 2 :]
    return b"".join(pieces)


def _with_length(head: bytes, length: int) -> bytes:
    framing = (b"content-length:", b"transfer-encoding:")
    lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(framing)]
    lines.insert(1, f"Content-Length: {length}".encode())
    return b"\r\n".join(lines)
