"""Local files, opened so that only what a table may hold is read: regular files in folders that may be read.

Why: whoever writes to a table's folder may put a link there that leads to any file of this machine, or a pipe
that nobody ever writes to. Contract: a file is judged by its descriptor after it was opened, so that nobody
can put another in its place in between; opening waits for nobody. What lies outside the table's folder and
the allowed ones, after links, is a `StorageError` that says what to set; so is what is not a regular file.
The folders themselves may be links, and may become others. Writing and listing judge the folder's path.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from pathlib import Path

from lazydelta.errors import AccessDeniedError, StorageError
from lazydelta.storage.interface import ObjectNotFoundError
from lazydelta.storage.places import Places

ABSENT = (FileNotFoundError, NotADirectoryError, IsADirectoryError)
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_DESCRIPTORS = "/proc/self/fd"  # where the system tells what is open; not every one does
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class LocalRoots:
    """The folders in which files may be read."""

    def __init__(self, folders: Sequence[str], *, are_all: bool = False) -> None:
        self._folders = tuple(folders)
        self._are_all = are_all
        self._real: tuple[str, ...] | None = None  # after links, each with a slash

    def open(self, path: str, where: str) -> tuple[int, os.stat_result]:
        """A descriptor of a regular file, to be closed, and its status."""
        try:
            descriptor = os.open(path, _READ)
        except OSError as error:
            raise failure(error, where) from error
        try:
            return descriptor, self._judged(descriptor, path, where)
        except BaseException:
            os.close(descriptor)
            raise

    def check_folder(self, path: str, where: str) -> None:
        """Raise where the folder, which need not exist, lies elsewhere after links."""
        if not self._are_all:
            self._check(os.path.realpath(path), where)

    def are_plain(self, paths: Sequence[str]) -> list[bool]:
        """Which of them are regular files that may be read: for a library that opens them by itself."""
        folders: dict[str, bool] = {}
        return [self._is_plain(path, folders) for path in paths]

    def _judged(self, descriptor: int, path: str, where: str) -> os.stat_result:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise _no_file(status.st_mode, where)
        if not self._are_all:
            self._check(_real_path(descriptor, path), where)
        return status

    def _is_plain(self, path: str, folders: dict[str, bool]) -> bool:
        try:
            mode = os.lstat(path).st_mode
            if stat.S_ISLNK(mode):
                return stat.S_ISREG(Path(path).stat().st_mode) and self._allows(os.path.realpath(path))
        except OSError:
            return False
        folder = path.rpartition("/")[0]
        if folder not in folders:
            folders[folder] = self._allows(os.path.realpath(folder))
        return stat.S_ISREG(mode) and folders[folder]

    def _check(self, real: str, where: str) -> None:
        if not self._allows(real):
            raise StorageError(
                "a link in the table leads to a file outside its root",
                f"{where}, which is {real}",
                "if that file may be read, set the storage option "
                f'delta.allowed_roots="{Path(real).parent}" (a root above it will do)',
            )

    def _allows(self, real: str) -> bool:
        if self._are_all:
            return True
        inside = f"{real}/"
        if self._real is not None and inside.startswith(self._real):
            return True
        # First, or a root became a link to another folder.
        self._real = tuple(f"{os.path.realpath(folder).rstrip('/')}/" for folder in self._folders)
        return inside.startswith(self._real)


def roots_of(places: Places) -> LocalRoots:
    """The folder of a local table, and those that its settings allow."""
    allowed = (place.address for place in places.allowed if place.address.kind == "local")
    return LocalRoots([places.table.path, *(address.path for address in allowed)], are_all=places.whole_store)


def descriptor_path(descriptor: int, path: str) -> str:
    """Where the open file can be opened again: that very one, where the system has a name for it."""
    name = f"{_DESCRIPTORS}/{descriptor}"
    return name if os.access(name, os.R_OK) else path


def failure(error: OSError, where: str) -> StorageError:
    """What the file system said, as the error of this package."""
    if isinstance(error, ABSENT):
        return ObjectNotFoundError("there is no such file", where, "check the table's path")
    if isinstance(error, FileExistsError):
        return StorageError(
            "a file is in the place of a folder", where, "move it away, or name another place"
        )
    if isinstance(error, PermissionError):
        return AccessDeniedError(
            "the file system refused access", where, "give this user permission to read (or write) there"
        )
    if error.errno in (errno.ENXIO, errno.EOPNOTSUPP):  # what opening a socket gives
        return _no_file(stat.S_IFSOCK, where)
    return StorageError(
        f"the file system failed: {error.strerror}", where, "check the disk or the mount, then try again"
    )


def _no_file(mode: int, where: str) -> StorageError:
    return StorageError(
        f"{_KINDS.get(stat.S_IFMT(mode), 'something else')} is in the place of a file",
        where,
        "a table has regular files only: check who put it there, and remove it or restore the file",
    )


def _real_path(descriptor: int, path: str) -> str:
    """Where the open file lies, after links."""
    try:
        return os.readlink(f"{_DESCRIPTORS}/{descriptor}")  # noqa: PTH115 - a third of the time
    except OSError:
        return os.path.realpath(path)
