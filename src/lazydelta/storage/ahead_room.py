"""How much of one object may be on its way before anybody asks for it: more where readers have to wait.

Why: behind a round trip of 30 ms one block ahead is 33 MB/s, whatever the network could carry.
Contract: thread-safe. The depth of a column begins at one block and doubles when its reader had to wait, to
`limits.READ_AHEAD_BLOCKS_MAX` at most; it stays for what is read of that column later. What is on its way is
drawn from the memory that the caller shares with others: where there is none, fewer blocks are sent for.
"""

from __future__ import annotations

import threading
from typing import Protocol

from lazydelta import limits


class Memory(Protocol):
    """Where memory for what nobody waits for comes from."""

    def try_take(self, byte_count: int) -> bool:
        """Whether so much is granted, at once."""
        ...

    def give(self, byte_count: int) -> None:
        """So much is not held any more."""
        ...


class AheadRoom:
    """Of one object."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._lock = threading.Lock()
        self._bytes_left = limits.READ_AHEAD_BLOCKS_MAX * limits.READ_BLOCK_BYTES
        self._depths: dict[int, int] = {}  # by column

    def depth(self, column: int) -> int:
        """How many blocks of the column are sent for ahead."""
        return self._depths.get(column, 1)

    def deepen(self, column: int, depth: int) -> None:
        """A reader of the column had to wait, though so many blocks were on their way."""
        with self._lock:
            wanted = min(2 * depth, limits.READ_AHEAD_BLOCKS_MAX)
            self._depths[column] = max(self._depths.get(column, 1), wanted)

    def try_take(self, byte_count: int) -> bool:
        """Whether so much more may be on its way."""
        with self._lock:
            if byte_count > self._bytes_left or not self._memory.try_take(byte_count):
                return False
            self._bytes_left -= byte_count
            return True

    def give(self, byte_count: int) -> None:
        """So much has arrived, or is not wanted any more."""
        with self._lock:
            self._bytes_left += byte_count
        self._memory.give(byte_count)
