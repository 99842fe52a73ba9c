"""A small server that speaks Delta Sharing's table query: real scans, streamed, and every way to go wrong.

Why: clients must be tried with answers that no sound server gives: cut off, damaged, late, refused.
Contract: the name of the table chooses the behaviour (`good` behaves); `requests` holds what was asked, and
`ended` says of each stream how it ended: "all" or "left" by the client.
"""

from __future__ import annotations

import json
import threading
import time
import urllib.parse
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import lazydelta as ld

TOKEN = "secret-token"
PREFIX = "/delta-sharing"
_SILENT = ("parquet", "cut", "cut_line", "unframed", "empty")  # do not promise a last line
_STATUSES = {"gone": 404, "busy": 429, "wrong": 400, "new": 501}


class SharingStub:
    """The server's own view of what happened."""

    def __init__(self, table: str) -> None:
        self.table = table
        self.requests: list[dict[str, Any]] = []
        self.ended: list[str] = []
        self.lines_sent = 0
        self.url = ""

    def wait_for_end(self, count: int, seconds: float = 60) -> list[str]:
        """How the first streams ended, once they did."""
        give_up = time.monotonic() + seconds
        while len(self.ended) < count and time.monotonic() < give_up:
            time.sleep(0.02)
        return self.ended


@contextmanager
def sharing_stub(table: str) -> Iterator[SharingStub]:
    """Serve this table as `share.schema.good` and under the names of behaviours."""
    stub = SharingStub(table)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"stub": stub}))
    server.daemon_threads = True
    stub.url = f"http://127.0.0.1:{server.server_address[1]}{PREFIX}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield stub
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    stub: SharingStub

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        names = urllib.parse.urlsplit(self.path).path.removeprefix(PREFIX).strip("/").split("/")
        asked = {"path": self.path, "body": json.loads(body), "headers": dict(self.headers.items())}
        self.stub.requests.append(asked)
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self._refuse(401, "who are you?")
        name = urllib.parse.unquote(names[5])
        if name in _STATUSES:
            return self._refuse(_STATUSES[name], f"this is {name}")
        if name == "late":
            time.sleep(3)
        return self._answer(name, asked["body"])

    def log_message(self, *words: object) -> None:
        pass

    def _refuse(self, status: int, message: str) -> None:
        body = json.dumps({"errorCode": "TROUBLE", "message": message}).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _answer(self, name: str, body: dict[str, Any]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/x-ndjson; charset=utf-8")
        self.send_header("Connection", "close")
        if name != "unframed":
            self.send_header("Transfer-Encoding", "chunked")
        if name not in _SILENT:
            self.send_header("delta-sharing-capabilities", "responseformat=delta;includeEndStreamAction=true")
        self.end_headers()
        self.close_connection = True
        table = ld.open(self.stub.table, version=body.get("version"))
        where = " and ".join(f"({hint})" for hint in body.get("predicateHints", [])) or None
        lines = _pages(table, where, body) if name == "pages" else _lines(table, where, name)
        with closing(lines):
            try:
                self._stream(lines, name)
                self.stub.ended.append("all")
            except OSError:
                self.stub.ended.append("left")

    def _stream(self, lines: Iterator[bytes], name: str) -> None:
        for number, true_line in enumerate(lines):
            is_damaged = name == "damaged" and number == 5
            line = b'{"file": {"url": nothing}}\n' if is_damaged else true_line
            if name in ("cut", "cut_line") and number == 5:
                if name == "cut_line":  # half of a line, in a chunk that says that more is to come
                    self.wfile.write(f"{len(line):x}\r\n".encode() + line[: len(line) // 2])
                self.wfile.flush()
                return
            if name == "slow" and number >= 5:
                time.sleep(0.2)
            is_framed = name != "unframed"
            self.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n" if is_framed else line)
            self.wfile.flush()
            self.stub.lines_sent += 1
        if name != "unframed":
            self.wfile.write(b"0\r\n\r\n")


def _lines(table: ld.Table, where: str | None, name: str) -> Iterator[bytes]:
    if name == "empty":
        return
    if name != "headless":
        yield _line({"protocol": {"deltaProtocol": {"minReaderVersion": 3, "minWriterVersion": 7}}})
    metadata = {"deltaMetadata": {"schemaString": table.metadata.schema_string}, "version": table.version}
    yield _line({"metaData": metadata})
    with closing(table.scan(where).files()) as files:
        for number, file in enumerate(files):
            if name == "error_line" and number == 3:
                yield _line(
                    {"endStreamAction": {"errorMessage": "the log is gone", "httpStatusErrorCode": 500}}
                )
                return
            yield _line({"file": _file(file, is_parquet=name == "parquet")})
            while name == "slow" and number == 2:  # no further file, for as long as somebody waits for one
                yield _line({"unknownAction": {}})
    if name not in ("parquet", "no_end", "unframed"):
        yield _line({"endStreamAction": {"minUrlExpirationTimestamp": 1}})


def _pages(table: ld.Table, where: str | None, body: dict[str, Any]) -> Iterator[bytes]:
    """Five files a page, though nobody asked for pages."""
    first = int(body.get("pageToken") or 0)
    files = list(table.scan(where).files())
    size = 5
    yield _line({"protocol": {"minReaderVersion": 1}}) + _line({"metaData": {"id": "pages"}})
    for file in files[first : first + size]:
        yield _line({"file": _file(file, is_parquet=True)})
    has_more = first + size < len(files)
    yield _line({"endStreamAction": {"nextPageToken": str(first + size)} if has_more else {}})


def _file(file: ld.DeltaFile, *, is_parquet: bool) -> dict[str, Any]:
    if is_parquet:
        return {
            "url": f"https://files/{file.path}",
            "id": file.path,
            "size": file.size,
            "partitionValues": file.partition_values,
        }
    add: dict[str, Any] = {
        "path": f"https://files/{file.path}",
        "size": file.size,
        "modificationTime": file.modification_time,
        "partitionValues": {f"col-{name}": value for name, value in file.partition_values.items()},
    }
    vector = file.deletion_vector
    if vector is not None:
        add["deletionVector"] = {
            "storageType": vector.storage_type,
            "pathOrInlineDv": vector.path_or_inline_dv,
            "offset": vector.offset,
            "sizeInBytes": vector.size_in_bytes,
            "cardinality": vector.cardinality,
        }
    return {"id": file.path, "size": file.size, "deltaSingleAction": {"add": add}}


def _line(action: dict[str, Any]) -> bytes:
    return json.dumps(action).encode() + b"\n"
