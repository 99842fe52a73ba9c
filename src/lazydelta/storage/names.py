"""Names inside a table, checked before they reach a path or a URL.

Why: a log is somebody else's data. A `..` in it must not lead out of the table's root.
"""

from __future__ import annotations

from functools import lru_cache
from urllib.parse import quote

from lazydelta.errors import StorageError

# What RFC 3986 allows unescaped in a path, so that root URIs stay readable.
PATH_SAFE = "/:@!$&'()*+,;=~"


def checked_name(name: str, root: str) -> str:
    """The name itself, or an error where it is empty, absolute, or steps out of the root."""
    segments = name.split("/")
    if "\0" in name or any(segment in ("", ".", "..") for segment in segments):
        raise StorageError(
            f"{name!r} is not a name inside the table",
            root,
            "names are relative to the table's root, without '..' and empty parts; check who wrote the log",
        )
    return name


@lru_cache(maxsize=1024)  # every request knows where it goes, in case it fails
def uri_path(path: str) -> str:
    """A decoded path, percent-encoded for a URI."""
    return quote(path, safe=PATH_SAFE)


def uri_of(root: str, name: str) -> str:
    """Where an object is, for error messages."""
    return f"{root}/{uri_path(name)}" if name else root
