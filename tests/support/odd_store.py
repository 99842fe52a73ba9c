"""A server that answers as a test says, where a store is looked for: endless listings, web pages, refusals.

Contract: `OddStore(answer)` as a context manager; `answer` gets a request's path with its query, and returns
a status and a body; `headers` come with all of them. `requests` counts what came.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = Callable[[str], tuple[int, bytes]]
NO_OBJECT = (404, b"<Error><Code>NoSuchKey</Code></Error>")


class OddStore:
    """One server on a free port."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.requests = 0
        self.headers: dict[str, str] = {}  # that every answer has
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> OddStore:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def s3_options(self, **more: str) -> dict[str, str]:
        """Options of S3 that lead here."""
        endpoint = f"http://127.0.0.1:{self._server.server_port}"
        keys = {"access_key_id": "a", "secret_access_key": "b", "region": "eu-west-1"}
        return {"endpoint": endpoint, "allow_http": "true", "delta.cache.bytes": "0", **keys, **more}

    def azure_options(self, **more: str) -> dict[str, str]:
        """Options of Azure that lead here, without any to sign in with."""
        endpoint = f"http://127.0.0.1:{self._server.server_port}/acct"
        return {"endpoint": endpoint, "allow_http": "true", "delta.cache.bytes": "0", **more}


def is_listing(path: str) -> bool:
    """Whether the request asks for a listing of S3 or Azure."""
    return "list-type=" in path or "comp=list" in path


def listing_page(keys: Iterable[str], *, continues_at: str | None = None) -> bytes:
    """A page of a listing of S3."""
    entries = "".join(
        f"<Contents><Key>{key}</Key><LastModified>2026-02-08T12:00:00.000Z</LastModified>"
        f'<ETag>"e"</ETag><Size>7</Size></Contents>'
        for key in keys
    )
    more = "" if continues_at is None else f"<NextContinuationToken>{continues_at}</NextContinuationToken>"
    is_cut = str(continues_at is not None).lower()
    return f"<ListBucketResult><IsTruncated>{is_cut}</IsTruncated>{more}{entries}</ListBucketResult>".encode()


def _handler(store: OddStore) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            store.requests += 1
            status, body = store.answer(self.path)
            try:
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                for name, value in store.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)
            except OSError:  # the caller had enough
                self.close_connection = True

    return Handler
