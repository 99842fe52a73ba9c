"""What lazydelta says about a table, in the words of the eager twin."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import lazydelta as ld
from tests.support.keys import FileKey

STRATEGIES = ("reverse", "forward", "auto")


def keys(files: Iterable[Any]) -> list[FileKey]:
    """The keys of files in the order they came; a key comes twice if the file did."""
    return [(file.path, file.dv_id) for file in files]


def live_keys(table: Path | str, *, version: int | None = None, **scan: Any) -> set[FileKey]:
    """The keys of a scan's files, none of which may come twice."""
    found = keys(ld.open(str(table), version=version).scan(**scan).files())
    assert len(found) == len(set(found)), f"some file came twice: {sorted(found)}"
    return set(found)


def live_paths(table: Path | str, *, version: int | None = None, **scan: Any) -> list[str]:
    """The paths of a scan's files, in the order they came."""
    return [file.path for file in ld.open(str(table), version=version).scan(**scan).files()]
