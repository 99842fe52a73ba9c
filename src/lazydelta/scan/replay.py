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
from lazydelta.log.commits import CommitVanishedError
from lazydelta.log.fallback import FallbackKind, fell_back
from lazydelta.log.file_rows import Batches
from lazydelta.scan.cleaned_log import only_keys, replay_after_cleanup, rest_after_cleanup
from lazydelta.scan.floor import Floor
from lazydelta.scan.remove_set import RemoveSet
from lazydelta.scan.run import Replay
from lazydelta.scan.tail import shadow_tail, walk_tail
from lazydelta.scan.tail_memory import shadow_known_tail, walk_known_tail
from lazydelta.scan.tripwire import FeatureTripwire


def reverse_files(replay: Replay) -> Batches:
    """Newest first: the tail's live adds, then those at the checkpoint."""
    with closing(replay.key_set()) as seen, closing(Floor(replay)) as floor:
        floor.start()
        try:
            unread = yield from walk_known_tail(replay, seen, demand=replay.demand)
        except CommitVanishedError as gone:
            yield from rest_after_cleanup(replay, seen, gone)
            return
        if unread is None:
            yield from floor.rows(seen)
        else:
            note_trip(replay)
            yield from _canonical(replay, seen, floor, newest=unread)


def forward_files(replay: Replay) -> Batches:
    """The checkpoint's live adds, then the tail's."""
    with closing(replay.key_set()) as decided, closing(Floor(replay)) as floor:
        floor.start()
        yield from _canonical(replay, decided, floor, newest=replay.segment.version)


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


def _canonical(replay: Replay, decided: RemoveSet, floor: Floor, *, newest: int) -> Batches:
    """The whole tail first, then forward, for versions up to `newest`; the keys of newer ones are decided."""
    now: Replay | None = None
    with closing(replay.key_set()) as tail_keys, closing(replay.key_set()) as mask:
        try:
            _shadow(replay, tail_keys, newest=newest)
        except CommitVanishedError as gone:
            now = replay_after_cleanup(replay, gone)
        else:
            tail_keys.absorb(decided)
            mask.rest_on(tail_keys)  # files at the checkpoint may join the mask, never the tail's keys
            yield from floor.rows(mask)
            yield from _tail_after_floor(replay, tail_keys, newest=newest)
    if now is not None:  # of what was shadowed nothing is out
        with closing(Floor(now)) as newer_floor:
            yield from _canonical(now, decided, newer_floor, newest=newest)


def _shadow(replay: Replay, tail_keys: RemoveSet, *, newest: int) -> None:
    """The keys of the tail's versions up to `newest`."""
    if newest == replay.segment.version:
        shadow_known_tail(replay, tail_keys)
    else:
        rest = [file for file in replay.tail if (file.parsed.until or file.version) <= newest]
        shadow_tail(replay, rest, tail_keys)


def _tail_after_floor(replay: Replay, tail_keys: RemoveSet, *, newest: int) -> Batches:
    """The tail's live adds of versions up to `newest`; the files that no key of the tail touches are out."""
    with closing(replay.key_set()) as seen:
        again = msgspec.structs.replace(replay, tripwire=FeatureTripwire())  # watched once already
        try:
            if newest == replay.segment.version:
                yield from walk_known_tail(again, seen)
            else:
                yield from walk_tail(again, replay.tail, seen, newest=newest, may_trip=False)
        except CommitVanishedError as gone:
            if gone.version > newest:  # of what is out, not all is seen again
                raise
            with closing(rest_after_cleanup(again, seen, gone)) as rest:
                yield from only_keys(rest, tail_keys)
