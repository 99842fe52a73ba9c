"""Protocol and metadata in force at a version, without reading the checkpoint's file rows.

The newest readable `.crc` at or after the checkpoint carries both; commits after it may override them.
Without one the whole tail is read, then what stands beside the checkpoint and proves itself, else the few
row groups of the checkpoint that hold them. A `.crc` whose txnId contradicts its commit was left by a
rewritten log and does not count.
Contract: both are known or it is an error; the reader can honour them or it is an error.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from lazydelta import limits
from lazydelta.errors import CorruptLogError, StorageError
from lazydelta.log.checkpoint import CheckpointReader
from lazydelta.log.checksum import read_checksum
from lazydelta.log.commits import CommitState, ReverseCommitReader, newest_first, read_commit_head
from lazydelta.log.companion import FloorCompanion, TailState
from lazydelta.log.segment import LogFile, LogSegment
from lazydelta.protocol.actions import Metadata, Protocol, VersionChecksum
from lazydelta.protocol.features import check_readable
from lazydelta.storage import ObjectNotFoundError, Storage


class TableState(msgspec.Struct, frozen=True, kw_only=True):
    """What a version says about how its files are read."""

    protocol: Protocol
    metadata: Metadata
    source: str  # where they were found, for explain
    checksum: VersionChecksum | None  # of the pinned version itself, where it counts
    ignored: tuple[str, ...] = ()  # `.crc` files that did not count, and why


class _Findings(msgspec.Struct):
    protocol: Protocol | None = None
    metadata: Metadata | None = None

    @property
    def is_complete(self) -> bool:
        return self.protocol is not None and self.metadata is not None

    def older(self, protocol: Protocol | None, metadata: Metadata | None) -> None:
        """Take what an older source says where nothing newer has spoken."""
        self.protocol = self.protocol or protocol
        self.metadata = self.metadata or metadata


def read_state(
    storage: Storage,
    segment: LogSegment,
    commits: ReverseCommitReader,
    checkpoint: CheckpointReader | None,
    *,
    companion: FloorCompanion | None = None,
) -> TableState:
    """Protocol and metadata at the segment's version, checked against what this reader can honour."""
    ignored: list[str] = []
    state = _from_checksum(storage, segment, commits, ignored)
    if state is None:
        state = _from_tail(segment, commits, checkpoint, ignored, companion)
    check_readable(state.protocol, segment.root)
    return state


def _from_checksum(
    storage: Storage, segment: LogSegment, commits: ReverseCommitReader, ignored: list[str]
) -> TableState | None:
    for crc in segment.crcs[: -limits.CRC_TRIES_MAX - 1 : -1]:
        pending = commits.submit(_checksum_if_readable, storage, crc)
        found, own = _since(storage, segment, commits, crc.version)
        checksum = pending.result()
        problem = _problem(checksum, own)
        if checksum is None or problem:
            ignored.append(f"{crc.parsed.name}: {problem}")
            continue
        found.older(checksum.protocol, checksum.metadata)
        assert found.protocol is not None
        assert found.metadata is not None
        return TableState(
            protocol=found.protocol,
            metadata=found.metadata,
            source=crc.parsed.name,
            checksum=checksum if crc.version == segment.version else None,
            ignored=tuple(ignored),
        )
    return None


def _since(
    storage: Storage, segment: LogSegment, commits: ReverseCommitReader, version: int
) -> tuple[_Findings, CommitState | None]:
    """What the commits after `version` say, and what its own commit says where it is still there."""
    found = _Findings()
    own: CommitState | None = None
    for state in commits.states(file for file in reversed(segment.commits) if file.version >= version):
        if state.version == version:
            own = state
        else:
            found.older(state.protocol, state.metadata)
    if version == segment.floor and segment.checkpoint_commit is not None:
        own = _state_if_readable(storage, segment.checkpoint_commit)
    return found, own


def _state_if_readable(storage: Storage, commit: LogFile) -> CommitState | None:
    """The commit of the checkpoint's own version is not part of the tail: its damage concerns nobody."""
    try:
        return read_commit_head(storage, commit)
    except (CorruptLogError, ObjectNotFoundError):
        return None


def _from_tail(
    segment: LogSegment,
    commits: ReverseCommitReader,
    checkpoint: CheckpointReader | None,
    ignored: list[str],
    companion: FloorCompanion | None,
) -> TableState:
    found = _Findings()
    for state in _tail_states(segment, commits, companion):
        found.older(state.protocol, state.metadata)
    source = "commits"
    beside = None if found.is_complete or companion is None else companion.state()
    if beside is not None:
        found.older(beside.protocol, beside.metadata)
        source = beside.source
    elif not found.is_complete and checkpoint is not None:
        found.older(*checkpoint.state())
        source = f"checkpoint {checkpoint.version}"
    if found.protocol is None or found.metadata is None:
        missing = "protocol" if found.protocol is None else "metaData"
        raise CorruptLogError(
            f"the log of version {segment.version} has no {missing} action",
            segment.root,
            "restore the commit or checkpoint that held it",
        )
    return TableState(
        protocol=found.protocol,
        metadata=found.metadata,
        source=source,
        checksum=None,
        ignored=tuple(ignored),
    )


def _tail_states(
    segment: LogSegment,
    commits: ReverseCommitReader,
    companion: FloorCompanion | None,
) -> Iterable[CommitState | TailState]:
    """What the whole tail says, newest first; of a long one what stands for commits is asked first."""
    files = newest_first(segment)
    is_long = len(files) >= limits.SIDECAR_DELTA_COMMITS
    if companion is None or not is_long or len(files) < len(segment.commits):
        return commits.states(files)
    known = companion.tail_states(segment)
    told = {version for span in known for version in range(span.after + 1, span.until + 1)}
    read = commits.states(file for file in files if file.version not in told)
    return sorted([*known, *read], key=_newest_version, reverse=True)


def _newest_version(state: CommitState | TailState) -> int:
    return state.until if isinstance(state, TailState) else state.version


def _checksum_if_readable(storage: Storage, crc: LogFile) -> VersionChecksum | None:
    try:
        return read_checksum(storage, crc)
    except StorageError:
        return None  # without it the commits say the same


def _problem(checksum: VersionChecksum | None, commit: CommitState | None) -> str | None:
    if checksum is None:
        return "cannot be read"
    if checksum.protocol is None or checksum.metadata is None:
        return "has no protocol or no metadata"
    return None if commit is None else _contradiction(checksum, commit)


def _contradiction(checksum: VersionChecksum, commit: CommitState) -> str | None:
    """Why the checksum cannot belong to this commit: a rewritten log leaves such files behind."""
    told = None if commit.info is None else commit.info.txn_id
    if checksum.txn_id is not None and isinstance(told, str) and told != checksum.txn_id:
        return "belongs to another commit (txnId differs)"
    if commit.protocol is not None and commit.protocol != checksum.protocol:
        return "belongs to another commit (protocol differs)"
    assert checksum.metadata is not None
    if commit.metadata is not None and _essence(commit.metadata) != _essence(checksum.metadata):
        return "belongs to another commit (metadata differs)"
    return None


def _essence(metadata: Metadata) -> tuple[object, ...]:
    """What of the metadata decides how a table is read."""
    return metadata.id, metadata.schema_string, metadata.partition_columns, metadata.configuration
