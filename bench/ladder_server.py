"""A folder served as an S3 bucket, with latency: `python -m bench.ladder_server FOLDER --latency-ms 30`.

Why: on a store every request costs a round trip, and that decides how long a query takes. Emulators hold what
they serve in memory, or a database; ten million files' log is read from the disk here, as it lies.
Contract: read-only, loopback only, unsigned requests to the bucket `ladder`: list (version 2), get, range,
head. Prints its port as JSON. Every request waits before it is answered; the line is not slowed down.
`/-/account` tells requests, bytes of objects (not of listings) and sequential round trips since `/-/reset`,
judged by this side; `/-/log` tells each request with its depth.
"""

from __future__ import annotations

import argparse
import email.utils
import json
import os
import socket
import sys
import time
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import BinaryIO
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

import msgspec

from bench.ladder_account import RequestAccount

BUCKET = "ladder"
_KEYS_MAX = 1_000


class Served(msgspec.Struct, frozen=True):
    """What is served, and the account of it."""

    folder: Path
    account: RequestAccount


class BucketHandler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    served: Served
    _end: Callable[[int], None]  # of the request under way

    def do_GET(self) -> None:
        """List, whole object, range, or a word about the account."""
        if self.path.startswith("/-/"):
            return self._account()
        address = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(address.query).items()}
        kind = "list" if "list-type" in query else "get"
        with self.served.account.counted(kind, self.path, self.headers.get("Range", "")) as self._end:
            if kind == "list":
                self._list(query)
            else:
                self._object(address.path, has_body=True)
        return None

    def do_HEAD(self) -> None:
        """Size, age and e-tag of an object."""
        with self.served.account.counted("head", self.path, "") as self._end:
            self._object(urlsplit(self.path).path, has_body=False)

    def log_message(self, *_: object) -> None:
        """Say nothing of requests."""

    def _account(self) -> None:
        if self.path == "/-/reset":
            self.served.account.begin_anew()
        told = self.served.account.log if self.path == "/-/log" else self.served.account.snapshot()
        self._end = lambda _: None
        self._answer(HTTPStatus.OK, msgspec.json.encode(told), {})

    def _list(self, query: dict[str, str]) -> None:
        after = query.get("continuation-token") or query.get("start-after", "")
        body = _listing(self.served.folder, query.get("prefix", ""), after)
        self._answer(HTTPStatus.OK, body, {"Content-Type": "application/xml"})

    def _object(self, path: str, *, has_body: bool) -> None:
        name = unquote(path).removeprefix(f"/{BUCKET}/")
        try:
            with self._inside(name).open("rb") as file:
                self._send(file, has_body=has_body)
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            body = f"<Error><Code>NoSuchKey</Code><Key>{escape(name)}</Key></Error>".encode()
            self._answer(HTTPStatus.NOT_FOUND, body, {"Content-Type": "application/xml"})

    def _send(self, file: BinaryIO, *, has_body: bool) -> None:
        status = os.fstat(file.fileno())
        headers = {
            "ETag": _etag(status),
            "Last-Modified": email.utils.formatdate(status.st_mtime, usegmt=True),
            "Accept-Ranges": "bytes",
        }
        start, end = _asked_range(self.headers.get("Range"), status.st_size)
        code = HTTPStatus.OK
        if self.headers.get("Range"):
            code = HTTPStatus.PARTIAL_CONTENT
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{status.st_size}"
        size = end - start
        if not has_body or not size:
            self._end(0)
        self._head(code, headers | {"Content-Length": str(size)})
        if has_body and size:
            if size > 1:
                self.connection.sendfile(file, start, size - 1)
            self._end(size)
            self.connection.sendfile(file, end - 1, 1)

    def _answer(self, code: HTTPStatus, body: bytes, headers: dict[str, str]) -> None:
        self._end(0)
        self._head(code, headers | {"Content-Length": str(len(body))})
        if self.command != "HEAD":
            self.connection.sendall(body)

    def _head(self, code: HTTPStatus, headers: dict[str, str]) -> None:
        self.send_response_only(code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.flush()

    def _inside(self, name: str) -> Path:
        path = (self.served.folder / name).resolve()
        if not path.is_relative_to(self.served.folder):
            raise FileNotFoundError(name)
        return path


def make_server(folder: Path, latency_ms: float) -> ThreadingHTTPServer:
    """A server on a free port of this machine; the caller lets it serve."""
    served = Served(folder.resolve(), RequestAccount(latency_ms / 1000))
    handler = type("Handler", (BucketHandler,), {"served": served})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler, bind_and_activate=False)
    server.daemon_threads = True
    server.request_queue_size = 128
    server.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.server_bind()
    server.server_activate()
    return server


def _listing(folder: Path, prefix: str, after: str) -> bytes:
    """One page of keys directly below the prefix's folder, in byte order."""
    where = folder / prefix.rpartition("/")[0]
    names = sorted(str(path.relative_to(folder)) for path in where.glob("*") if path.is_file())
    wanted = [name for name in names if name.startswith(prefix) and name > after]
    page = wanted[:_KEYS_MAX]
    is_cut = len(wanted) > len(page)
    told = "".join(_key_xml(folder, name) for name in page)
    more = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if is_cut else ""
    return (
        '<?xml version="1.0" encoding="UTF-8"?>'
        '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
        f"<Name>{BUCKET}</Name><Prefix>{escape(prefix)}</Prefix><KeyCount>{len(page)}</KeyCount>"
        f"<MaxKeys>{_KEYS_MAX}</MaxKeys><IsTruncated>{str(is_cut).lower()}</IsTruncated>{more}{told}"
        "</ListBucketResult>"
    ).encode()


def _key_xml(folder: Path, name: str) -> str:
    status = (folder / name).stat()
    at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(status.st_mtime))
    about = f"<LastModified>{at}.000Z</LastModified><Size>{status.st_size}</Size>"
    return f"<Contents><Key>{escape(name)}</Key>{about}<ETag>{escape(_etag(status))}</ETag></Contents>"


def _etag(status: os.stat_result) -> str:
    """As a folder tells it (storage/local.py): the sidecar was built from the very files that are served."""
    return f"{status.st_ino:x}-{status.st_ctime_ns:x}"


def _asked_range(header: str | None, size: int) -> tuple[int, int]:
    """Start and end of `bytes=3-9`, `bytes=3-` or `bytes=-7`; all of it without a header."""
    if not header:
        return 0, size
    first, _, last = header.removeprefix("bytes=").partition("-")
    if not first:
        return max(0, size - int(last)), size
    return int(first), min(size, int(last) + 1 if last else size)


def main(arguments: list[str] | None = None) -> None:
    """The command line: serve until ended."""
    about = __doc__.split("\n\n", 1)[0]
    parser = argparse.ArgumentParser(prog="python -m bench.ladder_server", description=about)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--latency-ms", type=float, default=30.0)
    options = parser.parse_args(arguments)
    server = make_server(options.folder, options.latency_ms)
    print(json.dumps({"port": server.server_port}), flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        sys.exit(0)


if __name__ == "__main__":
    main()
