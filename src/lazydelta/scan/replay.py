"""Which files are live: the tail and the floor merged, newest wins, in one of two orders.

Reverse: commits newest first, each add whose key nothing newer has decided, then the files at the checkpoint
that no commit touched. Forward (also the canonical order a tripped scan falls back to): the keys of the
whole tail as a mask, the checkpoint's files, then the tail's adds. Both give the same files, none twice.
Contract: batches carry `path` (canonical), the columns asked for and, where some row has one,
`deletion_vector`; memory is one slice of a commit or row group, and the `RemoveSet` within its limit.
Spec: PROTOCOL.md, "Action Reconciliation".
"""

from __future__ import annotations

from contextlib import closing

import msgspec

from lazydelta.errors import UnsupportedTableError
from lazydelta.log.fallback import FallbackKind, fell_back
from lazydelta.log.file_rows import Batches
from lazydelta.scan.floor import Floor
from lazydelta.scan.remove_set import RemoveSet
from lazydelta.scan.run import Replay
from lazydelta.scan.tail import shadow_tail, walk_tail
from lazydelta.scan.tail_memory import shadow_known_tail, walk_known_tail
from lazydelta.scan.tripwire import FeatureTripwire

__all__ = ["Replay", "forward_files", "note_trip", "reverse_files", "tail_files"]


def reverse_files(replay: Replay) -> Batches:
    """Newest first: the tail's live adds, then those at the checkpoint."""
    with closing(replay.key_set()) as seen, closing(Floor(replay)) as floor:
        floor.start()
        unread = yield from walk_known_tail(replay, seen, demand=replay.demand)
        if unread is None:
            yield from floor.rows(seen)
        else:
            note_trip(replay)
            yield from _canonical(replay, seen, floor, newest=unread)


def forward_files(replay: Replay) -> Batches:
    """The checkpoint's live adds, then the tail's."""
    with closing(replay.key_set()) as mask, closing(Floor(replay)) as floor:
        floor.start()
        yield from _canonical(replay, mask, floor, newest=replay.segment.version)


def tail_files(replay: Replay, seen: RemoveSet) -> Batches:
    """The live adds of the segment's tail alone; `seen` is left holding every key that the tail decides."""
    yield from walk_tail(replay, replay.tail, seen, may_trip=False)


def note_trip(replay: Replay) -> None:
    """Count the fallback of a scan that tripped; an error where it must not fall back."""
    reason = replay.tripwire.tripped or ""
    if not replay.config.enable_fallback:
        raise UnsupportedTableError(
            f"the lazy scan tripped and the fallback is off ({reason})",
            replay.storage.root,
            "set enable_fallback=True, or strict=False",
        )
    told = f"{reason}; continued in the canonical order"
    replay.tally.fallbacks.append(fell_back(replay.storage.root, FallbackKind.TRIPPED, told))


def _canonical(replay: Replay, mask: RemoveSet, floor: Floor, *, newest: int) -> Batches:
    """The whole tail first, then forward, for versions up to `newest`; newer keys are in `mask` already."""
    is_whole = newest == replay.segment.version
    if is_whole:
        shadow_known_tail(replay, mask)
    else:
        rest = [file for file in replay.tail if (file.parsed.until or file.version) <= newest]
        shadow_tail(replay, rest, mask)
    yield from floor.rows(mask)
    with closing(replay.key_set()) as seen:
        again = msgspec.structs.replace(replay, tripwire=FeatureTripwire())  # watched once already
        if is_whole:
            yield from walk_known_tail(again, seen)
        else:
            yield from walk_tail(again, replay.tail, seen, newest=newest, may_trip=False)
