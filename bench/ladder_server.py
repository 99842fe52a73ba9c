"""A bucket served as S3 does, with latency: `python -m bench.ladder_server FOLDER --latency-ms 30`.

Why: on a store every request costs a round trip, and that decides how long a query takes. Emulators hold what
they serve in memory, or a database; ten million files' log is read from the disk here, as it lies.
Contract: loopback only, unsigned requests to the bucket `ladder`: list (version 2), get, range, head, put if
absent. Prints its port as JSON. Every request waits before it is answered; the line is not slowed down.
`/-/account` tells requests, bytes of objects (not of listings) and sequential round trips since `/-/reset`,
judged by this side; `/-/log` tells each request with its depth.
"""

from __future__ import annotations

import argparse
import email.utils
import itertools
import json
import socket
import sys
import time
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

import msgspec

from bench.bucket import Bucket, FolderBucket, StoredObject, object_of
from bench.ladder_account import RequestAccount

BUCKET = "ladder"
_KEYS_MAX = 1_000


class Served(msgspec.Struct, frozen=True):
    """What is served, and the account of it."""

    bucket: Bucket
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

    def do_PUT(self) -> None:
        """Keep an object where there is none of its name."""
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        name = unquote(urlsplit(self.path).path).removeprefix(f"/{BUCKET}/")
        with self.served.account.counted("put", self.path, "") as self._end:
            is_kept = self.served.bucket.put(name, body)
            self._answer(
                HTTPStatus.OK if is_kept else HTTPStatus.PRECONDITION_FAILED, b"", {"ETag": '"kept"'}
            )

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
        body = _listing(self.served.bucket, query.get("prefix", ""), after)
        self._answer(HTTPStatus.OK, body, {"Content-Type": "application/xml"})

    def _object(self, path: str, *, has_body: bool) -> None:
        name = unquote(path).removeprefix(f"/{BUCKET}/")
        try:
            with object_of(self.served.bucket, name) as (told, file):
                self._send(told, file, has_body=has_body)
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            body = f"<Error><Code>NoSuchKey</Code><Key>{escape(name)}</Key></Error>".encode()
            self._answer(HTTPStatus.NOT_FOUND, body, {"Content-Type": "application/xml"})

    def _send(self, told: StoredObject, file: BinaryIO, *, has_body: bool) -> None:
        headers = {
            "ETag": told.etag,
            "Last-Modified": email.utils.formatdate(told.modified_s, usegmt=True),
            "Accept-Ranges": "bytes",
        }
        start, end = _asked_range(self.headers.get("Range"), told.size)
        code = HTTPStatus.OK
        if self.headers.get("Range"):
            code = HTTPStatus.PARTIAL_CONTENT
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{told.size}"
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


class _QuietServer(ThreadingHTTPServer):
    """Says nothing of clients that leave before they have got all: whoever stops early does."""

    def handle_error(self, request: Any, client_address: Any) -> None:  # Any: the library's own
        """Tell what went wrong."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def make_server(served: Path | Bucket, latency_ms: float) -> ThreadingHTTPServer:
    """A server of a folder or bucket on a free port of this machine; the caller lets it serve."""
    bucket = FolderBucket(served) if isinstance(served, Path) else served
    account = Served(bucket, RequestAccount(latency_ms / 1000))
    handler = type("Handler", (BucketHandler,), {"served": account})
    server = _QuietServer(("127.0.0.1", 0), handler, bind_and_activate=False)
    server.daemon_threads = True
    server.request_queue_size = 128
    server.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.server_bind()
    server.server_activate()
    return server


def _listing(bucket: Bucket, prefix: str, after: str) -> bytes:
    """One page of keys."""
    page = list(itertools.islice(bucket.after(prefix, after), _KEYS_MAX + 1))
    is_cut = len(page) > _KEYS_MAX
    page = page[:_KEYS_MAX]
    told = "".join(map(_key_xml, page))
    more = f"<NextContinuationToken>{escape(page[-1].name)}</NextContinuationToken>" if is_cut else ""
    return (
        '<?xml version="1.0" encoding="UTF-8"?>'
        '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
        f"<Name>{BUCKET}</Name><Prefix>{escape(prefix)}</Prefix><KeyCount>{len(page)}</KeyCount>"
        f"<MaxKeys>{_KEYS_MAX}</MaxKeys><IsTruncated>{str(is_cut).lower()}</IsTruncated>{more}{told}"
        "</ListBucketResult>"
    ).encode()


def _key_xml(told: StoredObject) -> str:
    at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(told.modified_s))
    about = f"<LastModified>{at}.000Z</LastModified><Size>{told.size}</Size>"
    return f"<Contents><Key>{escape(told.name)}</Key>{about}<ETag>{escape(told.etag)}</ETag></Contents>"


def _asked_range(header: str | None, size: int) -> tuple[int, int]:
    """Start and end of `bytes=3-9`, `bytes=3-` or `bytes=-7`; all of it without a header."""
    if not header:
        return 0, size
    first, _, last = header.removeprefix("bytes=").partition("-")
    if not first:
        return max(0, size - int(last)), size
    return int(first), min(size, int(last) + 1 if last else size)


def serve_until_ended(server: ThreadingHTTPServer) -> None:
    """Tell the port, then serve."""
    print(json.dumps({"port": server.server_port}), flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        sys.exit(0)


def main(arguments: list[str] | None = None) -> None:
    """The command line: serve until ended."""
    about = __doc__.split("\n\n", 1)[0]
    parser = argparse.ArgumentParser(prog="python -m bench.ladder_server", description=about)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--latency-ms", type=float, default=30.0)
    options = parser.parse_args(arguments)
    server = make_server(options.folder, options.latency_ms)
    serve_until_ended(server)


if __name__ == "__main__":
    main()
