"""Keys of logical files over whole Arrow columns: exact 128-bit digests, and cheap 64-bit filter hashes.

A key is a canonical path with its dvId (or none). The digest counts as the key itself; the filter hash
looks at the path alone, at a few words of it, and may only rule a key out.
"""

from __future__ import annotations

from functools import cached_property
from hashlib import blake2b
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lazydelta.protocol.actions import dv_id
from lazydelta.protocol.paths import string_parts

Digests = npt.NDArray[np.bytes_]
Hashes = npt.NDArray[np.uint64]
DIGEST_BYTES = 16
DIGEST = np.dtype(f"S{DIGEST_BYTES}")
_WORD_BYTES = 8
# Where words are taken, counted from the end: data file names end in 36 unique characters and a short
# suffix. Only the filter rests on this: other names cost exact look-ups, never an answer.
_WORD_OFFSETS = (24, 40)
_MIX = np.uint64(0xFF51AFD7ED558CCD)


class KeyDigests(msgspec.Struct, frozen=True, eq=False):
    """Keys of which only what a `RemoveSet` needs is left."""

    hashes: Hashes
    digests: Digests

    def __len__(self) -> int:
        return len(self.digests)

    def digests_at(self, rows: npt.NDArray[np.intp]) -> Digests:
        """The digests of some keys."""
        return self.digests[rows]


class FileKeys:
    """The keys of a batch: canonical paths, with the deletion vectors that some rows have.

    `vectors` are structs with `storage_type`, `path_or_inline_dv` and `offset`; None where no row has one.
    """

    def __init__(self, paths: pa.Array, vectors: pa.StructArray | None = None) -> None:
        self.paths = paths
        self.vectors = None if vectors is None or vectors.null_count == len(vectors) else vectors

    def __len__(self) -> int:
        return len(self.paths)

    @cached_property
    def hashes(self) -> Hashes:
        """The filter hash of each path."""
        return path_hashes(self.paths)

    @cached_property
    def digests(self) -> Digests:
        """The digest of each key."""
        return _key_digests(self.paths, self.vectors)

    def digests_at(self, rows: npt.NDArray[np.intp]) -> Digests:
        """The digests of some keys, without making the others."""
        if "digests" in self.__dict__:
            return self.digests[rows]
        indices = pa.array(rows, pa.int64())
        vectors = None if self.vectors is None else self.vectors.take(indices)
        return _key_digests(self.paths.take(indices), vectors)


def path_hashes(paths: pa.Array) -> Hashes:
    """A hash of each path, from its length and three of its words."""
    offsets, data = string_parts(paths)
    starts, ends = offsets[:-1], offsets[1:]
    lengths = ends - starts
    shortest = int(lengths.min(initial=max(_WORD_OFFSETS)))
    if len(data) < _WORD_BYTES or shortest < _WORD_BYTES:
        return _short_path_hashes(paths)
    # Every 8 bytes of the text as a word, at any position.
    words = np.ndarray((len(data) - _WORD_BYTES + 1,), np.uint64, data, strides=(1,))
    hashes: Hashes = lengths.astype(np.uint64)
    for offset in _WORD_OFFSETS:
        at = ends - offset
        hashes = _mixed(hashes, words[np.maximum(at, starts) if shortest < offset else at])
    return _mixed(hashes, words[starts])


def equal_hashes(hashes: Hashes) -> npt.NDArray[np.bool_]:
    """Whose hash comes more than once: the keys of all others differ from any other key."""
    order = np.argsort(hashes)
    in_order = hashes[order]
    is_same = in_order[1:] == in_order[:-1]
    again = np.zeros(len(hashes), np.bool_)
    again[order[1:][is_same]] = True
    again[order[:-1][is_same]] = True
    return again


def _key_digests(paths: pa.Array, vectors: pa.StructArray | None) -> Digests:
    texts = paths.cast(pa.binary()).to_pylist()
    if vectors is None or vectors.null_count == len(vectors):
        return np.frombuffer(b"".join(map(_digest, texts)), DIGEST)
    ids = [_dv_id(vector) for vector in vectors.to_pylist()]
    return np.frombuffer(b"".join(map(_digest, texts, ids)), DIGEST)


def _dv_id(vector: dict[str, Any] | None) -> str | None:  # Any: a row of an Arrow struct
    if vector is None:
        return None
    return dv_id(vector["storage_type"], vector["path_or_inline_dv"], vector["offset"])


def _mixed(hashes: Hashes, words: Hashes) -> Hashes:
    hashes = (hashes ^ words) * _MIX
    return hashes ^ (hashes >> np.uint64(32))


def _short_path_hashes(paths: pa.Array) -> Hashes:
    """The same for columns with a path under eight bytes: padded to eight, row by row."""
    found = []
    for path in paths.to_pylist():
        text = path.encode()
        if len(text) >= _WORD_BYTES:
            found.append(int(path_hashes(pa.array([path], pa.string()))[0]))
        else:
            word = np.frombuffer(text.ljust(_WORD_BYTES, b"\0"), np.uint64)
            found.append(int(_mixed(np.array([len(text)], np.uint64), word)[0]))
    return np.array(found, np.uint64)


def _digest(path: bytes, dv_id: str | None = None) -> bytes:
    if dv_id is None:
        return blake2b(path, digest_size=DIGEST_BYTES).digest()
    # The personalisation keeps keys with and without a vector apart, the length keeps path and vector apart.
    body = b"%d:%b%b" % (len(path), path, dv_id.encode())
    return blake2b(body, digest_size=DIGEST_BYTES, person=b"dv").digest()
