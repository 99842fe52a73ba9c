"""Temporary folders for what needs a name, as the files of another library do: private, never left behind.

Why: a process that is killed removes nothing, and what it leaves may be a table's rows. Contract: a folder is
for this user alone. Whoever made it holds a lock on it, which ends with the process, however that ends; the
next one that makes a folder in the same place removes those of the same prefix that nobody holds, if they are
this user's. Locks hold between containers that share a disk, where numbers of processes mean nothing.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

_TRIES = 5  # to make a folder that no other process takes for one that was left behind
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_swept: set[tuple[Path, str]] = set()  # once a process is enough


class ScratchFolder:
    """One folder, from now until `remove`, or until the process is gone."""

    def __init__(self, parent: Path, prefix: str) -> None:
        """An `OSError` where the parent cannot be written to."""
        if (parent, prefix) not in _swept:
            _swept.add((parent, prefix))
            sweep(parent, prefix)
        self._process = os.getpid()
        self.path, lock = _locked(parent, prefix)
        self._lock: int | None = lock

    def remove(self) -> None:
        """Delete the folder with all that is in it; a forked child leaves it to its parent."""
        if self._lock is None or self._process != os.getpid():
            return
        lock, self._lock = self._lock, None
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(lock)


def sweep(parent: Path, prefix: str) -> None:
    """Remove folders that were left behind."""
    with suppress(OSError):
        for path in parent.glob(f"{prefix}*"):
            _remove_if_left(path)


def _remove_if_left(path: Path) -> None:
    try:
        folder = os.open(path, _FOLDER)
    except OSError:
        return
    try:
        status = os.fstat(folder)
        if status.st_uid == os.geteuid() and stat.S_IMODE(status.st_mode) == stat.S_IRWXU:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
    except OSError:
        pass  # somebody holds it
    finally:
        os.close(folder)


def _locked(parent: Path, prefix: str) -> tuple[Path, int]:
    """A new folder and the handle that holds its lock."""
    for _ in range(_TRIES):
        path = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        try:
            folder = os.open(path, _FOLDER)
        except FileNotFoundError:
            continue  # swept before it was locked
        try:
            fcntl.flock(folder, fcntl.LOCK_SH | fcntl.LOCK_NB)
            is_there = os.path.samestat(os.fstat(folder), path.stat())
        except OSError:
            is_there = False  # being swept, or already
        if is_there:
            return path, folder
        os.close(folder)
    raise OSError(f"no folder can be locked in {parent}")
