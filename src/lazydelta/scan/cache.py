"""What this process keeps between queries, over all tables: the least recently used goes first, by bytes.

    lazydelta.cache.stats()    hits, misses, evictions, bytes and entries, in all and by kind
    lazydelta.cache.clear()    forget everything

Contract: thread-safe. A cache may forget anything at any time, and gives only what was put in; whether that
still holds is for those who ask to prove. Nothing is shared between tables that were opened with different
storage options: the owner's key has them in it. A forked child begins with nothing.
"""

from __future__ import annotations

import os
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable
from enum import StrEnum
from typing import Any

import msgspec

from lazydelta.memory_budget import PROCESS_MEMORY, MemoryBudget

_ENTRY_BYTES = 400  # of the key and the book-keeping, about


class CacheKind(StrEnum):
    """What is kept of a table."""

    LISTING = "listing"  # which files the log has
    STATE = "state"  # protocol, metadata and schema of a version
    SIDECAR = "sidecar"  # the manifest, proven
    FOOTER = "footer"  # of a sidecar's part
    ROWS = "rows"  # some columns of one row group of a part, decoded
    ANSWER = "answer"  # the rows of a sidecar that a predicate left
    TAIL = "tail"  # the live files of the commits since the checkpoint


class Owner(msgspec.Struct, frozen=True):
    """A table, as it was opened."""

    root: str
    options: bytes  # a digest of everything that decides who reads and where


class KindStats(msgspec.Struct, kw_only=True):
    """The numbers of one kind, since the process began or the cache was cleared."""

    hits: int = 0
    misses: int = 0
    evictions: int = 0  # for want of room
    invalidations: int = 0  # because the table went on, or was rewritten
    entries: int = 0
    bytes: int = 0


class CacheStats(KindStats, kw_only=True):
    """The numbers of the whole cache."""

    by_kind: dict[str, KindStats]


class CacheUse(msgspec.Struct, kw_only=True):
    """What one opening, or one run of a scan, took from the cache."""

    hits: Counter[str] = msgspec.field(default_factory=Counter)
    bytes: int = 0

    def added_to(self, opening: CacheUse) -> CacheUse:
        """Opening and running as one account."""
        return CacheUse(hits=opening.hits + self.hits, bytes=opening.bytes + self.bytes)


class Entry(msgspec.Struct, frozen=True):
    """Something kept, and about how much memory it takes."""

    value: Any  # what was put in; who asks knows its type by the kind
    size_bytes: int


_Key = tuple[Owner, CacheKind, Hashable]


class ByteCache:
    """Entries of all tables in the order of their last use."""

    def __init__(self, budget: MemoryBudget | None = None) -> None:
        """What is kept counts as memory of the budget, which may ask for it back."""
        self._budget = budget
        self.start_anew()

    def start_anew(self) -> None:
        """Empty, with a lock of its own: one that another thread held stays locked in a forked child."""
        self._lock = threading.Lock()
        self._telling = threading.Lock()  # taken before the other one, never while it is held
        self._entries: OrderedDict[_Key, Entry] = OrderedDict()
        self._stats = {kind: KindStats() for kind in CacheKind}
        self._bytes = 0
        self._told_bytes = 0  # to the budget

    def get(
        self,
        owner: Owner,
        kind: CacheKind,
        key: Hashable,
        *,
        is_valid: Callable[[Any], bool] = lambda _: True,  # Any: as in `Entry`
    ) -> Entry | None:
        """What was kept, if it is still there and still holds; one that does not counts as a miss."""
        at = (owner, kind, key)
        with self._lock:
            found = self._entries.get(at)
        valid = found if found is not None and is_valid(found.value) else None
        with self._lock:
            if valid is None:
                self._stats[kind].misses += 1
            else:
                self._stats[kind].hits += 1
                if at in self._entries:
                    self._entries.move_to_end(at)
        return valid

    def peek(self, owner: Owner, kind: CacheKind, key: Hashable) -> Any:  # Any: as in `Entry`
        """What was kept, or None; this is no use of it."""
        with self._lock:
            found = self._entries.get((owner, kind, key))
        return None if found is None else found.value

    def keys(self, owner: Owner, kind: CacheKind) -> list[Hashable]:
        """What is kept of a table, of one kind."""
        with self._lock:
            return [at[2] for at in self._entries if at[1] is kind and at[0] == owner]

    def put(
        self,
        owner: Owner,
        kind: CacheKind,
        key: Hashable,
        value: object,
        *,
        size_bytes: int,
        budget_bytes: int,
    ) -> None:
        """Keep this, and throw out what was used longest ago until all fits the budget."""
        entry = Entry(value, size_bytes + _ENTRY_BYTES)
        if self._budget is not None:
            budget_bytes = min(budget_bytes, self._budget.limit_bytes // 4)
            if not self._budget.has_room_to_cache(entry.size_bytes):
                return
        if entry.size_bytes > budget_bytes:
            return
        with self._lock:
            self._take_out((owner, kind, key))
            self._entries[owner, kind, key] = entry
            self._bytes += entry.size_bytes
            while self._bytes > budget_bytes:
                oldest = next(iter(self._entries))
                self._take_out(oldest)
                self._stats[oldest[1]].evictions += 1
        self._tell()

    def give_back(self, byte_count: int) -> None:
        """Throw out what was used longest ago, so many bytes of it: somebody needs the memory."""
        with self._lock:
            until = max(0, self._bytes - byte_count)
            while self._bytes > until:
                oldest = next(iter(self._entries))
                self._take_out(oldest)
                self._stats[oldest[1]].evictions += 1
        self._tell()

    def drop(self, owner: Owner, is_stale: Callable[[CacheKind, Hashable], bool] = lambda *_: True) -> None:
        """Throw out what does not hold any more of a table."""
        with self._lock:
            stale = [at for at in self._entries if at[0] == owner and is_stale(at[1], at[2])]
            for at in stale:
                self._take_out(at)
                self._stats[at[1]].invalidations += 1
        self._tell()

    def stats(self) -> CacheStats:
        """The numbers so far."""
        with self._lock:
            by_kind = {kind.value: msgspec.structs.replace(stats) for kind, stats in self._stats.items()}
            for at, entry in self._entries.items():
                by_kind[at[1].value].entries += 1
                by_kind[at[1].value].bytes += entry.size_bytes
        sums = {
            name: sum(getattr(stats, name) for stats in by_kind.values())
            for name in KindStats.__struct_fields__
        }
        return CacheStats(by_kind=by_kind, **sums)

    def clear(self) -> None:
        """Forget everything; the numbers begin anew."""
        with self._lock:
            self._entries.clear()
            self._bytes = 0
            self._stats = {kind: KindStats() for kind in CacheKind}
        self._tell()

    def _tell(self) -> None:
        """What is kept has changed; without the lock of the entries, which the budget must never wait for.

        One thread at a time: a budget that heard of less before it heard of more would hold the difference
        for ever.
        """
        if self._budget is None:
            return
        with self._telling:
            with self._lock:
                more_bytes, self._told_bytes = self._bytes - self._told_bytes, self._bytes
            if more_bytes:
                self._budget.cached(more_bytes)

    def _take_out(self, at: _Key) -> None:
        gone = self._entries.pop(at, None)
        if gone is not None:
            self._bytes -= gone.size_bytes


PROCESS_CACHE = ByteCache(PROCESS_MEMORY)
PROCESS_MEMORY.cache_gives_back(PROCESS_CACHE.give_back)


def stats() -> CacheStats:
    """What this process keeps, and how often it helped."""
    return PROCESS_CACHE.stats()


def clear() -> None:
    """Forget everything that this process keeps."""
    PROCESS_CACHE.clear()


os.register_at_fork(after_in_child=PROCESS_CACHE.start_anew)
