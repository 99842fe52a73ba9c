"""Temporary files without a name: whoever dies, nothing is left of them.

Why: rows of a table that wait on a disk must not outlive the process that put them there, not even one that
is killed. Contract: only this process can open such a file, and it is gone once it is closed. What a disk
refuses is a `StorageError` that says where, and what to do.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

import pyarrow as pa

from lazydelta.errors import StorageError


def nameless_file(prefix: str) -> IO[bytes]:
    """A new file in the system's temporary folder, to be closed; `prefix` names it for a moment at most."""
    return tempfile.TemporaryFile(prefix=prefix)


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
