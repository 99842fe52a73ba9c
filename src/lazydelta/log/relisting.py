"""A log listed again, where an earlier listing is known: one request, from the known checkpoint on.

Contract: the segment that `find_segment` would give. A newer checkpoint is found in the listing itself, so
`_last_checkpoint` is read only to complete what is known of a new one. Where the listing makes no sense of
itself, the log is looked at from the beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from lazydelta.errors import CorruptLogError, VersionNotFoundError
from lazydelta.log.segment import LogFile, LogSegment, build_segment, find_segment, list_log, read_hint
from lazydelta.storage import Storage


def find_segment_again(
    storage: Storage,
    known: LogSegment,
    version: int | None = None,
    *,
    on_hint: Callable[[int], None] = lambda _: None,
) -> LogSegment:
    """The segment of `version` (the newest when None); `known` is an earlier one of the same table."""
    if version is not None and version < known.floor:
        return find_segment(storage, version, on_hint=on_hint)
    if known.checkpoint is not None:
        on_hint(known.floor)
    listing = list_log(storage, None if known.checkpoint is None else known.floor)
    if known.checkpoint is not None and not listing.checkpoints:
        return find_segment(storage, version, on_hint=on_hint)
    try:
        segment = build_segment(listing, storage.root, version=version, hint=known.hint)
    except (CorruptLogError, VersionNotFoundError):
        return find_segment(storage, version, on_hint=on_hint)
    if segment.checkpoint is None or segment.floor == known.floor:
        return segment
    hint = read_hint(storage)
    return msgspec.structs.replace(
        segment, hint=hint if hint is not None and hint.version == segment.floor else None
    )


def contradicts(known: LogSegment, now: LogSegment) -> bool:
    """Whether a file that both list is not the same any more: the log was restored or written anew."""
    if known == now:
        return False
    infos = {file.name: file.info for file in _files(known)}
    return any(infos.get(file.name, file.info) != file.info for file in _files(now))


def _files(segment: LogSegment) -> Iterator[LogFile]:
    yield from segment.commits
    yield from segment.crcs
    if segment.checkpoint is not None:
        yield from segment.checkpoint.files
    if segment.checkpoint_commit is not None:
        yield segment.checkpoint_commit
