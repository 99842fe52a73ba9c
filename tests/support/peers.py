"""What delta-rs says about a table, in the words of our tests."""

from __future__ import annotations

from pathlib import Path

import deltalake


def delta_rs_paths(table: Path, *, version: int | None = None) -> list[str]:
    """The decoded paths of the live files by delta-rs, sorted; a path comes twice if it is live twice."""
    opened = deltalake.DeltaTable(str(table), version=version)
    root = f"{table.resolve()}/"
    return sorted(uri.removeprefix("file://").removeprefix(root) for uri in opened.file_uris())
