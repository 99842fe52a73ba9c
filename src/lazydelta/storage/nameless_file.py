"""Temporary files without a name: whoever dies, nothing is left of them.

Why: rows of a table that wait on a disk must not outlive the process that put them there, not even one that
is killed. Contract: only this process can open such a file, and it is gone once it is closed, unless it was
given a name before. What a disk refuses is a `StorageError` that says where, and what to do.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pyarrow as pa

from lazydelta.errors import StorageError

_OPEN = "/proc/self/fd/{}"  # where the system has what is open


def nameless_file(prefix: str) -> IO[bytes]:
    """A new file in the system's temporary folder, to be closed; `prefix` names it for a moment at most."""
    return tempfile.TemporaryFile(prefix=prefix)


def nameless_in(folder: Path) -> IO[bytes] | None:
    """A new file there, of the usual mode, that `name_file` can give a name; None where there is no such."""
    try:
        descriptor = os.open(folder, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o666)
    except (AttributeError, OSError):  # not on this system, not on this disk
        return None
    if os.access(_OPEN.format(descriptor), os.F_OK):
        return os.fdopen(descriptor, "wb")
    os.close(descriptor)
    return None


def name_file(file: IO[bytes], path: Path) -> None:
    """Give a file of `nameless_in` its name, with all that was written so far."""
    file.flush()
    descriptor = file.fileno()
    # The folder's descriptor is not looked at, but has Python call what follows the link.
    os.link(_OPEN.format(descriptor), path, src_dir_fd=descriptor)


def arrow_file(file: IO[bytes], mode: str) -> pa.PythonFile:
    """The file for Arrow, which closes what it is given: so it gets a second handle."""
    return pa.PythonFile(os.fdopen(os.dup(file.fileno()), f"{mode}b", buffering=0), mode=mode)


@contextmanager
def disk_trouble_named(what: str) -> Iterator[None]:
    """Turn what the disk says into the error of this package; `what` could not be moved there."""
    try:
        yield
    except OSError as trouble:
        raise StorageError(
            f"{what} could not be moved to disk: {trouble}",
            tempfile.gettempdir(),
            "free some space there, or name another folder by TMPDIR",
        ) from trouble
