"""The commits of a table as a stream reads them: files that were added, oldest version first.

Contract: one slice of a commit in memory at a time. Files whose rows were there before (`dataChange` false,
as OPTIMIZE writes them) do not count. The order of a commit's files is that of its lines, which never change,
so that a number tells how far a stream has come.
"""

from __future__ import annotations

from collections.abc import Iterator, Set

import msgspec
import pyarrow as pa

from lazydelta import limits
from lazydelta.errors import UnsupportedTableError, VersionNotFoundError
from lazydelta.log.file_rows import rows_from_adds
from lazydelta.log.lines import decoded_lines
from lazydelta.log.segment import LogFile, list_log
from lazydelta.log.snapshot import Snapshot
from lazydelta.protocol.actions import Add, Metadata, Protocol
from lazydelta.protocol.names import LOG_FOLDER, commit_name
from lazydelta.rows.data_file import DATA_FILE_COLUMNS
from lazydelta.scan.files import logical_names, public_rows
from lazydelta.storage import ObjectNotFoundError, Storage


class _StreamAdd(Add, frozen=True, rename="camel", gc=False):
    data_change: bool = True


class _StreamRemove(msgspec.Struct, frozen=True, rename="camel", gc=False):
    data_change: bool = True


class _StreamLine(msgspec.Struct, rename="camel", gc=False):
    add: _StreamAdd | None = None
    remove: _StreamRemove | None = None
    meta_data: Metadata | None = None
    protocol: Protocol | None = None


_LINES = msgspec.json.Decoder(_StreamLine)


class CommitFacts(msgspec.Struct, kw_only=True):
    """What a commit did, but for the files themselves."""

    version: int
    file_bytes: list[int]  # of each file that it added, in order
    has_removes: bool = False
    metadata: Metadata | None = None
    protocol: Protocol | None = None


def commits_since(storage: Storage, version: int) -> list[LogFile]:
    """The commits from this version on, without a gap; none where there is no such version yet."""
    for _ in range(limits.LISTINGS_MAX):  # a listing is no snapshot: a writer may append while it runs
        commits = list_log(storage, version).commits
        if not commits or version in commits:
            break
    else:
        raise VersionNotFoundError(
            f"commit {version} is not there any more, and the stream has not read it",
            f"{storage.root}/{LOG_FOLDER}",
            f"log cleanup took it; version {min(commits)} is the oldest there: start the stream anew with a "
            "new checkpoint location, and keep logs longer (delta.logRetentionDuration) than streams rest",
        )
    found = []
    while version in commits:
        found.append(commits[version])
        version += 1
    return found


def commit_facts(storage: Storage, version: int) -> CommitFacts:
    """One pass over a commit."""
    facts = CommitFacts(version=version, file_bytes=[])
    for lines in _slices(storage, version):
        for line in lines:
            if line.add is not None and line.add.data_change:
                facts.file_bytes.append(line.add.size)
            elif line.remove is not None and line.remove.data_change:
                facts.has_removes = True
            facts.metadata = line.meta_data or facts.metadata
            facts.protocol = line.protocol or facts.protocol
    return facts


def added_files(
    pinned: Snapshot, version: int, *, first: int = 0, end: int | None = None
) -> Iterator[pa.RecordBatch]:
    """The files that a commit added, from the first to before the end, with `DATA_FILE_COLUMNS`."""
    storage, names, index = pinned.storage, logical_names(pinned.schema), 0
    for lines in _slices(storage, version):
        adds = [line.add for line in lines if line.add is not None and line.add.data_change]
        taken = adds[max(0, first - index) : None if end is None else max(0, end - index)]
        index += len(adds)
        if taken:
            _check_partitions(taken, version, pinned)
            rows = rows_from_adds(taken, DATA_FILE_COLUMNS, storage.root)
            yield public_rows(rows, DATA_FILE_COLUMNS, names)
        if end is not None and index >= end:
            return


def under_names_of(
    pinned: Snapshot, then: Snapshot, files: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Files of an earlier version of the table, their partition values under the names of the pinned one."""
    fields = {field.name: field for field in then.schema.fields}
    told = {fields[name].physical_name for name in then.state.metadata.partition_columns}
    differs = _other_partitions(told, pinned)
    if differs is not None:
        raise _partitioned_otherwise(f"version {then.version} {differs}", pinned.storage.root)
    known = {field.physical_name: field.name for field in pinned.schema.fields}
    names = {name: known.get(field.physical_name, field.physical_name) for name, field in fields.items()}
    for rows in files:
        yield public_rows(rows, tuple(rows.schema.names), names)


def _check_partitions(adds: list[_StreamAdd], version: int, pinned: Snapshot) -> None:
    """Raise where a file was written under other partition columns: some would be read as null."""
    for add in adds:
        differs = _other_partitions((add.partition_values or {}).keys(), pinned)
        if differs is not None:
            raise _partitioned_otherwise(
                f"a file of version {version} {differs}", f"{pinned.storage.root}/{add.path}"
            )


def _other_partitions(told: Set[str], pinned: Snapshot) -> str | None:
    """How a file that tells values of these columns, by physical names, differs from those of today."""
    columns = set(pinned.state.metadata.partition_columns)
    for field in pinned.schema.fields:
        if field.name in columns and field.physical_name not in told:
            return f"tells no value of the partition column {field.name!r}"
        if field.name not in columns and field.physical_name in told:
            return f"has {field.name!r} for a partition column, which it is no more"
    return None


def _partitioned_otherwise(what: str, where: str) -> UnsupportedTableError:
    return UnsupportedTableError(
        what,
        where,
        "the table was partitioned otherwise then: start the stream at a later version, with a new "
        "checkpoint location, or without startingVersion",
    )


def _slices(storage: Storage, version: int) -> Iterator[list[_StreamLine]]:
    name = f"{LOG_FOLDER}/{commit_name(version)}"
    where = f"{storage.root}/{name}"
    try:
        for _, lines in decoded_lines(storage.get_stream(name, limits.COMMIT_CHUNK_BYTES), _LINES, where):
            yield lines
    except ObjectNotFoundError as gone:
        raise VersionNotFoundError(
            f"commit {version} is not there any more",
            where,
            "log cleanup took it while the stream read it: start the stream anew with a new checkpoint "
            "location, or keep logs longer (delta.logRetentionDuration)",
        ) from gone
