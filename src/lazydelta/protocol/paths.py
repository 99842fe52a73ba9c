"""Canonical paths: one spelling for each data file, for one path or for a whole Arrow column.

Paths in the log are URIs. They are percent-decoded exactly once; an absolute path without a scheme takes
the table's scheme and authority; a path below the table's root is given relative to it. Two files are the
same file if and only if their canonical paths are equal bytes.
Spec: PROTOCOL.md, "Add File and Remove File".
"""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lazydelta.errors import CorruptLogError

_ABSOLUTE = re.compile(r"^(?:(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):/|/)")
_ESCAPE = re.compile(rb"%[0-9A-Fa-f]{2}")
# Spellings of one store: Hadoop's names for S3 and for Azure without TLS.
_SCHEME_ALIASES = {"s3a": "s3", "s3n": "s3", "abfs": "abfss"}
_SLASH = ord("/")


def canonical_path(path: str, root: str) -> str:
    """The one spelling of a path of the log, for the table at the URI `root` (no trailing slash)."""
    decoded = _unquoted(path) if "%" in path else path
    absolute = _ABSOLUTE.match(path)
    if absolute is None:
        return decoded
    root_uri = _decoded_root(root)
    uri = _canonical_uri(decoded) if absolute["scheme"] else _authority(root_uri) + decoded
    return uri[len(root_uri) + 1 :] if uri.startswith(root_uri + "/") else uri


def canonical_paths(paths: pa.Array, root: str) -> pa.Array:
    """`canonical_path` of a whole column without nulls, at the speed of a memory scan in the common case."""
    if len(paths) == 0:
        return paths
    has_escape, may_be_absolute = _special_bytes(paths)
    if may_be_absolute:
        return pa.array([canonical_path(path, root) for path in paths.to_pylist()], pa.string())
    return _decode_escapes(paths) if has_escape else paths


def listed_path(path: str, root: str) -> str:
    """The canonical path that a user means who has one at hand, perhaps with the table's root before it.

    Nothing is decoded: what comes out of a scan goes in again as it is.
    """
    absolute = _ABSOLUTE.match(path)
    if absolute is None:
        return path
    decoded_root = _decoded_root(root)
    uri = _canonical_uri(path) if absolute["scheme"] else _authority(decoded_root) + path
    for base in (decoded_root, _canonical_uri(root)):
        if uri.startswith(base + "/"):
            return uri[len(base) + 1 :]
    return uri


def root_schemes(root: str) -> list[str]:
    """Every way to spell the scheme of the table's root."""
    scheme = _decoded_root(root).partition(":")[0]
    return [scheme, *(alias for alias, meant in _SCHEME_ALIASES.items() if meant == scheme)]


def string_parts(strings: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Offsets (one more than strings) into the bytes of a string column without nulls."""
    width = np.int64 if pa.types.is_large_string(strings.type) else np.int32
    _, offsets_buffer, data_buffer = strings.buffers()
    offsets = np.frombuffer(offsets_buffer, dtype=width)[strings.offset : strings.offset + len(strings) + 1]
    data = np.frombuffer(data_buffer, dtype=np.uint8) if data_buffer else np.zeros(0, np.uint8)
    return offsets.astype(np.int64), data


def _special_bytes(paths: pa.Array) -> tuple[bool, bool]:
    offsets, data = string_parts(paths)
    if offsets[0] == offsets[-1]:
        return False, False
    text = data[offsets[0] : offsets[-1]].tobytes()  # a copy and two searches: faster than comparing bytes
    starts = offsets[:-1][offsets[:-1] < offsets[-1]]
    may_be_absolute = b":" in text or bool((data[starts] == _SLASH).any())
    return b"%" in text, may_be_absolute


def _decode_escapes(paths: pa.Array) -> pa.Array:
    """Decode `%XX` once over the whole column, one distinct escape after the other, `%25` last.

    Decoding anything but `%25` makes no new `%`, so no escape is decoded twice, provided every `%` begins
    an escape; a column where one does not goes row by row.
    """
    raw = paths.cast(pa.binary())
    _, data = string_parts(paths)
    found = set(_ESCAPE.findall(data.tobytes()))
    escape_count = sum(pc.sum(pc.count_substring(raw, pattern=escape)).as_py() for escape in found)
    if escape_count != pc.sum(pc.count_substring(raw, pattern=b"%")).as_py():
        return pa.array([_unquoted(path) for path in paths.to_pylist()], pa.string())
    for escape in sorted(found, key=lambda text: text == b"%25"):
        raw = pc.replace_substring(raw, pattern=escape, replacement=bytes([int(escape[1:], 16)]))
    try:
        return raw.cast(pa.string())
    except pa.ArrowInvalid:  # some path is not UTF-8: find it, to name it
        return pa.array([_unquoted(path) for path in paths.to_pylist()], pa.string())


def _unquoted(path: str) -> str:
    try:
        return unquote(path, errors="strict")
    except UnicodeDecodeError as damage:
        raise CorruptLogError(
            f"the path {path!r} of a data file is not UTF-8 once decoded",
            path,
            "rename the file and its entry in the log: paths are URIs of UTF-8 text",
        ) from damage


@lru_cache(maxsize=64)
def _decoded_root(root: str) -> str:
    return _canonical_uri(unquote(root, errors="strict"))


def _authority(uri: str) -> str:
    """`scheme://authority` of a canonical URI."""
    scheme, _, rest = uri.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}"


def _canonical_uri(uri: str) -> str:
    """One spelling for scheme and slashes: `file:/x` and `file:///x` are one."""
    scheme, _, rest = uri.partition(":")
    scheme = scheme.lower()
    scheme = _SCHEME_ALIASES.get(scheme, scheme)
    if not rest.startswith("//"):
        rest = "//" + rest
    return f"{scheme}:{rest}"
