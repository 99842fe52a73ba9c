"""What may stand beside a checkpoint and know the same, cheaper: told early, so that it can read ahead.

Why: the room of sidecars lies above this one, yet opening a table wants what it knows, and wants its requests
to run beside the log's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from lazydelta.log.segment import LogSegment
from lazydelta.protocol.actions import Metadata
from lazydelta.protocol.actions import Protocol as TableProtocol


class FloorState(msgspec.Struct, frozen=True, kw_only=True):
    """Protocol and metadata in force at the checkpoint's version."""

    protocol: TableProtocol
    metadata: Metadata
    source: str  # for explain


class TailState(msgspec.Struct, frozen=True, kw_only=True):
    """The newest protocol and metadata in the commits `after` < v <= `until`; None where they have none."""

    after: int
    until: int
    protocol: TableProtocol | None
    metadata: Metadata | None


class FloorCompanion(Protocol):
    """Beside the checkpoint of one table. None of these may fail for want of a companion."""

    def hinted(self, version: int) -> None:
        """The checkpoint is probably of this version; the log is about to be listed."""
        ...

    def pinned(self, segment: LogSegment) -> None:
        """The log is listed and the segment chosen."""
        ...

    def state(self) -> FloorState | None:
        """The state at the pinned segment's checkpoint, where it is proven."""
        ...

    def tail_states(self, segment: LogSegment) -> Sequence[TailState]:
        """What is known of the segment's tail without its commits, newest first, none overlapping."""
        ...
