"""The segment of one version: the newest usable checkpoint and every commit after it.

Contract: one listing, started at the hint when the hint helps; a hint that is missing, stale, corrupt or
wrong costs at most a second listing and never changes the answer. The listing is sorted here. Zero-byte
checkpoints are ignored, multi-part sets count when complete, commits after the checkpoint are contiguous
or it is an error. Nothing but `_last_checkpoint` is read.
Spec: PROTOCOL.md, "Checkpoints", "Last Checkpoint File".
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable

import msgspec

from lazydelta import limits
from lazydelta.errors import CorruptLogError, TableNotFoundError, VersionNotFoundError
from lazydelta.log.bounded import get_small
from lazydelta.protocol.actions import LastCheckpoint
from lazydelta.protocol.names import HINT_NAME, LOG_FOLDER, LogFileKind, LogName, commit_name, parse_log_name
from lazydelta.storage import ObjectInfo, ObjectNotFoundError, Storage
from lazydelta.storage.interface import not_a_store

_WEB_PAGE = re.compile(rb"(?:\xef\xbb\xbf)?\s*<(?:!doctype\s+html|html[\s>])", re.IGNORECASE)
_HINT = msgspec.json.Decoder(LastCheckpoint)


class LogFile(msgspec.Struct, frozen=True):
    """A listed file of the log."""

    parsed: LogName
    info: ObjectInfo

    @property
    def version(self) -> int:
        """The version in its name."""
        return self.parsed.version

    @property
    def name(self) -> str:
        """Its name relative to the table's root."""
        return self.info.name


class CheckpointFiles(msgspec.Struct, frozen=True):
    """One complete checkpoint: a single file, or all parts of one set in order."""

    version: int
    files: tuple[LogFile, ...]

    @property
    def name(self) -> str:
        """What tells it from other checkpoints of the same version: the name of its first file."""
        return self.files[0].name

    @property
    def size_bytes(self) -> int:
        """The size of all its files, the sidecars of a V2 checkpoint not counted."""
        return sum(file.info.size_bytes for file in self.files)


class LogListing(msgspec.Struct, frozen=True, kw_only=True):
    """What a listing of the log found, sorted and grouped."""

    commits: dict[int, LogFile]
    checkpoints: tuple[CheckpointFiles, ...]  # ascending by version; of several at one the best comes last
    compactions: tuple[LogFile, ...]
    crcs: dict[int, LogFile]
    is_complete: bool  # listed from the beginning of the log

    @property
    def newest(self) -> int | None:
        """The newest version the listing knows."""
        versions = [*self.commits, *(checkpoint.version for checkpoint in self.checkpoints)]
        return max(versions, default=None)


class LogSegment(msgspec.Struct, frozen=True, kw_only=True):
    """Everything of the log that one version needs."""

    root: str
    version: int
    checkpoint: CheckpointFiles | None
    commits: tuple[LogFile, ...]  # ascending, contiguous, checkpoint < v <= version
    compactions: tuple[LogFile, ...]
    crcs: tuple[LogFile, ...]  # ascending, checkpoint <= v <= version
    checkpoint_commit: LogFile | None  # the commit of the checkpoint's own version, where it is still there
    hint: LastCheckpoint | None

    @property
    def floor(self) -> int:
        """The version of the checkpoint, or -1: commits at or below it are never read."""
        return -1 if self.checkpoint is None else self.checkpoint.version

    @property
    def tail_bytes(self) -> int:
        """The size of all commits after the checkpoint."""
        return sum(commit.info.size_bytes for commit in self.commits)


def find_segment(
    storage: Storage,
    version: int | None = None,
    damaged: frozenset[str] = frozenset(),
    *,
    on_hint: Callable[[int], None] = lambda _: None,
) -> LogSegment:
    """The segment of `version` (the newest when None), without the checkpoints whose names are `damaged`.

    `on_hint` is told the checkpoint's probable version before the log is listed.
    """
    hint = read_hint(storage)
    start = hint.version if hint is not None and (version is None or hint.version <= version) else None
    if start is not None:
        on_hint(start)
    listing = None if start is None else list_log(storage, start)
    if listing is None or not any(c.name not in damaged for c in listing.checkpoints):
        listing = list_log(storage)
    for _ in range(limits.LISTINGS_MAX - 1):
        try:
            return build_segment(listing, storage.root, version=version, damaged=damaged, hint=hint)
        except CorruptLogError:  # a listing is no snapshot: a writer may have appended while it ran
            listing = list_log(storage)
    return build_segment(listing, storage.root, version=version, damaged=damaged, hint=hint)


def read_hint(storage: Storage) -> LastCheckpoint | None:
    """The content of `_last_checkpoint`, or None where it is missing or makes no sense.

    A web page is neither: whatever sends one would send it for a listing, too, which reads as an empty log.
    """
    name, body = f"{LOG_FOLDER}/{HINT_NAME}", b""
    try:
        body = get_small(storage, name, limits.HINT_BYTES_MAX)
        return _HINT.decode(body)
    except (ObjectNotFoundError, CorruptLogError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    if _WEB_PAGE.match(body):
        raise not_a_store("a web page", f"{storage.root}/{name}")
    return None


def list_log(storage: Storage, from_version: int | None = None) -> LogListing:
    """One listing of the log, from the files of `from_version` on."""
    after = None if from_version is None else f"{from_version:020d}"
    files: list[LogFile] = []
    try:
        for info in storage.list_from(LOG_FOLDER, after):
            parsed = parse_log_name(info.name.rpartition("/")[2])
            if parsed is not None:
                files.append(LogFile(parsed, info))
    except ObjectNotFoundError as missing:
        raise TableNotFoundError(
            f"no Delta table here: {missing.what}", storage.root, "check the address"
        ) from missing
    files.sort(key=lambda file: file.parsed.name)
    of_kind: dict[LogFileKind, list[LogFile]] = defaultdict(list)
    for file in files:
        of_kind[file.parsed.kind].append(file)
    return LogListing(
        commits={file.version: file for file in of_kind[LogFileKind.COMMIT]},
        checkpoints=_complete_checkpoints(of_kind[LogFileKind.CHECKPOINT]),
        compactions=tuple(of_kind[LogFileKind.COMPACTED]),
        crcs={file.version: file for file in of_kind[LogFileKind.CRC]},
        is_complete=from_version is None,
    )


def build_segment(
    listing: LogListing,
    root: str,
    *,
    version: int | None,
    damaged: frozenset[str] = frozenset(),
    hint: LastCheckpoint | None = None,
) -> LogSegment:
    """Choose the checkpoint, check that the tail is whole, or say what is missing."""
    newest = listing.newest
    if newest is None:
        raise TableNotFoundError(
            "no Delta table here: the log has no commit and no checkpoint",
            f"{root}/{LOG_FOLDER}",
            "check the address; a Delta table has a folder _delta_log with commits",
        )
    pinned = newest if version is None else version
    if pinned > newest or pinned < 0:
        raise VersionNotFoundError(
            f"version {pinned} does not exist, the newest is {newest}",
            root,
            f"read version {newest} or older",
        )
    usable = [c for c in listing.checkpoints if c.version <= pinned and c.name not in damaged]
    checkpoint = usable[-1] if usable else None
    floor = -1 if checkpoint is None else checkpoint.version
    # By those that are there, not by those that ought to be: one name may claim billions of versions.
    there = sorted(version for version in listing.commits if floor < version <= pinned)
    if len(there) != pinned - floor:
        raise _missing_commits_error(listing, root, pinned=pinned, floor=floor, there=there)
    return LogSegment(
        root=root,
        version=pinned,
        checkpoint=checkpoint,
        commits=tuple(listing.commits[version] for version in there),
        compactions=tuple(
            file
            for file in listing.compactions
            if file.version > floor and file.parsed.until is not None and file.parsed.until <= pinned
        ),
        crcs=tuple(listing.crcs[v] for v in sorted(listing.crcs) if max(floor, 0) <= v <= pinned),
        checkpoint_commit=listing.commits.get(floor),
        hint=hint if hint is not None and hint.version == floor else None,
    )


def earliest_readable(listing: LogListing) -> int | None:
    """The oldest version that can still be read: from version 0 on, or from the oldest checkpoint on."""
    if 0 in listing.commits:
        return 0
    return listing.checkpoints[0].version if listing.checkpoints else None


def _complete_checkpoints(files: Iterable[LogFile]) -> tuple[CheckpointFiles, ...]:
    """Complete, non-empty checkpoints by version; of several at one version those with fewer files last."""
    sets: dict[tuple[int, int, str], list[LogFile]] = defaultdict(list)
    for file in files:
        if file.info.size_bytes > 0:
            # Minus, so that one file sorts after many; 0 parts is a file that is no part of a set.
            sets[file.version, -(file.parsed.parts or 0), file.parsed.unique or ""].append(file)
    complete = []
    for (version, parts, _), members in sorted(sets.items()):
        numbers = sorted(file.parsed.part or 1 for file in members)
        if len(numbers) == max(-parts, 1) and numbers == list(range(1, len(numbers) + 1)):
            ordered = tuple(sorted(members, key=lambda file: file.parsed.part or 1))
            complete.append(CheckpointFiles(version, ordered))
    return tuple(complete)


def _missing_commits_error(
    listing: LogListing, root: str, *, pinned: int, floor: int, there: list[int]
) -> Exception:
    where = f"{root}/{LOG_FOLDER}"
    earliest = earliest_readable(listing)
    first = min(listing.commits, default=pinned + 1)
    gap = next((at for at, version in enumerate(there, floor + 1) if at != version), floor + 1 + len(there))
    if floor < 0 and gap == 0 and first > pinned and earliest is not None:
        return VersionNotFoundError(
            f"version {pinned} was cleaned up: its commits are gone",
            where,
            f"read version {earliest} or newer; {earliest} is the earliest readable one",
        )
    if floor < 0 and gap == 0 and len(there) == pinned + 1 - first:
        reach = "no checkpoint reaches back further"
        fix = f"read version {earliest} or newer" if earliest is not None else "restore the missing files"
        error = VersionNotFoundError if earliest is not None else CorruptLogError
        return error(
            f"version {pinned} cannot be read: the log begins at commit {first} and {reach}", where, fix
        )
    after = next((version for version in there if version > gap), None)
    between = f"between {gap - 1} and {after}" if after is not None else f"after {gap - 1}"
    readable = (
        f", or read version {gap - 1}" if gap > 0 and (gap - 1 in listing.commits or gap - 1 == floor) else ""
    )
    return CorruptLogError(
        f"commit {gap} is missing {between}", where, f"restore {commit_name(gap)}{readable}"
    )
