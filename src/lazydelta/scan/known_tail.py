"""The tail of a log as far as it was walked, settled: what is live, newest first, and which keys are decided.

Why: the commits of a tail are the dearest thing to read again, and a new commit changes little of what they
decide together.
Contract: immutable, so that threads share it. It covers the versions `below < v <= version` of one
checkpoint's tail by the very files that it was made from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property

import msgspec
import numpy as np

from lazydelta.log.segment import LogFile, LogSegment
from lazydelta.scan.keys import DIGEST, DIGEST_BYTES, FileKeys, KeyDigests
from lazydelta.scan.known_rows import KnownRows, joined_rows
from lazydelta.scan.remove_set import RemoveSet

_KEY_BYTES = 64  # of a decided key: its digest twice, its hash, its share of a filter


class KnownTail(msgspec.Struct, frozen=True, kw_only=True, eq=False, dict=True):
    """What the newest versions of a tail come to."""

    version: int
    below: int  # the newest version that is not covered
    commits: tuple[LogFile, ...]  # that are covered, ascending
    rows: tuple[KnownRows, ...]  # the live adds, newest first
    decided: KeyDigests  # of adds and removes
    others: Counter[str]  # actions that are neither
    shadowed: int  # adds that a newer action overruled

    @property
    def size_bytes(self) -> int:
        """The memory it takes, about."""
        filters = 1 << 17
        return sum(rows.size_bytes for rows in self.rows) + _KEY_BYTES * len(self.decided) + filters

    @cached_property
    def mask(self) -> RemoveSet:
        """The decided keys as a set that may be shared."""
        mask = RemoveSet(2 * DIGEST_BYTES * max(len(self.decided), 1))
        mask.remember(self.decided)
        mask.settle()
        return mask

    def is_part_of(self, segment: LogSegment) -> bool:
        """Whether the segment's tail has these very commits."""
        first, last = self.below - segment.floor, self.version - segment.floor
        return 0 <= first <= last and segment.commits[first:last] == self.commits

    def tells(self, columns: Sequence[str], stats_paths: Sequence[tuple[str, ...]]) -> bool:
        """Whether its rows have what a run asks for."""
        return all(rows.tells(columns, stats_paths) for rows in self.rows)


class Decided(msgspec.Struct, frozen=True, eq=False):
    """What one slice of the tail decided, or an older state as newer commits have left it."""

    rows: tuple[KnownRows, ...]  # live
    keys: tuple[FileKeys | KeyDigests, ...]
    others: Counter[str]
    shadowed: int


def settled(segment: LogSegment, version: int, below: int, pieces: Sequence[Decided]) -> KnownTail:
    """The state that these pieces, newest first, come to."""
    keys = [keys for piece in pieces for keys in piece.keys if len(keys)]
    state = KnownTail(
        version=version,
        below=below,
        commits=segment.commits[below - segment.floor : version - segment.floor],
        rows=joined_rows([rows for piece in pieces for rows in piece.rows]),
        decided=KeyDigests(
            np.concatenate([np.zeros(0, np.uint64), *(each.hashes for each in keys)]),
            np.concatenate([np.zeros(0, DIGEST), *(each.digests for each in keys)]),
        ),
        others=sum((piece.others for piece in pieces), Counter()),
        shadowed=sum(piece.shadowed for piece in pieces),
    )
    _ = state.mask  # this and the next are made here, once, and not by the threads that share the state
    for rows in state.rows:
        _ = rows.keys.hashes, rows.partitions
    return state
