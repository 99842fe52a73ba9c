"""Links to files that the store signs: Azure's shared access signatures, S3's presigned requests.

Contract: files outside the table's root are those that `storage.elsewhere` allows.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from lazydelta.errors import UnsupportedTableError
from lazydelta.storage import Storage
from lazydelta.storage.elsewhere import storage_of


class StoreLinks:
    """Links for the files of one table."""

    def __init__(self, storage: Storage, *, valid_seconds: float) -> None:
        self._storage = storage
        self._valid_seconds = valid_seconds

    def urls(self, paths: Sequence[str], sizes: Sequence[int | None]) -> tuple[list[str], int]:
        """A link for each path, and when they expire; files below the root are signed at once."""
        del sizes
        expires_ms = int((time.time() + self._valid_seconds) * 1000)
        inside = [path for path in paths if "://" not in path]
        found = dict(zip(inside, self._signed(self._storage, inside), strict=True)) if inside else {}
        for path in paths:
            if path not in found:
                storage, name = storage_of(self._storage, path)
                found[path] = self._signed(storage, [name])[0]
        return [found[path] for path in paths], expires_ms

    def _signed(self, storage: Storage, names: Sequence[str]) -> list[str]:
        sign = getattr(storage, "sign", None)
        if sign is None:
            raise UnsupportedTableError(
                "a folder of this machine signs no links",
                storage.root,
                'set file_links = "server" for the table in serve.toml',
            )
        urls: list[str] = sign(names, self._valid_seconds)
        return urls
