"""What a bucket of a benchmark's store holds: objects by name, in byte order; a folder is one.

Contract: objects are never replaced. They are told without being opened; names that lead out of a folder are
not there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Protocol

import msgspec


class StoredObject(msgspec.Struct, frozen=True, kw_only=True):
    """One object, as listings and answers tell of it."""

    name: str
    size: int
    etag: str
    modified_s: float


class Bucket(Protocol):
    """Objects that a server can list and send."""

    def after(self, prefix: str, name: str) -> Iterator[StoredObject]:
        """Those directly below the prefix's folder that begin with it, after a name, in byte order."""

    def opened(self, name: str) -> tuple[StoredObject, BinaryIO]:
        """One of them, to read; `FileNotFoundError` where there is none."""

    def put(self, name: str, body: bytes) -> bool:
        """Keep an object unless there is one of that name; whether it was kept."""


class FolderBucket:
    """The files below a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()

    def after(self, prefix: str, name: str) -> Iterator[StoredObject]:
        """As `Bucket`."""
        where = self._folder / prefix.rpartition("/")[0]
        names = sorted(str(path.relative_to(self._folder)) for path in where.glob("*") if path.is_file())
        for found in names:
            if found.startswith(prefix) and found > name:
                yield _told(found, (self._folder / found).stat())

    def opened(self, name: str) -> tuple[StoredObject, BinaryIO]:
        """As `Bucket`."""
        file = self._inside(name).open("rb")
        return _told(name, os.fstat(file.fileno())), file

    def put(self, name: str, body: bytes) -> bool:
        """As `Bucket`."""
        path = self._inside(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with path.open("xb") as file:
                file.write(body)
        except FileExistsError:
            return False
        return True

    def _inside(self, name: str) -> Path:
        path = (self._folder / name).resolve()
        if not path.is_relative_to(self._folder):
            raise FileNotFoundError(name)
        return path


@contextmanager
def object_of(bucket: Bucket, name: str) -> Iterator[tuple[StoredObject, BinaryIO]]:
    """An object while it is read."""
    told, file = bucket.opened(name)
    with file:
        yield told, file


def _told(name: str, status: os.stat_result) -> StoredObject:
    # The e-tag as a folder tells it (storage/local.py): sidecars are built from the very files served here.
    etag = f"{status.st_ino:x}-{status.st_ctime_ns:x}"
    return StoredObject(name=name, size=status.st_size, etag=etag, modified_s=status.st_mtime)
