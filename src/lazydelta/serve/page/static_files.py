"""The files of the page itself: read once, handed out by their names.

Contract: a name that is none of those files is not found, whatever it looks like. Browsers ask each time
whether their copy is still the one, which costs no bytes.
"""

from __future__ import annotations

from hashlib import sha256
from importlib.resources import files

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from lazydelta.serve.page.security import HEADERS

PAGE = "index.html"
_TYPES = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


class _File(msgspec.Struct, frozen=True):
    body: bytes
    headers: dict[str, str]


class StaticFiles:
    """The files, by name."""

    def __init__(self) -> None:
        folder = files("lazydelta.serve.page") / "static"
        self._files = {entry.name: _file(entry.name, entry.read_bytes()) for entry in folder.iterdir()}

    def answer(self, request: Request, name: str) -> Response:
        """One of them."""
        found = self._files.get(name)
        if found is None:
            raise HTTPException(404, "there is no such file")
        if request.headers.get("if-none-match") == found.headers["etag"]:
            return Response(status_code=304, headers=found.headers)
        return Response(found.body, headers=found.headers)


def _file(name: str, body: bytes) -> _File:
    headers = {
        **HEADERS,
        "cache-control": "no-cache",
        "content-type": _TYPES[name.rpartition(".")[2]],
        "etag": f'"{sha256(body).hexdigest()[:32]}"',
    }
    return _File(body, headers)
