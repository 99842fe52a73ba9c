"""Links to files that this server answers itself."""

from __future__ import annotations

import time
from collections.abc import Sequence

import msgspec

from lazydelta.serve.link_office import FILES_PATH, FileLink, LinkOffice
from lazydelta.serve.sealed_text import text_of


class ServerLinks:
    """Links that this server answers itself."""

    def __init__(
        self, office: LinkOffice, base: str, *, table: str, client: str, version: int, valid_seconds: float
    ) -> None:
        self._office = office
        self._base = base
        self._table, self._client, self._version = table, client, version
        self._valid_seconds = valid_seconds

    def urls(self, paths: Sequence[str], sizes: Sequence[int | None]) -> tuple[list[str], int]:
        """A link for each path, and when they expire."""
        expires_at = int(time.time() + self._valid_seconds)
        return [self._url(*file, expires_at) for file in zip(paths, sizes, strict=True)], expires_at * 1000

    def _url(self, path: str, size: int | None, expires_at: int) -> str:
        link = FileLink(self._table, self._client, self._version, path, size)
        payload = text_of(msgspec.msgpack.encode(link))
        return f"{self._base}{FILES_PATH}/{payload}?{self._office.query(payload, expires_at)}"
