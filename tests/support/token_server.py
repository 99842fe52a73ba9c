"""The endpoints that give out tokens, emulated: Azure's directory and metadata service, and those of AWS.

Why: client secrets, workload identity, managed identity and roles need services that exist in a cloud only.
Here they are one little server that speaks the same HTTP; what it gives out, the emulated stores accept.
Contract: `TokenServer(...)` as a context manager. `asked` has every request as (method, path, what was told);
`status` other than 200 makes every endpoint refuse. With a certificate it speaks TLS.
"""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.support.signing import bearer_token

Keys = dict[str, str]
_ROLE = "reader-role"


class TokenServer:
    """One server with every endpoint; `token_of` and `keys` decide what they give out."""

    def __init__(
        self,
        *,
        token_of: Callable[[], str] = bearer_token,
        keys: Keys | None = None,
        certificate: tuple[Path, Path] | None = None,
        lifetime_seconds: float = 3600,
    ) -> None:
        self.token_of = token_of
        self.keys = keys or {}
        self.status = 200
        self.lifetime_seconds = lifetime_seconds
        self.asked: list[tuple[str, str, dict[str, str]]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._scheme = "http"
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
            self._scheme = "https"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"{self._scheme}://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> TokenServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def answer(self, method: str, path: str) -> tuple[int, bytes]:
        """Status and body for one request."""
        if self.status != 200:
            refusal = {
                "error": "invalid_client",
                "error_description": "AADSTS7000215: Invalid client secret.",
            }
            return self.status, json.dumps(refusal).encode()
        body = self._body(method, path)
        return (404, b"") if body is None else (200, body)

    def _body(self, method: str, path: str) -> bytes | None:
        end = datetime.now(UTC) + timedelta(seconds=self.lifetime_seconds)
        if path.endswith("/oauth2/v2.0/token"):
            answer: dict[str, Any] = {
                "access_token": self.token_of(),
                "expires_in": int(self.lifetime_seconds),
            }
            return json.dumps({**answer, "token_type": "Bearer"}).encode()
        if path.endswith("/identity/oauth2/token"):
            answer = {"access_token": self.token_of(), "expires_on": str(int(end.timestamp()))}
            return json.dumps(
                {**answer, "token_type": "Bearer", "resource": "https://storage.azure.com"}
            ).encode()
        if path == "/latest/api/token" and method == "PUT":
            return b"metadata-session"
        if path.endswith("/security-credentials/"):
            return _ROLE.encode()
        if path.endswith(f"/security-credentials/{_ROLE}") or path == "/v1/credentials":
            return json.dumps(self._aws_keys(end)).encode()
        return self._assumed(end).encode() if method == "POST" and path == "/" else None

    def _aws_keys(self, end: datetime) -> dict[str, str]:
        return {
            "Code": "Success",
            "LastUpdated": datetime.now(UTC).isoformat(),
            "Type": "AWS-HMAC",
            "AccessKeyId": self.keys["access_key_id"],
            "SecretAccessKey": self.keys["secret_access_key"],
            "Token": self.keys["session_token"],
            "Expiration": end.isoformat(),
        }

    def _assumed(self, end: datetime) -> str:
        return (
            "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>"
            f"<SessionToken>{self.keys['session_token']}</SessionToken>"
            f"<SecretAccessKey>{self.keys['secret_access_key']}</SecretAccessKey>"
            f"<Expiration>{end.strftime('%Y-%m-%dT%H:%M:%SZ')}</Expiration>"
            f"<AccessKeyId>{self.keys['access_key_id']}</AccessKeyId>"
            "</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>"
        )


def _handler(server: TokenServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """One request."""

        def do_GET(self) -> None:
            self._serve()

        def do_POST(self) -> None:
            self._serve()

        def do_PUT(self) -> None:
            self._serve()

        def log_message(self, *_: object) -> None:
            """Nothing is printed."""

        def _serve(self) -> None:
            parts = urlsplit(self.path)
            form = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            headers = {name.lower(): value for name, value in self.headers.items()}
            told = {**headers, **dict(parse_qsl(parts.query)), **dict(parse_qsl(form))}
            server.asked.append((self.command, parts.path, told))
            status, body = server.answer(self.command, parts.path)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler
