"""One commit says one thing of a file: what it adds it does not remove.

Why: lines of a commit have no order by the protocol, and readers that take one see different tables: Delta on
Spark lets the last line decide, the Rust kernel the first. Such a commit is an error rather than a guess.
Contract: a file is its key, so that another deletion vector of the same path is another file. Judged is what
is read: the commits of the tail, or the delta files that stand for them, not what a checkpoint, a compacted
range or a limit makes unnecessary.
Spec: PROTOCOL.md, "Add File and Remove File".
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lazydelta.errors import CorruptLogError
from lazydelta.scan.keys import FileKeys
from lazydelta.scan.remove_set import RemoveSet
from lazydelta.scan.tail_slices import TailSlice

_MANY = 2  # from one in so many on, the digests of all are made at once: they are needed again


def check_once(part: TailSlice, root: str, *, adds: RemoveSet | None, removes: RemoveSet | None) -> None:
    """Raise for a key that a commit adds and removes; the sets are of its slices before this one."""
    found = _within(part)
    if found is None and removes is not None:
        found = _first(part.add_keys, removes, part.version)
    if found is None and adds is not None:
        found = _first(part.remove_keys, adds, part.version)
    if found is not None:
        path, version = found
        raise CorruptLogError(
            f"commit {version} adds and removes one file: {path}",
            root,
            f"read version {version - 1}, or write a checkpoint with the engine that wrote the commit",
        )


def _within(part: TailSlice) -> tuple[str, int] | None:
    """A file that is added and removed by one commit of the slice."""
    adds, removes = part.add_keys, part.remove_keys
    is_range = part.is_compacted and part.versions is None
    if is_range or not len(adds) or not len(removes):
        return None
    rows = np.flatnonzero(np.isin(adds.hashes, removes.hashes))
    if not len(rows):
        return None
    others = np.flatnonzero(np.isin(removes.hashes, adds.hashes[rows]))
    removed = set(_keys(removes, others, part, side=1))
    for row, key in zip(rows.tolist(), _keys(adds, rows, part, side=0), strict=True):
        if key in removed:
            return adds.paths[row].as_py(), key[1]
    return None


def _keys(
    keys: FileKeys, rows: npt.NDArray[np.intp], part: TailSlice, *, side: int
) -> list[tuple[bytes, int]]:
    """Digest and version of these."""
    if len(rows) * _MANY >= len(keys):
        _ = keys.digests
    versions = [part.version] * len(rows) if part.versions is None else part.versions[side][rows].tolist()
    return list(zip(keys.digests_at(rows).tolist(), versions, strict=True))


def _first(keys: FileKeys, among: RemoveSet, version: int) -> tuple[str, int] | None:
    held = np.flatnonzero(among.holds(keys))
    return (keys.paths[int(held[0])].as_py(), version) if len(held) else None
