"""Bytes of commits that wait for a scan: the process's memory counts them until they are taken or dropped."""

from __future__ import annotations

import weakref
from collections.abc import Mapping

from lazydelta.memory_share import MemoryShare


class KeptCommits(dict[str, bytes]):
    """By name. What they take of the share is given back when they are cleared or dropped."""

    def __init__(self, kept: Mapping[str, bytes], share: MemoryShare, held_bytes: int) -> None:
        super().__init__(kept)
        self._giving_back = weakref.finalize(self, share.give, held_bytes)

    def clear(self) -> None:
        """They were taken."""
        super().clear()
        self._giving_back()
