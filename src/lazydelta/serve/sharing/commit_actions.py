"""The file actions of commits, oldest first, with all that a client's log must have of them.

Why: scans decode what readers need; what is handed on must be whole.
Contract: one slice of a commit at a time. In a change data feed, a commit that has `cdc` actions tells its
changes by them alone; adds and removes that change no data are none.
Spec: PROTOCOL.md of Delta, "Change Data Files", "Add CDC File".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from lazydelta import limits
from lazydelta.errors import CorruptLogError
from lazydelta.log.lines import decoded_lines
from lazydelta.log.segment import LogFile
from lazydelta.protocol.actions import DeletionVector, Metadata, Protocol
from lazydelta.storage import ObjectNotFoundError, Storage

_Values = dict[str, str | None]


class FileAction(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """An add, a remove or a cdc: the fields of all three."""

    path: str
    size: int | None = None
    partition_values: _Values | None = None
    data_change: bool = False
    modification_time: int | None = None
    deletion_timestamp: int | None = None
    extended_file_metadata: bool | None = None
    stats: str | None = None
    tags: _Values | None = None
    deletion_vector: DeletionVector | None = None
    base_row_id: int | None = None
    default_row_commit_version: int | None = None
    clustering_provider: str | None = None


class WholeLine(msgspec.Struct, rename="camel", gc=False):
    """One line of a commit."""

    add: FileAction | None = None
    remove: FileAction | None = None
    cdc: FileAction | None = None
    meta_data: Metadata | None = None
    protocol: Protocol | None = None


class _CdcLine(msgspec.Struct, gc=False):
    cdc: Any = None  # Any: only whether there is one


_LINES = msgspec.json.Decoder(WholeLine)
_CDC = msgspec.json.Decoder(_CdcLine)


class Change(msgspec.Struct, frozen=True, gc=False):
    """One action that changes data, or what the table is."""

    kind: str  # add, remove, cdc, metaData or protocol
    action: Any  # Any: as the kind has it


def changes_of(storage: Storage, commit: LogFile, *, by_feed: bool) -> Iterator[list[Change]]:
    """The changes of a commit, a slice of its text at a time."""
    where = f"{storage.root}/{commit.name}"
    has_feed = by_feed and _has_cdc(storage, commit, where)
    for _, lines in decoded_lines(_chunks(storage, commit, where), _LINES, where):
        yield [change for line in lines for change in _changes(line, has_feed=has_feed)]


def _changes(line: WholeLine, *, has_feed: bool) -> Iterator[Change]:
    if line.meta_data is not None:
        yield Change("metaData", line.meta_data)
    if line.protocol is not None:
        yield Change("protocol", line.protocol)
    if has_feed:
        if line.cdc is not None:
            yield Change("cdc", line.cdc)
        return
    if line.add is not None and line.add.data_change:
        yield Change("add", line.add)
    if line.remove is not None and line.remove.data_change:
        yield Change("remove", line.remove)


def _has_cdc(storage: Storage, commit: LogFile, where: str) -> bool:
    return any(
        line.cdc is not None
        for text, lines in decoded_lines(_chunks(storage, commit, where), _CDC, where)
        if b'"cdc"' in text
        for line in lines
    )


def _chunks(storage: Storage, commit: LogFile, where: str) -> Iterator[bytes]:
    try:
        yield from storage.get_stream(commit.name, limits.COMMIT_CHUNK_BYTES)
    except ObjectNotFoundError as gone:
        raise CorruptLogError(
            f"commit {commit.version} vanished after it was listed",
            where,
            "ask again: the log was cleaned up",
        ) from gone
