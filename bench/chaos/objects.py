"""The files of a table as bytes by name, the same on every store, past lazydelta's own storage.

Why: what keeps the reference copy, and what writes by hand, must not share a mistake with the reader.
"""

from __future__ import annotations

from pathlib import Path

import obstore
from obstore.exceptions import AlreadyExistsError, GenericError, NotFoundError
from obstore.store import AzureStore, LocalStore, S3Store

from bench.chaos.world import TableSpec
from lazydelta.settings import Settings
from lazydelta.storage import connect, parse_address

ATTEMPTS = 5


class Objects:
    """One table's files; `name` is relative to its root."""

    def __init__(self, spec: TableSpec) -> None:
        self.folder = Path(spec.url) if spec.store == "local" else None
        self._store: LocalStore | AzureStore | S3Store
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._store, self._prefix = LocalStore(str(self.folder)), ""
        else:
            address = parse_address(spec.url)
            patient = Settings(storage_options=spec.options, request_timeout_seconds=240.0)
            self._store = connect(address, patient)
            self._prefix = f"{address.path}/"

    def get(self, name: str) -> bytes | None:
        """The whole of it; None where there is no such file."""
        for attempt in range(ATTEMPTS):
            try:
                return bytes(obstore.get(self._store, self._prefix + name).bytes())
            except (NotFoundError, FileNotFoundError):
                return None
            except GenericError:  # a busy machine: the emulator did not answer in time
                if attempt == ATTEMPTS - 1:
                    raise
        raise AssertionError("unreachable")

    def put(self, name: str, body: bytes | Path) -> None:
        """Write it, whatever was there."""
        obstore.put(self._store, self._prefix + name, body)

    def put_new(self, name: str, body: bytes) -> bool:
        """Write it unless there is one; whether it was written."""
        try:
            obstore.put(self._store, self._prefix + name, body, mode="create")
        except (AlreadyExistsError, FileExistsError):
            return False
        return True

    def delete(self, names: list[str]) -> None:
        """Whatever of these is there."""
        for name in names:
            try:
                obstore.delete(self._store, self._prefix + name)
            except (NotFoundError, FileNotFoundError):
                continue

    def listing(self, below: str) -> dict[str, float]:
        """Names below a folder and when they were written, in seconds since 1970."""
        for attempt in range(ATTEMPTS):
            try:
                pages = list(obstore.list(self._store, prefix=self._prefix + below))
                break
            except GenericError:  # an emulator that lists while others write may stumble
                if attempt == ATTEMPTS - 1:
                    raise
        metas = [meta for page in pages for meta in page]
        return {meta["path"].removeprefix(self._prefix): meta["last_modified"].timestamp() for meta in metas}
