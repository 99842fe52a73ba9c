"""Protocol and metadata at a version, where those of an older version on the same checkpoint are known.

Why: a reader that comes back after one more commit should read one more commit.
Contract: the same answer as `read_state`, from the commits after the known version alone; it stands in for
the checkpoint. A `.crc` newer than it is used as ever.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from lazydelta.log.commits import ReverseCommitReader
from lazydelta.log.companion import FloorState, TailState
from lazydelta.log.segment import CheckpointFiles, LogSegment
from lazydelta.log.state import TableState, read_state
from lazydelta.storage import Storage


class KnownState(msgspec.Struct, frozen=True, kw_only=True):
    """What a version said, and the files that said it."""

    segment: LogSegment
    state: TableState


def reaches(known: KnownState, segment: LogSegment) -> bool:
    """Whether the segment goes on where the known one ends, by files that are still the same."""
    count = len(known.segment.commits)
    return (
        known.segment.checkpoint == segment.checkpoint
        and known.segment.version < segment.version
        and known.segment.commits == segment.commits[:count]
    )


def read_state_since(
    storage: Storage, segment: LogSegment, commits: ReverseCommitReader, known: KnownState
) -> TableState:
    """The state at the segment's version, which `known` reaches."""
    since = known.segment.version
    rest = msgspec.structs.replace(
        segment,
        checkpoint=CheckpointFiles(since, ()),  # the known version is the floor
        checkpoint_commit=None,
        commits=segment.commits[len(known.segment.commits) :],
        compactions=tuple(file for file in segment.compactions if file.version > since),
        crcs=tuple(crc for crc in segment.crcs if crc.version > since),
    )
    return read_state(storage, rest, commits, None, companion=_Floor(known.state))


class _Floor:
    """The known state, in the place of a checkpoint's companion."""

    def __init__(self, state: TableState) -> None:
        self._state = state

    def hinted(self, version: int) -> None:
        """Nothing is read ahead."""

    def pinned(self, segment: LogSegment) -> None:
        """Nothing is read ahead."""

    def state(self) -> FloorState:
        """The known state."""
        return FloorState(
            protocol=self._state.protocol, metadata=self._state.metadata, source=self._state.source
        )

    def tail_states(self, segment: LogSegment) -> Sequence[TailState]:  # noqa: ARG002 - the protocol's shape
        """The commits themselves are few."""
        return ()
