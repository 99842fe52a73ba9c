"""What makes two file actions speak of one logical file (DESIGN.md, rule 1), spelled out slowly.

Shared by the builder and the eager twin; it imports nothing of `lazydelta`.
Spec: PROTOCOL.md, "Add File and Remove File" and "Deletion Vectors".
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

FileKey = tuple[str, str | None]
"""(canonical path, dvId or None)"""

Action = dict[str, Any]
"""The body of one action, as it stands in the log."""


def file_key(action: Action, root: Path) -> FileKey:
    """The key of an `add` or a `remove`."""
    return canonical_path(action["path"], root), dv_id(action.get("deletionVector"))


def canonical_path(path: str, root: Path) -> str:
    """Decoded once; relative to the root when below it, otherwise a URI with its scheme."""
    decoded = unquote(path)
    if not re.match(r"^[A-Za-z][A-Za-z0-9+.-]*:", path):
        if not decoded.startswith("/"):
            return decoded
        decoded = f"file://{decoded}"
    if decoded.startswith("file:/") and not decoded.startswith("file://"):
        decoded = "file://" + decoded.removeprefix("file:")
    below = f"file://{root.resolve()}/"
    return decoded.removeprefix(below)


def dv_id(vector: Action | None) -> str | None:
    """`storageType + pathOrInlineDv [+ "@" + offset]`; no offset and offset 0 differ."""
    if vector is None:
        return None
    offset = vector.get("offset")
    unique = f"{vector['storageType']}{vector['pathOrInlineDv']}"
    return unique if offset is None else f"{unique}@{offset}"
