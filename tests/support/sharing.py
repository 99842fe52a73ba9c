"""A client of Delta Sharing in plain HTTP, for what no other client would send.

Contract: `Sharing` speaks to one endpoint and hides nothing of an answer.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from lazydelta.serve.sharing import PREFIX
from tests.support.serving import RunningServer


class Answer(msgspec.Struct, frozen=True):
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """One document."""
        return json.loads(self.body)

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Documents, one a line."""
        return [json.loads(line) for line in self.body.splitlines()]

    @property
    def files(self) -> list[dict[str, Any]]:
        """Those that are files."""
        return [line["file"] for line in self.lines if "file" in line]

    @property
    def end(self) -> dict[str, Any] | None:
        """What closes it."""
        found = self.lines[-1].get("endStreamAction")
        return None if found is None else dict(found)


class Sharing:
    """One endpoint, as plain HTTP."""

    def __init__(self, server: RunningServer, token: str | None = None) -> None:
        self.server = server
        self.headers = {} if token is None else {"Authorization": f"Bearer {token}"}

    def get(self, path: str, headers: Mapping[str, str] | None = None, **parameters: Any) -> Answer:
        """`GET` below the prefix."""
        query = f"?{urlencode(parameters)}" if parameters else ""
        return self.ask("GET", f"{PREFIX}{path}{query}", headers=headers)

    def query(self, table: str, headers: Mapping[str, str] | None = None, **body: Any) -> Answer:
        """The files of a table."""
        return self.ask(
            "POST", f"{PREFIX}{table_path(table)}/query", json.dumps(body).encode(), headers=headers
        )

    def ask(
        self, method: str, target: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Any request at all; the target may be a whole address."""
        place = urlsplit(target)
        host = place.netloc or urlsplit(self.server.http_url).netloc
        connection = http.client.HTTPConnection(host, timeout=60)
        try:
            path = place.path + (f"?{place.query}" if place.query else "")
            connection.request(method, path, body, {**self.headers, **(headers or {})})
            answer = connection.getresponse()
            told = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, told, answer.read())
        finally:
            connection.close()


def table_path(table: str) -> str:
    """`share.schema.name`, or a name in the default ones, as a path."""
    share, schema, name = (
        ["lazydelta", "main", *table.split(".")][-3:] if "." not in table else table.split(".")
    )
    return f"/shares/{quote(share)}/schemas/{quote(schema)}/tables/{quote(name)}"


def as_delta(*features: str, end: bool = False) -> dict[str, str]:
    """The header of a client that reads the delta format."""
    told = f"responseformat=delta;readerfeatures={','.join(features)}"
    return {"delta-sharing-capabilities": told + (";includeEndStreamAction=true" if end else "")}
