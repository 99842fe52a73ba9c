"""What makes links to the files of a table: this server, or the store that has them.

Contract: a link is for one file that the log of one version names, and expires.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class FileLinks(Protocol):
    """Makes links for the files of one table, at one version, for one client."""

    def urls(self, paths: Sequence[str], sizes: Sequence[int | None]) -> tuple[list[str], int]:
        """A link for each path, and when they expire (ms since 1970)."""
        ...
