"""The error for a sidecar that cannot be used: a reason to go back to the checkpoint, never to stop."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from lazydelta.errors import CorruptLogError

FIX = "build the sidecar anew with `lazydelta sidecar build`; the checkpoint beside it still holds everything"


class DamagedSidecarError(CorruptLogError):
    """A file of the stats sidecar is torn, altered, or of another format."""


def damaged(what: str, where: str) -> DamagedSidecarError:
    """The error that says what is wrong with which file."""
    return DamagedSidecarError(what, where, FIX)


@contextmanager
def odd_rows_named(where: str) -> Iterator[None]:
    """Turn what goes wrong with rows that decode, but to odd types, into the error that names the file."""
    try:
        yield
    except (pa.ArrowException, KeyError) as damage:
        raise damaged(f"a file of the sidecar has rows that cannot be files: {damage}", where) from damage
