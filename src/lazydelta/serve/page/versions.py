"""The versions of a table as a timeline: what each added and removed, where checkpoints and sidecars are.

Contract: newest first, a page at a time; only the commits of that page are read. Adds and removes are counted
in the commit itself; one larger than `limits.PAGE_COMMIT_BYTES_MAX` is told by what its writer says of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing, suppress
from typing import Any

import msgspec

from lazydelta import limits
from lazydelta.log.commits import CommitVanishedError, ReverseCommitReader
from lazydelta.log.history import CommitRecord, listed_records, newest_listing
from lazydelta.log.segment import LogFile
from lazydelta.sidecar.format.folder import list_sidecars
from lazydelta.table import Table

_ADDED = ("numAddedFiles", "numTargetFilesAdded", "numFiles", "numOutputFiles", "num_added_files")
NewFile = tuple[str, int, int]  # path, size, time in ms
_REMOVED = ("numRemovedFiles", "numTargetFilesRemoved", "num_removed_files")


class Version(msgspec.Struct, frozen=True, kw_only=True):
    """One commit."""

    version: int
    timestamp: str
    operation: str | None
    adds: int | None  # None: it is not told
    removes: int | None
    bytes_added: int | None
    is_counted: bool  # by its lines; else by what its writer says
    commit_bytes: int
    has_checkpoint: bool
    has_sidecar: bool
    engine: str | None
    user: str | None


def versions_of(table: Table, *, newest: int, count: int) -> list[Version]:
    """So many versions up to `newest`, newest first, as far as they are still there."""
    source = table.scan().source
    storage = source.snapshot.storage
    folder = None if source.sidecar is None else source.sidecar.reading.folder
    sidecars = {} if folder is None else list_sidecars(storage, folder).manifests
    listing = newest_listing(storage, newest=newest, limit=count)
    with closing(ReverseCommitReader(storage)) as reader:
        return [
            _version(reader, listing.commits[record.version], record, has_sidecar=record.version in sidecars)
            for record in listed_records(storage, listing, newest=newest, limit=count)
        ]


def new_files(table: Table, *, versions: int, count: int) -> list[NewFile]:
    """Files that so many of the newest versions added, newest first, as many as that.

    Of their commits, whether a checkpoint has been written since or not; what is cleaned up is left out.
    """
    storage = table.scan().source.snapshot.storage
    listed = newest_listing(storage, newest=table.version, limit=versions).commits
    commits = [listed[at] for at in range(table.version, table.version - versions, -1) if at in listed]
    found: list[NewFile] = []
    with closing(ReverseCommitReader(storage)) as reader, suppress(CommitVanishedError):
        for part in reader.slices(commits):
            found += [(add.path, add.size, add.modification_time or 0) for add in part.adds]
            if len(found) >= count:
                break
    return found[:count]


def _version(
    reader: ReverseCommitReader, file: LogFile, record: CommitRecord, *, has_sidecar: bool
) -> Version:
    counted = _counted(reader, file)
    metrics = record.metrics
    return Version(
        version=record.version,
        timestamp=record.timestamp,
        operation=record.operation,
        adds=_told(metrics, _ADDED) if counted is None else counted[0],
        removes=_told(metrics, _REMOVED) if counted is None else counted[1],
        bytes_added=None if counted is None else counted[2],
        is_counted=counted is not None,
        commit_bytes=record.size_bytes,
        has_checkpoint=record.has_checkpoint,
        has_sidecar=has_sidecar,
        engine=record.engine,
        user=record.user,
    )


def _counted(reader: ReverseCommitReader, file: LogFile) -> tuple[int, int, int] | None:
    """Adds, removes and bytes added."""
    if file.info.size_bytes > limits.PAGE_COMMIT_BYTES_MAX:
        return None
    adds = removes = size = 0
    try:
        for part in reader.slices([file]):
            adds += len(part.adds)
            removes += len(part.removes)
            size += sum(add.size for add in part.adds)
    except CommitVanishedError:  # cleaned up after it was listed
        return None
    return adds, removes, size


def _told(metrics: Mapping[str, Any], names: tuple[str, ...]) -> int | None:  # Any: as writers have it
    for name in names:
        text = str(metrics.get(name, ""))
        if text.isascii() and text.isdecimal():
            return int(text)
    return None
