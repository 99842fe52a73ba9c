"""Who did what when: the commits, newest first, one small read each."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

import msgspec

from lazydelta.log.commits import read_commit_head
from lazydelta.log.segment import LogListing, list_log
from lazydelta.storage import ObjectNotFoundError, Storage


class CommitRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One commit as `history` tells of it."""

    version: int
    timestamp: str  # ISO 8601, UTC: in-commit timestamp, else the writer's, else the file's
    operation: str | None
    parameters: dict[str, object]
    metrics: dict[str, object]
    engine: str | None
    user: str | None
    size_bytes: int
    has_checkpoint: bool


def commit_records(storage: Storage, *, newest: int, limit: int | None = None) -> Iterator[CommitRecord]:
    """The commits up to version `newest` that are still there, newest first, read as they are pulled."""
    listing = newest_listing(storage, newest=newest, limit=limit)
    return listed_records(storage, listing, newest=newest, limit=limit)


def listed_records(
    storage: Storage, listing: LogListing, *, newest: int, limit: int | None
) -> Iterator[CommitRecord]:
    """The same, of a listing that is there."""
    checkpoints = {checkpoint.version for checkpoint in listing.checkpoints}
    versions = sorted((version for version in listing.commits if version <= newest), reverse=True)
    for version in versions[:limit]:
        file = listing.commits[version]
        try:
            info = read_commit_head(storage, file).info
        except ObjectNotFoundError:  # cleaned up after it was listed
            continue
        told_ms = None if info is None else (info.in_commit_timestamp or info.timestamp)
        yield CommitRecord(
            version=version,
            timestamp=_time(told_ms) or _time(file.info.modified_ms) or "",
            operation=_text(info and info.operation),
            parameters=_mapping(info and info.operation_parameters),
            metrics=_mapping(info and info.operation_metrics),
            engine=_text(info and info.engine_info),
            user=_text(info and info.user_name),
            size_bytes=file.info.size_bytes,
            has_checkpoint=version in checkpoints,
        )


def newest_listing(storage: Storage, *, newest: int, limit: int | None) -> LogListing:
    """A listing with the `limit` newest commits up to `newest`; a long log need not be listed whole."""
    if limit is not None and newest - limit + 1 > 0:
        listing = list_log(storage, newest - limit + 1)
        if sum(version <= newest for version in listing.commits) >= limit:
            return listing
    return list_log(storage)


def _time(ms: object) -> str | None:
    """The time as text, or None where it is not a time at all."""
    if not isinstance(ms, int):
        return None
    try:
        return dt.datetime.fromtimestamp(ms / 1000, dt.UTC).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        return None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _mapping(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}
